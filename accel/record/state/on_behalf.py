"""Calls on behalf of the program: what NumPy says of them, as warnings, names the program's line and module.

From the frame that calls NumPy, Python takes the line of a warning, the module that filters ask for, and the registry
of warnings already shown. So a frame with the recorded code's file, line and globals stands between accel and NumPy.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np

from accel.platform.own_code import is_of_project
from accel.platform.tracebacks import ON_BEHALF
from accel.record.state.instructions import raising

_CALL = (lambda function, args, kwargs: function(*args, **kwargs)).__code__.replace(co_name=ON_BEHALF)


@functools.lru_cache(maxsize=4096)
def _at(filename: str, line: int) -> CodeType:
    """The code of a call at a line of a file."""
    return _CALL.replace(co_filename=filename, co_firstlineno=line)


_READ = bool, int, float, complex, str, bytes, tuple, list, np.generic, type, FunctionType
"""Classes whose instances NumPy reads itself, whatever methods a class of the program's adds. Functions are followed
by those who call them."""

_KNOWN = frozenset((*_READ, type(None), slice, type(...), np.ndarray, np.float64, np.int64, np.bool_, np.ufunc))


def _members(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if type(value) in (list, tuple):
            yield from _members(value)
        elif type(value) is slice:
            yield from (value.start, value.stop, value.step)
        else:
            yield value


def _runs_code(kind: type) -> bool:
    """Whether objects of a class may run code of the program's where NumPy is given one, such as `__array__`."""
    if kind in _KNOWN or issubclass(kind, _READ):
        return False
    found = (getattr(value, "fget", value) for each in kind.__mro__ for value in vars(each).values())
    return any(isinstance(value, FunctionType) and is_of_project(value) for value in found)


def on_behalf(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> Any:
    """`function(*args, **kwargs)` as the innermost frame of recorded code would call it."""
    frame = recorded_frame()
    if frame is None:
        return function(*args, **(kwargs or {}))
    foreign = next(filter(_runs_code, map(type, _members((*args, *(kwargs or {}).values())))), None)
    if foreign is not None:
        recording = frame.f_globals.recording  # type: ignore[attr-defined]  # of substituted globals
        recording.break_("call.opaque", f"a {foreign.__name__} given to NumPy", touched=True)
    namespace: dict[str, Any] = frame.f_globals.namespace  # type: ignore[attr-defined]
    return FunctionType(_at(frame.f_code.co_filename, frame.f_lineno), namespace)(function, args, kwargs or {})


def frames_of(recording: object) -> Iterator[FrameType]:
    """Yield the frames of a recording's code on the stack, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if getattr(frame.f_globals, "recording", None) is recording:
            yield frame
        frame = frame.f_back


def recorded_frame() -> FrameType | None:
    """The innermost frame of recorded code, if there is one."""
    frame: FrameType | None = sys._getframe(1)
    # substituted globals are a dict of a class of its own; any others are the program's or accel's
    while frame is not None and (type(frame.f_globals) is dict or not hasattr(frame.f_globals, "namespace")):
        frame = frame.f_back
    return frame


def is_for_exception() -> bool:
    """Whether recorded code is computing arguments of an exception that it is about to raise."""
    frame = recorded_frame()
    return frame is not None and frame.f_lasti in raising(frame.f_code)
