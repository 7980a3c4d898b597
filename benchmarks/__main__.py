"""Every benchmark, one after the other, then the tables and plots: `python -m benchmarks [--pygcm DIR ...] [--quick]`.

Results go to `build/bench/`. With `--publish` they go to `docs/results/` and into docs/benchmarks.md instead: to be
done on a quiet machine, with all checkouts there.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import goals, harness, publish
from benchmarks.goal_table import OLD
from benchmarks.harness import BadInput


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--pygcm", metavar="DIR", action="append", default=[], help="a checkout; repeatable")
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
    checkouts = goals.checkouts_by_revision(options.pygcm)
    folder = goals.results_folder(publish.PUBLISHED if options.publish else options.results)
    failed = 0
    for name, command in commands(checkouts, folder, options.quick).items():
        print(f"\n## {name}\n", flush=True)
        failed += subprocess.run([sys.executable, "-m", *command], cwd=harness.REPOSITORY, check=False).returncode != 0
    publish.main(["--page"] if options.publish else ["--results", str(folder)])
    return 1 if failed else 0


def commands(checkouts: Mapping[str, Path], folder: Path, quick: bool) -> dict[str, list[str]]:
    """The command lines, by what they measure."""
    out = folder.resolve()
    few = ["--quick"] if quick else []
    found = {
        "functions of the miniature": ["benchmarks.functions", *few, "--out", str(out / "functions-miniature.json")]
    }
    if OLD in checkouts:
        named = ["--pygcm", str(checkouts[OLD]), "--out", str(out / f"functions-{OLD}.json")]
        found[f"functions of PyGCM {OLD}"] = ["benchmarks.functions", *few, *named]
    sizes = ["--sizes", "32", "--calls", "3", "--budget", "0.05"] if quick else []
    found["kernels"] = ["benchmarks.kernels", *sizes, "--out", str(out / "kernels.json")]
    grids = ["--grid", "31x60", "--rounds", "3"] if quick else []
    found["scipy.ndimage"] = ["benchmarks.ndimage", *grids, "--out", str(out / "ndimage.json")]
    named = [part for name, path in checkouts.items() if name != goals.MINIATURE for part in ("--pygcm", str(path))]
    found["goals"] = ["benchmarks.goals", *few, *named, "--results", str(out)]
    return found


if __name__ == "__main__":
    harness.run_command(main)
