"""Words: figures as people read them, and the columns and groups that all views of a report share.

A figure that is not known is None, and is shown as "-".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accel.reports.figures import figures_of
from accel.reports.ledger import Ledger, State


def number(value: float | None, pattern: str) -> str:
    """Return a number by a format specification."""
    return "-" if value is None else f"{value:{pattern}}"


def in_ms(value: float | None) -> str:
    """Return milliseconds to three digits, without the unit."""
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def as_factor(value: float | None) -> str:
    """Return a speed-up, such as 2.5x."""
    return "-" if value is None else f"{value:.2g}x" if value < 10 else f"{value:.0f}x"


def plural(count: int, noun: str) -> str:
    """Return a number of things, such as "1 call" and "2 calls"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def in_s(seconds: float) -> str:
    """Return seconds with the unit; short times to a millisecond."""
    return f"{seconds:.1f} s" if abs(seconds) >= 1 else f"{seconds:.3f} s"


def signed_s(seconds: float) -> str:
    """Return seconds with a sign, + for 0."""
    return f"{'-' if seconds < 0 else '+'}{in_s(abs(seconds))}"


COLUMNS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("calls", lambda each: str(each["calls"])),
    ("compiled", lambda each: str(each["compiled_calls"])),
    ("numpy ms", lambda each: in_ms(each["numpy_ms"])),
    ("accel ms", lambda each: in_ms(each["compiled_ms"])),
    ("per call", lambda each: as_factor(each["per_call_speedup"])),
    ("saved s", lambda each: number(each["saved_s"], ".2f") if each["saved_s"] or each["compiled_calls"] else "-"),
    ("error", lambda each: number(each["max_rel_error"], ".0e")),
)
TITLES = tuple(title for title, _ in COLUMNS)


def cells_of(book: Ledger) -> dict[str, str]:
    """Return the cells of a function in the report's tables, by column."""
    given = figures_of(book)
    return {title: show(given) for title, show in COLUMNS}


def by_state(figures: dict[str, Any]) -> list[tuple[State, list[dict[str, Any]]]]:
    """Return the functions by state, ordered by total time, the largest first, and then by name."""
    groups = []
    for state in State:
        members = [each for each in figures["functions"] if each["state"] == state]
        groups.append((state, sorted(members, key=lambda each: (-_weight(each), each["target"]))))
    return [(state, members) for state, members in groups if members]


def _weight(function: dict[str, Any]) -> float:
    compiled = function["compiled_calls"] * (function["compiled_ms"] or 0.0)
    return float(compiled + function["numpy_calls"] * (function["numpy_ms"] or 0.0))


AT_A_LOSS = "at a loss so far"


def loses(function: dict[str, Any]) -> bool:
    """Whether a compiled function has cost more so far than it gained."""
    return bool(function["state"] == State.COMPILED and function["saved_s"] < 0)
