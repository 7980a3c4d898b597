"""Words: figures formatted for people, and the columns and groups that all views of a report share.

An unknown figure is None, and is shown as "-".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from accel.platform.ledger import State


def number(value: float | None, pattern: str) -> str:
    """Format a number by a format specification."""
    return "-" if value is None else f"{value:{pattern}}"


def in_ms(value: float | None) -> str:
    """Return milliseconds to three digits, without the unit."""
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def as_factor(value: float | None) -> str:
    """Return a speed-up, such as 2.5x. Below 0.1 its digits say nothing: the calls were too few for the costs."""
    if value is None:
        return "-"
    return "0.1x or less" if value < 0.095 else f"{value:.2g}x" if value < 10 else f"{value:.0f}x"


def plural(count: int, noun: str, several: str | None = None) -> str:
    """Return a count with its noun, such as "1 call" and "2 calls". several: the plural, if it takes more than an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {several or noun + 's'}"


def from_shared(programs: Iterable[Mapping[str, Any]]) -> str:
    """Return how many of these programs, as dicts of a report, were found in a shared folder: "" if none."""
    counts = Counter(program["shared"] for program in programs if program.get("shared"))
    return "".join(f", {count} of them in {folder}" for folder, count in counts.items())


def in_s(seconds: float) -> str:
    """Return seconds with the unit; short times to a millisecond."""
    return f"{seconds:.1f} s" if abs(seconds) >= 1 else f"{seconds:.3f} s"


def outward(ends: Sequence[float]) -> list[float]:
    """Round a range of seconds to two digits, the least down and the most up."""
    return [_to_two_digits(seconds, how) for seconds, how in zip(ends, (math.floor, math.ceil), strict=True)]


def _to_two_digits(seconds: float, how: Callable[[float], int]) -> float:
    if seconds <= 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return how(round(seconds / unit, 9)) * unit  # 0.29 / 0.01 lies below 29


def in_range(ends: Sequence[float]) -> str:
    """Return a range of seconds, rounded outward, without the unit; once, if both ends read alike.

    >>> [in_range(ends) for ends in ([12.2, 13.9], [12.0, 12.0], [0.0421, 0.29], [268.0, 274.0])]
    ['12 to 14', '12', '0.042 to 0.29', '260 to 280']
    """
    return " to ".join(dict.fromkeys(f"{float(f'{each:.2g}'):.15g}" for each in outward(ends)))


def in_time(seconds: float) -> str:
    """Return a time with a readable unit, to three digits.

    >>> [in_time(seconds) for seconds in (4.2e-05, 0.0123, 10.6, 7384.0)]
    ['42 us', '12.3 ms', '10.6 s', '123 min']
    """
    _, unit, name = next(row for row in _UNITS if abs(seconds) >= row[0])
    value = seconds / unit
    return f"{value:.0f} {name}" if abs(value) >= 99.95 else f"{value:.3g} {name}"


_UNITS = ((120.0, 60.0, "min"), (0.9995, 1.0, "s"), (0.9995e-3, 1e-3, "ms"), (0.0, 1e-6, "us"))
"""Units of time: the seconds from which a unit is used, the unit in seconds, and its name."""


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
    ("error", lambda each: number(each["max_rel_error"], ".1g")),
)


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
