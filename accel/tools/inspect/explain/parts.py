"""The parts into which accel splits a function that stops at one line: what it would compile, and what lies between."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from accel.entry.callables import PlainCall
from accel.entry.lift.iterations import Splits, in_words, measured, stops_of
from accel.entry.lift.lifting import lifted_function_code
from accel.entry.lift.source import NotLiftable
from accel.platform.bodies import as_written
from accel.platform.reasons import Refusal


def parts(call: PlainCall, refusal: Refusal) -> dict[str, Any] | None:
    """Return the parts around a refused line of a function, and the lines between; None if it cannot be split.

    Also the share of a call that each part takes, where this process has measured it.
    """
    assert isinstance(call.function, FunctionType)
    code = as_written(call.function.__code__)
    stops = stops_of(code, [refusal], Splits())
    if not stops:
        return None
    try:
        places = [each.place for each in lifted_function_code(code, stops=stops).switches]
    except NotLiftable:
        return None
    return {"between": list(stops), "lines": places, "shares": [measured.get((call.name, place)) for place in places]}


def told(found: dict[str, Any]) -> str:
    """Say in one sentence what parts there are."""
    pairs = zip(found["lines"], found["shares"], strict=True)
    named = ((in_words(place), share) for place, share in pairs)
    lines = ", ".join(place if share is None else f"{place} ({share:.0%} of a call)" for place, share in named)
    return f"compiled apart: {lines}; line {', '.join(map(str, found['between']))} runs as it is"
