"""Which calls of a long run are compiled: how many programs a function has at a time, and how soon they do the work.

`python -m benchmarks.long_runs [--pygcm DIR ...] [--cases NAME ...] [--steps N ...]`. Each model is run from an empty
cache folder, in a process of its own, which keeps every call. A round of a lifted loop that is answered by a program
counts as a compiled call of the functions that are called once in each round. What is compared with NumPy counts as
NumPy's. Rounds that print may be known by a run of the loop's program alone, which is then discarded: these are counted
apart. Goals: at most 2 programs at any time (3 in runs of more than 1,440 steps), 97 % of the calls after the 60th
compiled, and no run of a program discarded after the 200th call.
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import cases, goals, harness, second_start
from benchmarks.cases import CASES, Case
from benchmarks.harness import Goal
from benchmarks.second_start import STEPS_PER_DAY

STEPS = (1440, 4800)
FUNCTIONS = ("SpectralModel.time_step", "WindDrivenSlabOcean.step")
"""How the names end of the functions that are called once in a step."""

SKIPPED, SETTLED = 60, 200
SHARE = 0.97
DEFAULT_CASES = ("old-energy", "old", "new")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.long_runs", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--pygcm", metavar="DIR", action="append", default=[], help="a checkout; repeatable")
    arguments.add_argument("--cases", metavar="NAME", nargs="+", default=DEFAULT_CASES, help=f"of {', '.join(CASES)}")
    arguments.add_argument("--steps", type=harness.positive_int, nargs="+", default=STEPS, help="default: 1440 4800")
    arguments.add_argument("--watch", metavar="FILE", help=argparse.SUPPRESS)  # in the child: write what it saw here
    arguments.add_argument("program", nargs="*", help=argparse.SUPPRESS)
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print; 1 when a goal is missed."""
    options = parser().parse_args(argv)
    if options.watch:
        watch(Path(options.watch), *options.pygcm, *options.program)
        return 0
    checkouts = goals.checkouts_by_name(options.pygcm)
    wanted, remarks = cases.chosen(options.cases, checkouts)
    verdicts = []
    for case in wanted:
        for steps in options.steps:
            print(f"{case.name}, {steps} steps ...", file=sys.stderr, flush=True)
            verdicts += judged(case, steps, seen_of(case, checkouts[case.needs], steps))
    print("\n".join([harness.goals_table(verdicts), *remarks, "", f"commit {harness.commit()}"]))
    return 0 if all(goal.met for goal in verdicts) else 1


def seen_of(case: Case, checkout: Path, steps: int) -> dict[str, Any]:
    """What the child saw of one run from an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "seen.json"
        command = ["benchmarks.long_runs", "--watch", str(out)]
        second_start.run(case, checkout, folder, str(Path(folder) / "cache"), command, days=steps / STEPS_PER_DAY)
        seen: dict[str, Any] = json.loads(out.read_text())
        return seen


def judged(case: Case, steps: int, seen: dict[str, Any]) -> list[Goal]:
    """The three verdicts on each function."""
    verdicts = []
    for target in sorted(seen["programs"].keys() | {name for name, _, _ in seen["calls"]}):
        if not target.endswith(FUNCTIONS):
            continue
        name = f"{case.text}, {steps} steps, {target.rpartition(':')[2]}"
        answered = answers_of(target, seen["calls"])
        late = [kind for kind, _ in answered[SKIPPED:]]
        after = answered[SETTLED - 1][1]
        discarded = sum(end > after for whose, end in seen["discarded"] if whose == target)
        limit = 2 if steps <= STEPS[0] else 3
        verdicts += [
            Goal(f"{name}: programs at a time", seen["programs"].get(target, 0), limit),
            Goal(
                f"{name}: share compiled after the {SKIPPED}th",
                late.count("compiled") / len(late),
                SHARE,
                at_least=True,
            ),
            Goal(f"{name}: discarded runs after the {SETTLED}th", discarded, 0),
        ]
    in_loops = [end for whose, end in seen["discarded"] if whose in loops_in(seen["calls"])]
    print(f"  {case.name}, {steps} steps: {len(in_loops)} runs of loops discarded", file=sys.stderr, flush=True)
    return verdicts


def loops_in(calls: Sequence[tuple[str, str, float]]) -> set[str]:
    """The lifted loops: their names end with a line."""
    return {target for target, _, _ in calls if target.rpartition(":")[2].isdigit()}


def answers_of(target: str, calls: Sequence[tuple[str, str, float]]) -> list[tuple[str, float]]:
    """What answered each call of a function, and when. A compiled round of a loop has one of them."""
    loops = loops_in(calls)
    found = [(kind, end) for name, kind, end in calls if name == target or (name in loops and kind == "compiled")]
    return sorted(found, key=lambda each: each[1])


# --- in the child -----------------------------------------------------------------------------------------------------


def watch(out: Path, checkout: str, program: str) -> None:
    """Run a checkout's program under accel, and write what was seen of its calls."""
    from accel.dispatch.compiling import Compiling
    from accel.platform import timeline
    from accel.policy.account import Account

    discarded: list[tuple[str, float]] = []
    programs: dict[str, int] = defaultdict(int)

    def note_discarded(account: Any) -> None:
        discarded.append((account._name, time.perf_counter()))

    def note_programs(compiling: Any) -> None:
        name = compiling._name
        programs[name] = max(programs[name], len(compiling._paths.with_program))

    follow(Account, "charge_discarded", note_discarded)
    follow(Compiling, "finish", note_programs)
    timeline.start()
    sys.argv = ["accel.run", "--quiet", "--pygcm", checkout, program]
    try:
        runpy.run_module("accel.run", run_name="__main__", alter_sys=True)
    finally:
        calls = [(call.target, call.kind, call.end) for call in timeline.calls or ()]
        out.write_text(json.dumps({"calls": calls, "discarded": discarded, "programs": programs}))


def follow(owner: type, method: str, note: Callable[[Any], None]) -> None:
    """Have `note` called with the object after each call of one of its methods."""
    function = getattr(owner, method)

    def followed(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(self, *args, **kwargs)
        finally:
            note(self)

    setattr(owner, method, followed)


if __name__ == "__main__":
    harness.run_command(main)
