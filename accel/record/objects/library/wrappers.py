"""`contextlib.contextmanager`, known by the code that it puts around the program's generators.

It puts a function of its own in the place of the program's. That function is not followed; what it leads to is.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from contextlib import _GeneratorContextManager
from types import CodeType, FrameType, FunctionType
from typing import Any

from accel.record.objects.follow import WRAPPERS, substituted, target_function, why_not
from accel.record.state.instructions import instructions_of
from accel.record.state.opaque import call_opaque
from accel.record.state.recording import Recording


def _enclosed(function: FunctionType, name: str) -> Any:
    """A variable of the decorator's that its function sees."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    return cells[name].cell_contents


@functools.lru_cache(maxsize=256)
def _with_statements(code: CodeType) -> frozenset[int]:
    """The offsets of calls whose result a `with` statement enters at once."""
    found = instructions_of(code)
    return frozenset(
        call.offset
        for call, after, second in zip(found, found[1:], found[2:], strict=False)
        if after.opname == "BEFORE_WITH" or (after.opname, second.opname) == ("COPY", "LOAD_SPECIAL")
    )


def _is_entered(frame: FrameType) -> bool:
    return frame.f_lasti in _with_statements(frame.f_code)


def _context_manager(recording: Recording, function: FunctionType, args: tuple[Any, ...], kwargs: Any) -> Any:
    """A generator around the body of a `with` statement. Anywhere else it might outlive the call, half-way through."""
    generator = target_function(recording, _enclosed(function, "func"))
    if not isinstance(generator, FunctionType) or not _is_entered(sys._getframe(2)):  # beyond Followed.__call__
        return call_opaque(recording, function, args, kwargs)
    stop = why_not(recording, generator, args, as_generator=True)
    if stop is not None:
        recording.refuse(stop)
        return call_opaque(recording, function, args, kwargs)
    return _GeneratorContextManager(substituted(recording, generator), args, kwargs)


@contextlib.contextmanager
def _sample() -> Iterator[None]:
    """A function with the decorator."""
    yield


WRAPPERS[_sample.__code__] = _context_manager
