"""Programs with loops by data: recorded, and their loops rolled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from accel.compiler.loops import rolled
from accel.ir.loop import body_of
from accel.record import Trace
from tests.compiler.merge.runs import Call, recordings


def program_of(source: str) -> FunctionType:
    """The function `main` of a source text."""
    namespace: dict[str, Any] = {"__name__": "random_loops"}
    exec(compile(source, "<random loops>", "exec"), namespace)
    made: FunctionType = namespace["main"]
    return made


def traces_of(function: Callable[..., Any], calls: Iterable[Call]) -> Iterator[Trace]:
    """The traces of the paths that these calls take, their loops rolled."""
    return map(rolled, recordings(function, calls))


def loops_of(trace: Trace) -> int:
    """How many loops by data are on its tape."""
    return sum(body_of(node) is not None for node in trace.tape.nodes)
