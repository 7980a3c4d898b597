"""Flat scripts under `accel.run --auto`, untouched, against Python alone.

`python -m benchmarks.scripts [--seconds S] [--scripts NAME ...]`. Each script of benchmarks/flat is made so long that
it takes about S seconds on NumPy. It runs plainly, then with accel and an empty cache, then with what that has left
there. What the script prints must be the same. Beside the times stands what accel says of its run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import harness
from benchmarks.harness import REPOSITORY, BadInput, Goal

FOLDER = Path(__file__).parent / "flat"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
FEW, MORE = 100, 400
"""Steps of the two short runs that show how long a step takes; of the second four times as many until they differ."""
LEAST_S = 2.0
"""By so many seconds: a script's own start varies by a part of one."""
FACTOR = 2.0


class Run(NamedTuple):
    """One run: its seconds, what it printed, and accel's last two lines: what was gained, and what was chosen."""

    seconds: float
    printed: str
    said: str


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.scripts", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--seconds", metavar="S", type=float, default=60.0, help="of NumPy work for each script")
    arguments.add_argument("--scripts", metavar="NAME", nargs="+", default=SCRIPTS, help=f"of {', '.join(SCRIPTS)}")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print; 1 when a script printed something else, or is too slow."""
    options = parser().parse_args(argv)
    unknown = [name for name in options.scripts if name not in SCRIPTS]
    if unknown:
        raise BadInput(f"--scripts: {', '.join(unknown)}: not one of {', '.join(SCRIPTS)}")
    verdicts: list[Goal] = []
    for name in options.scripts:
        print(f"{name} ...", file=sys.stderr, flush=True)
        verdicts += judged(name, options.seconds)
    print("\n".join([harness.goals_table(verdicts), "", f"commit {harness.commit()}"]))
    return 0 if all(goal.met for goal in verdicts) else 1


def judged(name: str, seconds: float) -> list[Goal]:
    """The verdicts on one script."""
    steps = steps_for(name, seconds)
    with tempfile.TemporaryDirectory() as cache:
        plain, cold, warm = run(name, steps), run(name, steps, cache), run(name, steps, cache)
    for title, each in (("plain", plain), ("first run", cold), ("second run", warm)):
        print(f"  {title}: {each.seconds:.1f} s {each.said}", file=sys.stderr)
    others = sum(each.printed != plain.printed for each in (cold, warm))
    return [
        Goal(f"{name}, {steps} steps: runs that print something else", others, 0),
        Goal(f"{name}: times as fast, first run", plain.seconds / cold.seconds, FACTOR, at_least=True),
        Goal(f"{name}: times as fast, second run", plain.seconds / warm.seconds, FACTOR, at_least=True),
    ]


def steps_for(name: str, seconds: float) -> int:
    """The number of steps that takes so many seconds on NumPy."""
    few, steps = run(name, FEW).seconds, MORE
    while (beyond_s := run(name, steps).seconds - few) < LEAST_S:
        steps *= 4
    return max(steps, int(seconds * (steps - FEW) / beyond_s))


def run(name: str, steps: int, cache: str | None = None) -> Run:
    """Run a script. cache: with accel, and this folder for its programs."""
    command = [] if cache is None else ["-m", "accel.run", "--auto"]
    env = {**os.environ, "STEPS": str(steps), "PYTHONPATH": str(REPOSITORY), "QD_JAX_CACHE_DIR": cache or "off"}
    began = time.perf_counter()
    made = subprocess.run(
        [sys.executable, *command, str(FOLDER / f"{name}.py")], env=env, check=True, capture_output=True, text=True
    )
    wall_s = time.perf_counter() - began
    harness.let_finish(cache)
    return Run(wall_s, made.stdout, " | ".join(made.stderr.strip().splitlines()[-2:]))


if __name__ == "__main__":
    harness.run_command(main)
