"""Every benchmark that the goals need, one after the other, then the tables and plots.

`python -m benchmarks [--pygcm DIR ...] [--npbench DIR] [--quick] [--resume]` puts results into `build/bench`. With
`--publish` they go from there to `docs/results` and into docs/benchmarks.md once all is measured: to be done on a
quiet machine, with all checkouts there. A part that fails is shown as failed, and the others are published. A run that
was broken off, or parts of which failed, goes on with `--resume`, where commit, machine and versions are the same.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import goals, harness, publish
from benchmarks.goal_table import NEW, OLD
from benchmarks.harness import BadInput
from benchmarks.parts import Ledger, Part

WHOLE_RUNS = ("--cache", "cold", "--rounds", "1", "--seconds", "10", "30")
"""How `starts` is run here: the models, each once. All of its cases take an hour."""

GROWTH = ("--grids", "31x60", "61x120", "121x240", "241x480", "361x720", "--budget", "1")
"""How `functions` is run here: the largest grid would take as long as all others."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--pygcm", metavar="DIR", action="append", default=[], help="a checkout; repeatable")
    arguments.add_argument("--npbench", metavar="DIR", type=Path, help="a checkout of spcl/npbench")
    arguments.add_argument("--quick", action="store_true", help="short runs, to try it out")
    arguments.add_argument("--resume", action="store_true", help="keep what a run that was broken off has measured")
    arguments.add_argument("--results", metavar="DIR", type=Path, default=goals.RESULTS, help="build/bench")
    arguments.add_argument(
        "--publish", action="store_true", help="the results that docs/benchmarks.md shows from now on"
    )
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure everything and write it down; 0 when all went well, 1 when a benchmark failed or found an error."""
    options = parser().parse_args(argv)
    if options.quick and options.publish:
        raise BadInput("--publish: the figures of a quick run mean nothing")
    checkouts = goals.checkouts_by_name(options.pygcm, options.npbench)
    folder = goals.results_folder(options.results)
    began, ledger = time.monotonic(), Ledger(folder, options.resume)
    others = more_parts(checkouts, options.quick)
    for name in {path.stem for path in folder.glob("functions-*.json")} - {part.name for part in others}:
        ledger.forget(name)
    goals.say(ledger.plan([*goals.parts_of(goals.MEASUREMENTS, checkouts, options.quick), *others]))
    result = goals.measure(goals.MEASUREMENTS, checkouts, ledger, folder, options.quick)
    ended = {part.name: goals.told(ledger, part, part.name) for part in others}
    result["failed"] = {name: each.why for name, each in ended.items() if each.why}
    goals.write(result, folder)
    print(f"{goals.describe(result)}\n\n{(time.monotonic() - began) / 60.0:.0f} minutes in all", flush=True)
    publish.main(["--results", str(folder), *(["--page"] if options.publish else [])])
    return 1 if goals.has_failed(result) else 0


def more_parts(checkouts: Mapping[str, Path], quick: bool) -> list[Part]:
    """What is published beside the goals."""
    program = OLD if OLD in checkouts else goals.MINIATURE
    functions = ["benchmarks.functions", *(["--quick"] if quick else GROWTH)]
    functions += ["--pygcm", str(checkouts[OLD])] if OLD in checkouts else []
    grids = ["--grid", "31x60", "--rounds", "3"] if quick else ["--rounds", "12"]
    folders = {case: checkouts[of] for case, of in (("old", OLD), ("new", NEW)) if of in checkouts}
    models = list(folders) or ["miniature"]
    starts = ["benchmarks.starts", "--figures", "--cases", *models, *(["--quick"] if quick else WHOLE_RUNS)]
    starts += [word for folder in folders.values() for word in ("--pygcm", str(folder))]
    return [
        Part("starts", tuple(starts), 20.0 if quick else 75.0 * len(models)),
        Part(f"functions-{program}", tuple(functions), 60.0 if quick else 240.0),
        Part("ndimage", ("benchmarks.ndimage", *grids), 30.0 if quick else 150.0),
    ]


if __name__ == "__main__":
    harness.run_command(main)
