"""Programs with loops by data: recorded, rolled and compiled, and replayed on fresh calls."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from accel.backend.compile import compile_trace
from accel.backend.job import samples_of
from accel.compiler.loops import rolled
from accel.compiler.lower import Known
from accel.dispatch.replay import GuardFailure, Matcher, SideExit, Variant
from accel.dispatch.replay.commit import commit
from accel.ir.loop import body_of
from accel.record import Completed, Trace, record

Call = tuple[Any, ...]


def program_of(source: str) -> FunctionType:
    """The function `main` of a source text."""
    namespace: dict[str, Any] = {"__name__": "random_loops"}
    exec(compile(source, "<random loops>", "exec"), namespace)
    made: FunctionType = namespace["main"]
    return made


def traces_of(function: Callable[..., Any], calls: Iterable[Call]) -> Iterator[Trace]:
    """The traces of the paths that these calls take, their loops rolled."""
    assert isinstance(function, FunctionType)
    for call in calls:
        recorded = record(function, call, {}, max_nodes=20_000)
        if isinstance(recorded, Completed) and recorded.refusal is None:
            assert recorded.trace is not None
            yield rolled(recorded.trace)


def loops_of(trace: Trace) -> int:
    """How many loops by data are on its tape."""
    return sum(body_of(node) is not None for node in trace.tape.nodes)


class Program:
    """The program of one trace."""

    def __init__(self, trace: Trace) -> None:
        self._matcher = Matcher(trace)
        self._variant = Variant(trace, compile_trace(trace, Known(), samples_of(trace)))

    def run(self, call: Call) -> tuple[bool, Any]:
        """Whether the call takes its path, and the result. It has no effect otherwise."""
        values = self._matcher.match(call, {})
        if isinstance(values, GuardFailure):
            return False, None
        staged = self._variant.run(values)
        if isinstance(staged, SideExit):
            return False, None
        return True, commit(staged)  # type: ignore[arg-type]


def assert_agrees(
    function: Callable[..., Any], program: Program, calls: Iterable[Call], same: Callable[..., None], text: str = ""
) -> int:
    """Replay calls, and compare what they return and leave with what NumPy does. Returns how many took the path."""
    taken = 0
    for call in calls:
        twin = copy.deepcopy(call)
        is_taken, result = program.run(call)
        if is_taken:
            taken += 1
            expected = function(*twin)
            same(result, expected, text)
            same(call, twin, text)
            _assert_shared(result, expected, call, twin, text)
    return taken


def _assert_shared(result: Any, expected: Any, call: Call, twin: Call, text: str) -> None:
    """The same results are the same objects, and the same as arguments."""
    mine = [*(result if isinstance(result, tuple) else (result,)), *call]
    theirs = [*(expected if isinstance(expected, tuple) else (expected,)), *twin]
    for one in range(len(mine)):
        for other in range(one):
            assert (mine[one] is mine[other]) == (theirs[one] is theirs[other]) or isinstance(
                mine[one], (int, float, bool)
            ), text
