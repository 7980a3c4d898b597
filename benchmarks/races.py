"""One decorated function against itself on NumPy: the same results over many calls, then the times of both in turn.

`kernels` and `collection` make contests of what they hold, and print the same rows. A row tells times in ms, the ratio,
the state that accel reports ("numpy" where most of the timed calls ran there), its reasons, and what was wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import inspect
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import accel
from accel.platform import config
from accel.platform.bodies import as_written
from accel.platform.spelling import function_name
from benchmarks import harness, plots
from benchmarks.agreement import Tolerance, difference, outcome
from benchmarks.harness import BadInput

T = TypeVar("T")

SETTLED = ("compiled", "demoted", "inlined")
"""States in accel's report after which nothing more is to be waited for."""

SETS = 8
"""Of arguments, in the timing."""

JUDGED_CALLS, JUDGED_S = 300, 8.0
"""Calls, or seconds of them, in which accel may still find that a program is slower, as it would in a longer run."""

ASKED_EVERY = 16
"""So many of these calls lie between two looks at whether it has: a report in between disturbs the calls after it."""

LOOSE = 1e-3
"""A comparison within more than this shows little, which a row then says."""

LEAST = 0.97
"""A compiled kernel below this part of NumPy's speed counts as slower."""


@dataclass(frozen=True)
class Contest:
    """function: decorated, called with what `arguments()` makes, afresh for every call. size: as the table shows it."""

    name: str
    size: int | str
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    tolerance: Tolerance

    @property
    def plain(self) -> Callable[..., Any]:
        """The function as it was before it was decorated, and before parts of it were outlined."""
        own = inspect.unwrap(self.function)
        made = FunctionType(as_written(own.__code__), own.__globals__, own.__name__, own.__defaults__, own.__closure__)
        made.__kwdefaults__ = own.__kwdefaults__
        return made


@dataclass(frozen=True)
class Effort:
    """calls: validated, before and after settling. settle_s: longest wait for a compile. budget_s: of timing."""

    calls: int
    settle_s: float
    budget_s: float


def add_options(arguments: argparse.ArgumentParser, effort: Effort) -> None:
    """Add the options that each command of races has. effort: the defaults."""
    number, seconds = harness.positive_int, harness.positive_float
    arguments.add_argument("--only", nargs="+", default=[], metavar="NAME", help="kernels to run; default: all")
    arguments.add_argument("--calls", type=number, default=effort.calls, help="validating calls, twice (%(default)s)")
    arguments.add_argument("--settle", type=seconds, default=effort.settle_s, help="s to await a compile (%(default)g)")
    arguments.add_argument("--budget", type=seconds, default=effort.budget_s, help="s of timing each (%(default)g)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON")


def named(known: Mapping[str, T], names: Sequence[str]) -> list[T]:
    """Those of these names, or all. Raises BadInput for a name that is none."""
    for name in names:
        if name not in known:
            raise BadInput(f"--only {name}: no such kernel; there are {', '.join(known)}")
    return [known[name] for name in names] or list(known.values())


def held(contest: Contest, effort: Effort) -> dict[str, Any]:
    """Validate, let compiling finish, validate again, then time: one row. Times in ms."""
    wrong = validate(contest, effort.calls)
    settle(contest, effort.settle_s)
    let_judge(contest)
    with within_budget():
        let_judge(contest)
        wrong += validate(contest, effort.calls)
        before = reported(contest.function)["compiled_calls"]
        times = timed(contest, effort.budget_s)
    entry = reported(contest.function)
    is_compiled = entry["compiled_calls"] - before > len(times["accel"]) / 2
    ours, theirs = harness.median_ms(times["accel"]), harness.median_ms(times["numpy"])
    return {
        "kernel": contest.name,
        "n": contest.size,
        "numpy_ms": theirs,
        "accel_ms": ours,
        "ratio": theirs / ours,
        "state": entry["state"] if is_compiled or entry["state"] != "compiled" else "numpy",
        "reasons": entry["reasons"],
        "tolerance": contest.tolerance.relative,
        "wrong": wrong,
    }


@contextlib.contextmanager
def within_budget() -> Iterator[None]:
    """As programs run by default: where calls wait for their programs, each of them is examined, whatever it costs."""
    before = config.current()
    config.set_current(replace(before, ahead_of_time=True))
    try:
        yield
    finally:
        config.set_current(before)


def validate(contest: Contest, calls: int) -> list[str]:
    """What differed from NumPy over `calls` calls with fresh arguments; empty when all was equal."""
    found = []
    for _ in range(calls):
        arguments = contest.arguments()
        expected = outcome(contest.plain, copy.deepcopy(arguments))
        got = outcome(contest.function, arguments)
        if text := difference(got, expected, contest.tolerance):
            found.append(text)
    return found


def settle(contest: Contest, limit_s: float) -> None:
    """Call until accel reports the function compiled or given up, or time is out."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end and not settled(reported(contest.function)):
        outcome(contest.function, contest.arguments())


def let_judge(contest: Contest) -> None:
    """Call until accel has given a slow program up, or has had the time to."""
    spent_s, calls = 0.0, 0
    while calls < JUDGED_CALLS and spent_s < JUDGED_S:
        # some kernels' arguments take far longer to make than their calls
        if calls % ASKED_EVERY == 0 and reported(contest.function)["state"] == "demoted":
            return
        arguments = contest.arguments()
        began = time.monotonic()
        outcome(contest.function, arguments)
        spent_s, calls = spent_s + time.monotonic() - began, calls + 1


def settled(entry: Mapping[str, Any]) -> bool:
    """Whether more calls would change nothing: it is compiled, or there is a reason that is not one for waiting."""
    final = [reason for reason in entry["reasons"] if not reason["id"].startswith("wait.")]
    return entry["state"] in SETTLED or bool(final)


def timed(contest: Contest, budget_s: float) -> dict[str, list[float]]:
    """Time both ways in turn on equal arguments that do not make the function raise; s per call.

    They change from round to round: a processor learns which way the branches of one set go, as in no real program.
    """
    rivals = {"numpy": contest.plain, "accel": contest.function}
    sets = [harmless(contest) for _ in range(SETS)]
    turns = (arguments for arguments in itertools.cycle(sets) for _ in rivals)
    return harness.interleaved(rivals, lambda: copy.deepcopy(next(turns)), rounds=200, budget_s=budget_s)


def harmless(contest: Contest) -> tuple[Any, ...]:
    """Arguments that do not make the function raise."""
    while True:
        arguments = contest.arguments()
        if not outcome(contest.plain, copy.deepcopy(arguments)).error:
            return arguments


def reported(function: Callable[..., Any]) -> dict[str, Any]:
    """The function's entry in accel's report, with the compiled calls of its parts; `uncalled` when it has none."""
    target = function_name(function.__module__, function.__qualname__)
    entries = json.loads(accel.report(format="json"))["functions"]
    parts = [each for each in entries if each["target"].startswith(f"{target}:") and each["state"] == "compiled"]
    for entry in entries:
        if entry["target"] == target:
            compiled = sum(each["compiled_calls"] for each in (entry, *parts))
            return {**entry, "compiled_calls": compiled, "state": "compiled" if parts else entry["state"]}
    return {"state": "uncalled", "reasons": []}


# --- many of them -----------------------------------------------------------------------------------------------------


def totals(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The rows and what they come to, as it goes into JSON; `wrong` counts rows with any difference from NumPy."""
    compiled = [row for row in rows if row["state"] == "compiled"]
    return {
        "kernels": list(rows),
        "geometric_mean": harness.geometric_mean(row["ratio"] for row in rows),
        "geometric_mean_compiled": harness.geometric_mean(row["ratio"] for row in compiled),
        "compiled": len(compiled),
        "wrong": sum(bool(row["wrong"]) for row in rows),
        "slower": [f"{row['kernel']} {row['n']}" for row in compiled if row["ratio"] < LEAST],
        "slowest": min((row["ratio"] for row in compiled), default=float("nan")),
    }


def write(result: Mapping[str, Any], out: str) -> None:
    """JSON, and a plot beside it."""
    harness.write_json(out, result)
    for path in plots.of_kernels(result, Path(out)):
        print(f"plot: {path}")


def describe(result: Mapping[str, Any]) -> str:
    """The rows as a table, and lines of totals."""
    header = ["kernel", "n", "NumPy ms", "accel ms", "ratio", "state", "remark"]
    return f"{harness.markdown_table(header, cells(result['kernels']))}\n\n{summary(result)}"


def cells(rows: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    """The cells of each row."""
    keys = ("kernel", "n", "numpy_ms", "accel_ms", "ratio", "state")
    return [[*(row[key] for key in keys), remark(row)] for row in rows]


def summary(result: Mapping[str, Any]) -> str:
    """What all rows come to, in a line or two."""
    slower = result["slower"]
    return (
        f"{len(result['kernels'])} rows: {result['compiled']} compiled, {result['wrong']} wrong; geometric mean "
        f"{result['geometric_mean']:.2f}, of the compiled {result['geometric_mean_compiled']:.2f}; "
        f"{len(slower)} compiled ones below {LEAST}{': ' if slower else ''}{', '.join(slower)}"
    )


def remark(row: Mapping[str, Any]) -> str:
    """What a reader should know of a row: wrong results first, else why it stayed on NumPy, or says little."""
    if row["wrong"]:
        return f"WRONG {len(row['wrong'])}x: {row['wrong'][0]}"
    if row["reasons"]:
        return str(row["reasons"][0]["id"])
    return f"chaotic: compared within {row['tolerance']:.2g}" if row["tolerance"] > LOOSE else ""
