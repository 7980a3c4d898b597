"""Programs with branches: their paths are recorded, merged and compiled once, and replayed on fresh calls."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from accel.backend.compile import compile_trace
from accel.backend.executable import Executable
from accel.backend.job import samples_of
from accel.compiler.lower import Known
from accel.compiler.merge import Member, merged
from accel.dispatch.replay import GuardFailure, Matcher, SideExit, Variant
from accel.dispatch.replay.commit import commit
from accel.record import Completed, Trace, record


class State:
    """What a program keeps from call to call."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


Call = tuple[Any, ...]


def recordings(function: Callable[..., Any], calls: Iterable[Call]) -> Iterator[Trace]:
    """The traces of these calls, but for those that cannot be recorded."""
    assert isinstance(function, FunctionType)
    for call in calls:
        recorded = record(function, call, {}, max_nodes=20_000)
        if isinstance(recorded, Completed) and recorded.refusal is None:
            assert recorded.trace is not None
            yield recorded.trace


def traces_of(function: Callable[..., Any], calls: Iterable[Call]) -> list[Trace]:
    """The traces of the paths that these calls take, each path once."""
    found: dict[Any, Trace] = {}
    for trace in recordings(function, calls):
        key = (
            str([(node.rule.name, node.where, node.shape) for node in trace.tape.nodes]),
            str([(each.where, each.expected) for each in trace.tape.outcomes]),
        )
        found.setdefault(key, trace)
    return list(found.values())


class Replayed:
    """The program of one trace. executable: one that there is already."""

    def __init__(self, trace: Any, executable: Executable | None = None) -> None:
        self.trace: Any = trace
        self._executable = executable or compile_trace(trace, Known(), samples_of(trace))
        self.matcher = Matcher(trace)
        self.variant = Variant(trace, self._executable)

    def run(self, call: Call) -> tuple[bool, Any]:
        """Whether the call takes a path of the program, and its result. It has no effect otherwise."""
        values = self.matcher.match(call, {})
        if isinstance(values, GuardFailure):
            return False, None
        staged = self.variant.run(values)
        assert not isinstance(staged, tuple)
        if isinstance(staged, SideExit):
            return False, None
        return True, commit(staged)  # type: ignore[arg-type]


class Merged(Replayed):
    """One program of several traces."""

    def __init__(self, traces: list[Trace]) -> None:
        super().__init__(merged(traces))

    def admit(self, trace: Trace) -> None:
        """Let the program take the calls of one more path, as it is. Raises NotMergeable."""
        more = self.trace.with_member(Member(trace, self.trace.placement_of(trace)))
        super().__init__(more, self._executable)


def assert_agrees(function: Callable[..., Any], program: Replayed, calls: Iterable[Call], text: str = "") -> int:
    """Replay calls, and compare what they return and leave with what NumPy does. Returns how many took a known path."""
    taken = 0
    for call in calls:
        twin = copy.deepcopy(call)
        is_known, result = program.run(call)
        if not is_known:
            continue
        taken += 1
        expected = function(*twin)
        assert_same(result, expected, text)
        assert_same(call, twin, text)
        assert identities((call, result)) == identities((twin, expected)), text
    return taken


def identities(value: Any) -> list[tuple[int, int]]:
    """Of each array in a value, the first one that is the same object, and the first that shares memory with it."""
    arrays = list(_arrays(value))
    return [
        (
            next(at for at, other in enumerate(arrays) if other is array),
            next(at for at, other in enumerate(arrays) if other is array or np.shares_memory(other, array)),
        )
        for array in arrays
    ]


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple, State)):
        for part in value if not isinstance(value, State) else vars(value).values():
            yield from _arrays(part)


def assert_same(got: Any, expected: Any, text: str = "") -> None:
    """The same types, names, shapes and dtypes, and nearly the same numbers."""
    assert type(got) is type(expected), f"{type(got)} for {type(expected)}\n{text}"
    if isinstance(expected, State):
        assert list(vars(got)) == list(vars(expected)), text
        for name, value in vars(expected).items():
            assert_same(getattr(got, name), value, text)
    elif isinstance(expected, dict):
        assert list(got) == list(expected), text
        assert_same(list(got.values()), list(expected.values()), text)
    elif isinstance(expected, (tuple, list, deque)):
        assert len(got) == len(expected), text
        for mine, theirs in zip(got, expected, strict=True):
            assert_same(mine, theirs, text)
    elif isinstance(expected, (np.ndarray, np.generic, float)):
        assert np.shape(got) == np.shape(expected), text
        assert np.asarray(got).dtype == np.asarray(expected).dtype, text
        if not np.array_equal(got, expected):  # most often, and soon known
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11, err_msg=text)
    else:
        assert got == expected, text
