"""Whole processes from start to exit, NumPy and accel in turns, for runs of 1 to 100 s: what accel costs and gains.

`python -m benchmarks.starts [--pygcm DIR ...] [--cases NAME ...] [--seconds S ...]`. A run of S seconds is as many
steps as NumPy does in S seconds, counted in the first NumPy run; every other run does as many. Wall times hold
everything, imports and exit too. Each accelerated run from a cold cache has a new cache folder; the one after it, from
a warm cache, has the same folder again. The verdicts: no run may take longer than 1.15 times NumPy's and 2 s more, a
model as it comes has to be done in 0.6 of NumPy's time where that is 100 s, and no process may take 0.5 s longer to end
than NumPy's, counted from its program's last line. (What a single call costs is measured by `benchmarks.overheads`.)
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import cases, goals, harness
from benchmarks.cases import CASES, Case, Run, Start
from benchmarks.harness import Goal
from benchmarks.lockstep import ChildFailed

SECONDS = (1.0, 3.0, 10.0, 30.0, 100.0)
FACTOR, ALLOWANCE_S = 1.15, 2.0
"""What a start may cost at most, beside NumPy's wall time: JAX's import and all that is tried in vain."""

LONG_S, LONG_RATIO = 100.0, 0.6
"""From how many seconds of NumPy on a model as it comes has to be faster, and accel's share of NumPy's wall time."""

EXIT_S = 0.5
"""What a process may take longer to end than NumPy's. A quarter of a second of it is JAX: Python takes apart what was
imported, in `python -c "import jax"` too."""

QUIET = 0.8
"""The share of a core that a NumPy run gets on a machine without other load; where it gets less, wall times mislead."""

AGREEMENT = 1e-6
"""Largest difference between the totals of a program of ours on NumPy and under accel, relative."""

TOTALS = "difference of the totals"
"""The goal of which the table has no column: it is shown where it is missed."""

REPEATED_S = 10.0
"""Runs up to this length are repeated unless `--rounds` says otherwise: in short ones, noise weighs more."""

CACHES = ("cold", "warm")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.starts", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--pygcm", metavar="DIR", action="append", default=[], help="a checkout; repeatable")
    arguments.add_argument("--cases", metavar="NAME", nargs="+", default=[], help=f"of {', '.join(CASES)}")
    arguments.add_argument("--seconds", metavar="S", type=harness.positive_float, nargs="+", default=SECONDS)
    arguments.add_argument("--rounds", type=harness.positive_int, help="runs of each (3 up to 10 s, 1 beyond)")
    arguments.add_argument("--cache", choices=CACHES, nargs="+", default=CACHES, help="default: both")
    arguments.add_argument("--env", metavar="K=V", action="append", default=[], help="environment of all children")
    arguments.add_argument("--quick", action="store_true", help="one short run of each, to try it out")
    arguments.add_argument("--figures", action="store_true", help="a missed limit is shown, and is no failure")
    arguments.add_argument("--candidate", choices=["accel", "numpy"], default="accel", help="numpy: the own noise")
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 1 when a limit is missed (but for `--figures`), a total is wrong or a child failed."""
    options = parser().parse_args(argv)
    if options.quick:
        options.seconds, options.rounds = [0.5], 1
    checkouts = goals.checkouts_by_name(options.pygcm)
    wanted, remarks = cases.chosen(options.cases, checkouts)
    settings = harness.parse_settings(options.env)
    harness.check_writable(options.out)
    result = opened(options, settings, remarks)
    cases.compile_sources(harness.REPOSITORY)
    for case in wanted:
        try:
            measure(Start(case, checkouts, settings), options, result)
        except ChildFailed as failure:
            print(f"error: {failure}", file=sys.stderr)
            result["failed"].append(case.name)
    if options.out:
        harness.write_json(options.out, result)
    print(describe(result))
    return 0 if (is_right(result) if options.figures else all_met(result)) else 1


def opened(options: argparse.Namespace, settings: Mapping[str, str], remarks: list[str]) -> dict[str, Any]:
    """The result before anything is measured."""
    return {
        "benchmark": "starts",
        "quick": options.quick,
        "candidate": options.candidate,
        "rows": [],
        "goals": [],
        "skipped": remarks,
        "failed": [],
        "machine": harness.machine(),
        "versions": harness.versions(),
        "commit": harness.commit(),
        "settings": dict(settings),
        "date": time.strftime("%Y-%m-%d"),
    }


# --- measuring --------------------------------------------------------------------------------------------------------


def measure(start: Start, options: argparse.Namespace, result: dict[str, Any]) -> None:
    """Add one case's rows to `result`, which is written each time: a long run may be broken off."""
    with tempfile.TemporaryDirectory(prefix="accel-starts-") as scratch:
        trial(start, options.candidate, Path(scratch))
        for seconds in sorted(options.seconds):
            rounds = options.rounds or (3 if seconds <= REPEATED_S else 1)
            say(f"{start.case.name}, {seconds:g} s ...")
            load = os.getloadavg()[0]
            runs = in_turns(turns(start, options, Path(scratch) / f"{seconds:g}"), seconds, rounds)
            for cache in (cache for cache in CACHES if cache in options.cache):
                row = compared(start.case, seconds, cache, runs["numpy"], runs[cache])
                result["rows"].append({**row, "load": load, "runs": records(runs, ("numpy", cache))})
                result["goals"] += [goal.record() for goal in limits(start.case, row)]
            if options.out:
                harness.write_json(options.out, result)


def say(text: str) -> None:
    """Tell who waits what is going on."""
    print(text, file=sys.stderr, flush=True)


def trial(start: Start, candidate: str, scratch: Path) -> None:
    """A first start of either way, untimed: it reads the libraries from disk, and shows what does not work."""
    for way in dict.fromkeys(("numpy", candidate)):
        start.run(way, scratch / f"trial-{way}", scratch / "trial-cache", steps=2)


Turn = Callable[[int, int | None, float | None], Run]
"""One way's next run: its round, and so many steps or, where there is none yet, so many seconds of steps."""


def turns(start: Start, options: argparse.Namespace, scratch: Path) -> dict[str, Turn]:
    """The rivals. Cold and warm of one round share a cache folder, so that cold runs even where only warm counts."""

    def rival(way: str, kind: str) -> Turn:
        def run(round_: int, steps: int | None, seconds: float | None) -> Run:
            return start.run(way, scratch / f"{kind}-{round_}", scratch / f"cache-{round_}", steps, seconds)

        return run

    kinds = CACHES if "warm" in options.cache else ("cold",)
    return {"numpy": rival("numpy", "numpy"), **{kind: rival(options.candidate, kind) for kind in kinds}}


def in_turns(rivals: Mapping[str, Turn], seconds: float, rounds: int) -> dict[str, list[Run]]:
    """Run all rivals `rounds` times. NumPy's first run tells how many steps there are in `seconds`.

    NumPy comes first and last by turns; what fills a cache always comes before what uses it.
    """
    runs: dict[str, list[Run]] = {name: [] for name in rivals}
    runs["numpy"].append(rivals["numpy"](0, None, seconds))
    steps = len(runs["numpy"][0].times)
    accelerated = [name for name in rivals if name != "numpy"]
    for round_ in range(rounds):
        order = [*accelerated, "numpy"] if round_ % 2 else ["numpy", *accelerated]
        for name in order:
            if (name, round_) != ("numpy", 0):
                runs[name].append(rivals[name](round_, steps, None))
    return runs


def records(runs: Mapping[str, Sequence[Run]], ways: Sequence[str]) -> dict[str, list[dict[str, object]]]:
    """All runs of some ways, for JSON."""
    return {way: [run.record() for run in runs[way]] for way in ways}


# --- verdicts ---------------------------------------------------------------------------------------------------------


def compared(case: Case, seconds: float, cache: str, plain: Sequence[Run], fast: Sequence[Run]) -> dict[str, Any]:
    """One row: medians of all rounds, times in s, and what was allowed. seconds: asked for; numpy_s: what it was."""
    numpy_wall_s, accel_wall_s = (statistics.median(run.wall_s for run in runs) for runs in (plain, fast))
    return {
        "case": case.name,
        "seconds": seconds,
        "cache": cache,
        "steps": len(plain[0].times),
        "numpy_s": statistics.median(run.steps_s for run in plain),
        "numpy_wall_s": numpy_wall_s,
        "accel_wall_s": accel_wall_s,
        "ratio": accel_wall_s / numpy_wall_s,
        "allowed_s": allowed(case, seconds, numpy_wall_s),
        "exit_s": statistics.median(run.exit_s for run in fast),
        "numpy_exit_s": statistics.median(run.exit_s for run in plain),
        "page_faults": statistics.median(run.faults for run in fast),
        "numpy_page_faults": statistics.median(run.faults for run in plain),
        "total_error": total_error(plain[0], fast[0]),
        "numpy_share": min(run.cpu_s / run.wall_s for run in plain),
    }


def allowed(case: Case, seconds: float, numpy_wall_s: float) -> float:
    """The longest wall time, s, that an accelerated run may take."""
    most = FACTOR * numpy_wall_s + ALLOWANCE_S
    return min(most, LONG_RATIO * numpy_wall_s) if case.defaults and seconds >= LONG_S else most


def total_error(plain: Run, fast: Run) -> float:
    """How far the totals of a program of ours lie apart, relative; 0 for programs that give none."""
    if plain.total is None or fast.total is None:
        return 0.0 if plain.total is fast.total else math.inf
    return abs(fast.total - plain.total) / max(abs(plain.total), 1.0)


def limits(case: Case, row: Mapping[str, Any]) -> list[Goal]:
    """The goals of a row: wall time, exit, and that the program computed what it computes on NumPy."""
    of = f"{case.name}, {row['seconds']:g} s, {row['cache']}"
    return [
        Goal(f"wall time ({of})", row["accel_wall_s"], row["allowed_s"], "s"),
        Goal(f"exit ({of})", added_exit_s(row), EXIT_S, "s"),
        Goal(f"{TOTALS} ({of})", row["total_error"], AGREEMENT),
    ]


def added_exit_s(row: Mapping[str, Any]) -> float:
    """What the process takes longer to end than NumPy's does, s: taking apart what a program imported costs it both."""
    return float(row["exit_s"] - row["numpy_exit_s"])


def all_met(result: Mapping[str, Any]) -> bool:
    """Whether something was measured, nothing failed and no limit is missed."""
    return is_right(result) and all(goal["met"] for goal in result["goals"])


def is_right(result: Mapping[str, Any]) -> bool:
    """Whether something was measured, nothing failed and no total is wrong."""
    return bool(result["goals"]) and not result["failed"] and not wrong_totals(result)


def wrong_totals(result: Mapping[str, Any]) -> list[Goal]:
    """The goals that programs miss by what they computed."""
    return [Goal.from_record(goal) for goal in result["goals"] if not goal["met"] and goal["name"].startswith(TOTALS)]


# --- text -------------------------------------------------------------------------------------------------------------

HEADER = (
    "case", "cache", "NumPy, s", "NumPy wall", "accel wall", "accel / NumPy", "allowed", "", "exit, s", "NumPy's", "",
)  # fmt: skip
FAULTS = ("page faults", "NumPy's")
"""More of the header. Results that were published before they were counted have none."""


def describe(result: Mapping[str, Any]) -> str:
    """The rows as a table, wrong totals, what was skipped or failed, and where this was measured."""
    shown = result["machine"]
    met = sum(goal["met"] for goal in result["goals"])
    wrong = wrong_totals(result)
    parts = [
        "Quick run: it shows that all of this works; the figures mean nothing." if result["quick"] else "",
        harness.markdown_table(header(result["rows"]), [cells(row) for row in result["rows"]])
        if result["rows"]
        else "",
        "\n".join([*result["skipped"], *(f"- {name}: failed" for name in result["failed"])]),
        f"{met} of {len(result['goals'])} limits met",
        harness.goals_table(wrong) if wrong else "",
        disturbed(result["rows"]),
        f"{shown['cpu']}, {shown['cores']} cores, {shown['memory_gb']} GB; commit {result['commit'] or 'unknown'}; "
        + ", ".join(f"{name} {version}" for name, version in result["versions"].items()),
    ]
    return "\n\n".join(part for part in parts if part)


def disturbed(rows: Sequence[Mapping[str, Any]]) -> str:
    """A warning where other load took the processor away from NumPy; empty on a quiet machine."""
    busy = {f"{row['case']} {row['seconds']:g} s": row["numpy_share"] for row in rows if row["numpy_share"] < QUIET}
    if not busy:
        return ""
    shares = ", ".join(f"{name} {share:.0%}" for name, share in busy.items())
    return f"The machine was busy, and these verdicts say little. NumPy got so much of a core: {shares}"


def cells(row: Mapping[str, Any]) -> list[str]:
    """One row of the table; the verdicts on wall time and on exit stand behind their figures."""
    return [
        row["case"],
        row["cache"],
        f"{row['numpy_s']:.1f}",
        f"{row['numpy_wall_s']:.2f}",
        f"{row['accel_wall_s']:.2f}",
        f"{row['ratio']:.2f}",
        f"{row['allowed_s']:.2f}",
        "met" if row["accel_wall_s"] <= row["allowed_s"] else "MISSED",
        f"{row['exit_s']:.2f}",
        f"{row['numpy_exit_s']:.2f}",
        "met" if added_exit_s(row) <= EXIT_S else "MISSED",
        *(f"{row[name]:.0f}" for name in ("page_faults", "numpy_page_faults") if name in row),
    ]


def header(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The names of the cells of these rows."""
    return (*HEADER, *(FAULTS if all("page_faults" in row for row in rows) else ()))


if __name__ == "__main__":
    harness.run_command(main)
