"""The second start of a model, after `accel compile`: it compiles nothing, and is soon on compiled steps.

`python -m benchmarks.second_start [--pygcm DIR ...] [--cases NAME ...]`. Each model is compiled ahead into an empty
cache folder, and then run for 20 steps from it. The verdicts come from that run's report: every program was found on
disk, and the function that makes a step was answered by its program before the run ended.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import cases, goals, harness
from benchmarks.cases import CASES, MODEL, Case
from benchmarks.harness import REPOSITORY, Goal

STEPS, STEPS_PER_DAY = 20, 240
SETTINGS = {"QD_PLOT_EVERY_DAYS": "100000", "MPLBACKEND": "Agg", "PYTHONPATH": str(REPOSITORY)}
MODELS = [name for name, case in CASES.items() if case.module == MODEL]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.second_start", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--pygcm", metavar="DIR", action="append", default=[], help="a checkout; repeatable")
    arguments.add_argument("--cases", metavar="NAME", nargs="+", default=MODELS, help=f"of {', '.join(MODELS)}")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print; 1 when a limit is missed."""
    options = parser().parse_args(argv)
    checkouts = goals.checkouts_by_name(options.pygcm)
    wanted, remarks = cases.chosen(options.cases, checkouts)
    verdicts = []
    for case in wanted:
        print(f"{case.name} ...", file=sys.stderr, flush=True)
        verdicts += judged(case, checkouts[case.needs])
    print("\n".join([harness.goals_table(verdicts), *remarks, "", f"commit {harness.commit()}"]))
    return 0 if all(goal.met for goal in verdicts) else 1


def judged(case: Case, checkout: Path) -> list[Goal]:
    """The two verdicts on one model."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        cache = str(Path(first) / "cache")
        run(case, checkout, first, cache, ["accel", "compile"], days=1.0)
        run(case, checkout, second, cache, ["accel.run", "--report", "report.json"], days=STEPS / STEPS_PER_DAY)
        report = json.loads((Path(second) / "report.json").read_text())
    programs = [(each["target"], program) for each in report["functions"] for program in each["programs"]]
    compiled = [target for target, program in programs if not program["found_on_disk"]]
    for target in compiled:
        print(f"  compiled: {target}", file=sys.stderr)
    return [
        Goal(f"{case.text}: programs of {len(programs)} compiled at the second start", len(compiled), 0),
        Goal(f"{case.text}: compiled steps of the first {STEPS}", step_of(report)["compiled_calls"], 1, at_least=True),
    ]


def step_of(report: dict[str, Any]) -> dict[str, Any]:
    """What the report says of the function that makes a step."""
    found: dict[str, Any] = next(each for each in report["functions"] if each["target"].endswith(".time_step"))
    return found


def run(case: Case, checkout: Path, folder: str, cache: str, command: Sequence[str], *, days: float) -> None:
    """Run `python -m COMMAND` on the model in `folder` for so many of its days.

    Each run needs a folder of its own: a model that finds an earlier one's restart file goes on from it.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("QD_")}
    subprocess.run(
        [sys.executable, "-m", *command, "--pygcm", str(checkout), MODEL],
        cwd=folder,
        env={**inherited, **SETTINGS, **case.settings, "QD_SIM_DAYS": f"{days:.5f}", "QD_JAX_CACHE_DIR": cache},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    harness.let_finish(cache)


if __name__ == "__main__":
    harness.run_command(main)
