"""Every benchmark that the goals need, one after the other, then the tables and plots.

`python -m benchmarks [--pygcm DIR ...] [--npbench DIR] [--quick]` puts results into `build/bench/`. With `--publish`
they go to `docs/results/` and into docs/benchmarks.md instead: to be done on a quiet machine, with all checkouts there.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import goals, harness, publish
from benchmarks.goal_table import OLD
from benchmarks.harness import BadInput


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--pygcm", metavar="DIR", action="append", default=[], help="a checkout; repeatable")
    arguments.add_argument("--npbench", metavar="DIR", type=Path, help="a checkout of spcl/npbench")
    arguments.add_argument("--quick", action="store_true", help="short runs, to try it out")
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
    folder = goals.results_folder(publish.PUBLISHED if options.publish else options.results)
    failed = 0
    for name, command in commands(checkouts, folder, options.quick).items():
        print(f"\n## {name}\n", flush=True)
        began = time.monotonic()
        failed += subprocess.run([sys.executable, "-m", *command], cwd=harness.REPOSITORY, check=False).returncode != 0
        print(f"\n{name}: {time.monotonic() - began:.0f} s", flush=True)
    publish.main(["--page"] if options.publish else ["--results", str(folder)])
    return 1 if failed else 0


def commands(checkouts: Mapping[str, Path], folder: Path, quick: bool) -> dict[str, list[str]]:
    """The command lines, by what they measure. `goals` starts the others itself."""
    out = folder.resolve()
    few = ["--quick"] if quick else []
    program = OLD if OLD in checkouts else goals.MINIATURE
    functions = ["benchmarks.functions", *few, "--out", str(out / f"functions-{program}.json")]
    functions += ["--pygcm", str(checkouts[OLD])] if OLD in checkouts else []
    grids = ["--grid", "31x60", "--rounds", "3"] if quick else []
    named = [
        part for name, option in goals.OPTIONS.items() if name in checkouts for part in (option, str(checkouts[name]))
    ]
    return {
        f"functions of {program}": functions,
        "scipy.ndimage": ["benchmarks.ndimage", *grids, "--out", str(out / "ndimage.json")],
        "goals": ["benchmarks.goals", *few, *named, "--results", str(out)],
    }


if __name__ == "__main__":
    harness.run_command(main)
