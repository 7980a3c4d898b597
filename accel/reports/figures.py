"""Figures of each function and the gain of the whole run, as plain dicts.

They are exactly the content of the JSON report. Text and Markdown are views of them.
"""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from accel.platform import config, freed, ledger, versions
from accel.platform.ledger import BUSY, Ledger, State
from accel.platform.reasons import Refusal

SCHEMA = 2
_DISTRIBUTIONS = ("pygcm-accel", *versions.FLOORS, *versions.OPTIONAL)

GAINED, LOST, EVEN, UNKNOWN = "gained", "lost", "even", "unknown"
"""Verdicts on a run, all costs counted: it gained time, it lost time, the difference is small, or nobody can tell."""

EVEN_S, EVEN_SHARE, EVEN_WIDTH = 0.05, 0.01, 0.1
"""Maximum gain or loss that counts as EVEN, in seconds or as a share of the run, as estimates are not exact; and the
width of a wider range that still does, as a share of the run. Guesses."""

UNSEEN_COST, BUSY_DOUBT = 0.25, 0.15
"""Share of its costs that accel may have cost without seeing it: the compiling process beside the program, and caches.
Measured on PyGCM: 0.9 s of 4.5 in first runs, 0.4 of 2.2 in later ones. And the share by which NumPy's time for the
compiled calls may be wrong where other programs stretch it to twice its length. Guess."""

MOST_UNSAMPLED = 0.2
"""Share of the compiled calls' time of which nobody knows how long NumPy takes, above which nobody knows it of the run.
A few iterations of a loop take as long as thousands of calls of its functions."""


def _versions() -> dict[str, str | None]:
    return {"python": platform.python_version(), **{name: versions.installed(name) for name in _DISTRIBUTIONS}}


def median_ms(seconds: Iterable[float]) -> float | None:
    """Return the median in milliseconds; None if `seconds` is empty."""
    kept = tuple(seconds)
    return 1e3 * median(kept) if kept else None


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _reasons(refusals: Mapping[Refusal, int]) -> list[dict[str, Any]]:
    """Return the refusals, the most frequent first."""
    ordered = sorted(refusals.items(), key=lambda item: (-item[1], item[0].reason, item[0].where, item[0].detail))
    return [
        {"id": refusal.reason, "where": refusal.where, "why": refusal.why, "hint": refusal.hint, "count": count}
        for refusal, count in ordered
    ]


def _refusals(book: Ledger) -> Counter[Refusal]:
    """Return the refusals that kept calls on NumPy, including pending waits if nothing has been compiled."""
    refusals = Counter(book.refusals)
    # calls that waited for a program were not refused one by one: they are what the counted refusals leave over
    awaited = book.waits() if book.waits is not None and book.state is State.NUMPY else None
    if awaited is not None:
        refusals[awaited] = book.numpy_calls - refusals.total()
    elif book.state is State.NUMPY and not refusals:  # it was called before anything was decided
        refusals[Refusal("wait.calls")] = book.numpy_calls
    # without counts of 0 and below, which arise where paths were refused besides calls
    return +refusals


def _differences(book: Ledger) -> list[dict[str, Any]]:
    """Return the differences beyond the tolerance, the worst first."""
    ordered = sorted(book.differences.values(), key=lambda each: (-each.worst.error, each.worst.field))
    return [
        {
            "field": each.worst.field + each.worst.place,
            "what": each.worst.what,
            "error": each.worst.error,
            "points": each.worst.points,
            "verdict": each.verdict,
            "count": each.count,
        }
        for each in ordered
    ]


def _transfers(book: Ledger) -> dict[str, Any]:
    """Return the bytes that compiled calls moved: by field, most first, with the lines that read or wrote each
    field."""
    handed: Counter[str] = sum((each.handed() for each in book.transfers), Counter())
    fetched: Counter[str] = sum((each.fetched() for each in book.transfers), Counter())
    return {
        "launches": sum(each.launches for each in book.transfers),
        "handed": dict(handed.most_common()),
        "fetched": dict(fetched.most_common()),
        "constants": sum(each.constants for each in book.transfers),
        "held_rounds": book.held_rounds,
        "not_held": dict(book.not_held.most_common()),
        "lines": {
            way: lines_of_all({name: [line] for name, line in each.lines()[at].items()} for each in book.transfers)
            for at, way in enumerate(("handed", "fetched"))
        },
    }


def lines_of_all(parts: Iterable[Mapping[str, Iterable[str]]]) -> dict[str, list[str]]:
    """Return the lines of several programs or processes, by field, each once."""
    found: dict[str, dict[str, None]] = {}
    for each in parts:
        for name, lines in each.items():
            found.setdefault(name, {}).update(dict.fromkeys(lines))
    return {name: list(lines) for name, lines in found.items()}


def figures_of(book: Ledger) -> dict[str, Any]:
    """Return the figures of one function."""
    numpy_ms, compiled_ms = median_ms(book.numpy_s), median_ms(book.compiled_s)
    return {
        "target": book.target,
        "state": str(book.state),
        "calls": book.calls,
        "compiled_calls": book.compiled_calls,
        "numpy_calls": book.numpy_calls,
        "inlined_calls": book.inlined_calls,
        "variants": book.variants,
        "compile_s": book.compile_s,
        "numpy_ms": numpy_ms,
        "compiled_ms": compiled_ms,
        "per_call_speedup": _ratio(numpy_ms, compiled_ms),
        "speedup": _speedup(book.spent_s, book.saved_s) if book.compiled_calls else None,
        "max_rel_error": book.max_rel_error,
        "numpy_s": max(0.0, book.numpy_total_s),  # calls at rest are sampled: after a few, the sum may lie below 0
        "compiled_s": book.compiled_total_s,
        "gained_s": book.gained_s,
        "spread_s": book.spread_s,
        "unsampled_calls": book.unsampled_calls,
        "samples": len(book.numpy_s),
        "costs_s": ledger.real_costs(book.costs),
        "saved_s": book.saved_s,
        "checks": book.comparisons,
        "copying_s": median(book.copy_s) * book.compiled_calls if book.copy_s else None,
        "transfers": _transfers(book),
        "differences": _differences(book),
        "doubtful_since": book.doubtful_since,
        "programs": [] if book.describe is None else book.describe(),
        "reasons": _reasons(_refusals(book)),
    }


def _speedup(spent_s: float, saved_s: float) -> float | None:
    """Return NumPy's estimated time relative to the actual time: above 1 exactly if time was saved."""
    return _ratio(max(0.0, spent_s + saved_s), spent_s)


def verdict(wall_s: float, numpy_s: tuple[float, float] | None) -> str:
    """Return the verdict on a run. numpy_s: the least and the most that it would have taken without accel, if known."""
    if numpy_s is None:
        return UNKNOWN
    little = max(EVEN_S, EVEN_SHARE * wall_s)
    least, most = numpy_s[0] - wall_s, numpy_s[1] - wall_s
    if least > little:
        return GAINED
    if most < -little:
        return LOST
    return EVEN if most - least < max(2 * EVEN_S, EVEN_WIDTH * wall_s) else UNKNOWN


def _numpy_range(
    functions: list[dict[str, Any]], saved_s: float, cost_s: float, wall_s: float, stretch: float, doubt_s: float
) -> tuple[float, float] | None:
    """Return the least and the most seconds that the run would have taken without accel; None if nobody can tell.

    stretch: by other programs, see `RunLedger.stretch`. doubt_s: seconds by which `saved_s` may be wrong besides.
    """
    compiled_s = sum(each["compiled_s"] for each in functions)
    if stretch > BUSY or sum(map(_unsampled_s, functions)) > MOST_UNSAMPLED * compiled_s:
        return None
    usual_s = sum(map(_usual_s, functions))
    doubt_s += sum(each["spread_s"] for each in functions) + BUSY_DOUBT * (stretch - 1.0) * usual_s
    numpy_s = wall_s + saved_s
    return max(0.0, numpy_s - doubt_s - UNSEEN_COST * cost_s), max(0.0, numpy_s + doubt_s)


def _usual_s(function: dict[str, Any]) -> float:
    """Return the seconds that NumPy would have taken for a function's compiled calls."""
    return float(max(0.0, function["compiled_s"] + function["gained_s"]))


def _freed_range(functions: list[dict[str, Any]], wall_s: float) -> tuple[float, float]:
    """Return the least and the most seconds that calls have gained by freed memory that was kept.

    The calls of functions of which none was measured may have gained nothing.
    """
    targets = freed.current.targets
    measured = [each for each in functions if targets is None or each["target"] in targets]
    least, most = freed.current.factor or (1.0, 1.0)
    return (least - 1.0) * calls_s(measured, wall_s), (most - 1.0) * calls_s(functions, wall_s)


def calls_s(functions: list[dict[str, Any]], wall_s: float) -> float:
    """Return the seconds that calls take on NumPy: no more than the run, although several threads may make them."""
    total: float = sum(each["numpy_s"] + _usual_s(each) for each in functions)
    return min(wall_s, total)


def _unsampled_s(function: dict[str, Any]) -> float:
    """Return the seconds of compiled calls of which nobody knows how long they take on NumPy."""
    calls = function["compiled_calls"] - function["checks"]
    return float(function["compiled_s"] * function["unsampled_calls"] / calls) if calls > 0 else 0.0


def _steps(functions: list[dict[str, Any]], pace: str | None, step: str | None) -> dict[str, Any] | None:
    """Return how many of the program's steps ran compiled; None if no catalogue defines a step.

    pace: the target whose calls are the steps. step: the target that a catalogue names. An iteration of the program's
    own loop that is not compiled may contain a compiled call of it.
    """
    called = {each["target"]: each for each in functions if each["calls"]}
    if pace not in called:
        return None
    total = called[pace]["calls"]
    compiled = sum(called[name]["compiled_calls"] for name in {pace, step} & called.keys())
    return {"total": total, "compiled": min(total, compiled)}


def totals_of(
    functions: list[dict[str, Any]],
    costs: Mapping[str, float],
    gained_s: float,
    wall_s: float,
    stretch: float = 1.0,
    freed_s: Sequence[float] = (0.0, 0.0),
) -> dict[str, Any]:
    """Return the sums over all functions, and the gain of the whole run.

    costs: by kind, including those that belong to no function. stretch: see `RunLedger.stretch`. freed_s: the least
    and the most seconds that calls have gained by freed memory that was kept.
    """
    costs_s = ledger.real_costs(costs)
    saved_s = gained_s - sum(costs_s.values()) + sum(freed_s) / 2
    numpy_s = _numpy_range(functions, saved_s, sum(costs_s.values()), wall_s, stretch, (freed_s[1] - freed_s[0]) / 2)
    errors = [each["max_rel_error"] for each in functions if each["max_rel_error"] is not None]
    return {
        **{key: sum(each[key] for each in functions) for key in ("calls", "compiled_calls", "numpy_calls")},
        **{key: sum(each[key] for each in functions) for key in ("numpy_s", "compiled_s", "compile_s")},
        "checks": sum(each["checks"] for each in functions),
        "copying_s": sum(each["copying_s"] or 0.0 for each in functions),
        "handed_bytes": sum(sum(each["transfers"]["handed"].values()) for each in functions),
        "fetched_bytes": sum(sum(each["transfers"]["fetched"].values()) for each in functions),
        "gained_s": gained_s,
        "costs_s": costs_s,
        "freed_s": sum(freed_s) / 2,
        "freed_range_s": list(freed_s),
        "saved_s": saved_s,
        "net": verdict(wall_s, numpy_s),
        "numpy_range_s": None if numpy_s is None else list(numpy_s),
        "samples": sum(each["samples"] for each in functions if each["compiled_calls"]),
        "stretch": stretch,
        "estimated_numpy_s": max(0.0, wall_s + saved_s),
        "speedup": _speedup(wall_s, saved_s),
        "max_rel_error": max(errors, default=None),
        "states": {str(state): sum(each["state"] == state for each in functions) for state in State},
    }


def _mode() -> str:
    """Return the mode of the run. It is "off" if accel was switched off, whatever the setting says."""
    settings = config.current()
    return settings.mode if settings.enabled else "off"


def _of_this_program(books: Iterable[Ledger]) -> list[Ledger]:
    """Return the ledgers, without uncalled ones of packages that are not imported.

    Such rows belong to catalogues of other programs. If nothing was called, all are returned, because their names may
    explain why.
    """
    books = list(books)
    used = {_package(book) for book in books if book.calls or book.inlined_calls}
    known = used | sys.modules.keys()
    return [book for book in books if not used or book.state is not State.UNCALLED or _package(book) in known]


def _package(book: Ledger) -> str:
    return book.target.partition(":")[0].partition(".")[0]


def figures_of_run() -> dict[str, Any]:
    """Return the figures of the run so far: schema 2 of the report."""
    run = ledger.current_run()
    wall_s = run.wall_s
    functions = [figures_of(book) for book in _of_this_program(ledger.ledgers())]
    return {
        "schema": SCHEMA,
        "versions": _versions(),
        "platform": run.platform,
        "device": run.device if run.devices == 1 else f"{run.devices} x {run.device}",
        "mode": _mode(),
        "beforehand": run.beforehand,
        "finishing": run.finishing,
        "precision": " and ".join(run.precisions) or None,
        "wall_s": wall_s,
        "steps": _steps(functions, run.pace, run.step),
        "functions": functions,
        "totals": totals_of(functions, run.costs, run.gained_s, wall_s, run.stretch, _freed_range(functions, wall_s)),
        "notes": list(run.notes),
    }


def finite(value: object) -> Any:
    """Return `value` with infinities and NaN as strings, because JSON has no such numbers."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return str(value)
    return value
