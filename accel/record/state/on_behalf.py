"""Calls on behalf of the program: what NumPy says of them, as warnings, names the program's line and module.

From the frame that calls NumPy, Python takes the line of a warning, the module that filters ask for, and the registry
of warnings already shown. So a frame with the recorded code's file, line and globals stands between accel and NumPy.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType, FunctionType
from typing import Any

from accel.platform.tracebacks import ON_BEHALF
from accel.record.state.instructions import raising

_CALL = (lambda function, args, kwargs: function(*args, **kwargs)).__code__.replace(co_name=ON_BEHALF)


@functools.lru_cache(maxsize=4096)
def _at(filename: str, line: int) -> CodeType:
    """The code of a call at a line of a file."""
    return _CALL.replace(co_filename=filename, co_firstlineno=line)


def on_behalf(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> Any:
    """`function(*args, **kwargs)` as the innermost frame of recorded code would call it."""
    frame = recorded_frame()
    if frame is None:
        return function(*args, **(kwargs or {}))
    namespace: dict[str, Any] = frame.f_globals.namespace  # type: ignore[attr-defined]  # of substituted globals
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
