"""The brief report: gains, losses and advice, in fifteen lines, then what to change. `text` has the rest."""

from __future__ import annotations

from textwrap import shorten
from typing import Any

from accel.platform.ledger import State
from accel.reports.advice import Advice
from accel.reports.layout import WIDTH, flow
from accel.reports.summary import summary_of, was_off
from accel.reports.words import as_factor, in_s, loses, plural, signed_s

LINES = 15
"""Usual number of lines of a brief report, without what to change to be faster."""

MOST = 3
"""Maximum number of functions, and of hints, per group."""

LEAST_SHARE = 0.01
"""Minimum share of the run for which a function on NumPy is shown. Others are only counted."""


def brief(figures: dict[str, Any], advice: Advice) -> str:
    """Return the brief report, within 100 columns.

    It shows as many functions as fit into LINES, but at least one of each kind, and all differences and notes.
    """
    lines = _lines(figures, advice, MOST)
    for most in range(MOST - 1, 0, -1):
        if len(lines) > LINES:
            lines = _lines(figures, advice, most)
    lines += _group("to be faster", figures.get("faster", []), 0, whole=True)
    return "\n".join(lines) + "\n"


def _lines(figures: dict[str, Any], advice: Advice, most: int) -> list[str]:
    """Return the report with at most `most` functions of each kind."""
    functions, called = figures["functions"], figures["totals"]["calls"]
    helped = sorted((each for each in functions if _helped(each)), key=lambda each: -each["saved_s"])
    losing = sorted(filter(loses, functions), key=lambda each: each["saved_s"])
    on_numpy = sorted((each for each in functions if _stayed(each)), key=lambda each: -each["numpy_s"])
    shown = [each for each in on_numpy if each["numpy_s"] >= LEAST_SHARE * figures["wall_s"]] or on_numpy[:1]
    lines = summary_of(figures, advice, brief=True).split("\n")
    lines += _group("what helped", [_gain(each) for each in helped[:most]], len(helped))
    did_not = [*map(_stay, shown[:most]), *(f"{_gain(each)}, at a loss so far" for each in losing[:1])]
    lines += _group("what did not", did_not, len(on_numpy) + len(losing))
    if not was_off(figures):
        lines += _group("what to do", _hints(shown[:MOST])[:most] if called else _start(advice), 0)
    different = [each for each in functions if each["differences"]]
    if different:
        names = ", ".join(each["target"] for each in different)
        lines += ["", *flow(f"differed from NumPy beyond the tolerance in a comparison: {names}", "", "  ", 2)]
    return lines + [line for note in figures["notes"] for line in flow(f"note: {note}", "", "  ", 2)]


def _start(advice: Advice) -> list[str]:
    """Return the advice if no accelerated function was called; empty if a refusal ended the run."""
    return [] if advice.refused else [advice.start]


def _helped(function: dict[str, Any]) -> bool:
    return bool(function["state"] == State.COMPILED and function["compiled_calls"] and not loses(function))


def _stayed(function: dict[str, Any]) -> bool:
    return bool(function["state"] in (State.NUMPY, State.DEMOTED) and function["calls"])


def _group(title: str, entries: list[str], total: int, *, whole: bool = False) -> list[str]:
    """Return a titled group; empty without entries.

    total: number of functions of its kind; 0 if it lists no functions. whole: whether to shorten no entry.
    """
    if not entries:
        return []
    some = f" ({len(entries)} of {plural(total, 'function')})" if total > len(entries) else ""
    return [
        "",
        f"{title}{some}",
        *(line for entry in entries for line in flow(entry, "  ", "    ", None if whole else 2)),
    ]


def _gain(function: dict[str, Any]) -> str:
    calls = f"{function['compiled_calls']} of {plural(function['calls'], 'call')} compiled"
    return f"{function['target']}: {signed_s(function['saved_s'])} ({as_factor(function['speedup'])}), {calls}"


def _stay(function: dict[str, Any]) -> str:
    """Return the line of the function's most frequent refusal, and its reason."""
    taken = f"{function['target']}: {in_s(function['numpy_s'])} on NumPy"
    if not function["reasons"]:
        return taken
    first = function["reasons"][0]
    place = f"{first['where']}: " if first["where"] else ""
    return f"{taken}: {place}{shorten(first['why'], WIDTH, placeholder='...')} [{first['id']}]"


def _hints(functions: list[dict[str, Any]]) -> list[str]:
    hints: dict[str, str] = {}
    for each in functions:
        for first in each["reasons"][:1]:
            hints.setdefault(first["hint"], first["where"])
    needed = {hint: where for hint, where in hints.items() if hint and not hint.startswith("none needed")}
    return [f"{where}: {hint}" if where else hint for hint, where in needed.items()]
