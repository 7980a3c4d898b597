"""Calls on behalf of the program: what NumPy says of them, as warnings, names the program's line and module.

Python takes the place of a warning, the module that filters ask for, and the registry of those that were shown, from
the frame that calls NumPy. So there is one, of the recorded code's file, line and globals, between accel and NumPy.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType, FunctionType
from typing import Any

from accel.process.tracebacks import ON_BEHALF

_CALL = (lambda function, args, kwargs: function(*args, **kwargs)).__code__.replace(co_name=ON_BEHALF)


@functools.lru_cache(maxsize=4096)
def _at(filename: str, line: int) -> CodeType:
    """The code of a call at a line of a file."""
    return _CALL.replace(co_filename=filename, co_firstlineno=line)


def on_behalf(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> Any:
    """`function(*args, **kwargs)` as the innermost frame of recorded code would call it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        # substituted globals are a dict of a class of its own; any others are the program's or accel's
        namespace = None if type(frame.f_globals) is dict else getattr(frame.f_globals, "namespace", None)
        if namespace is not None:
            return FunctionType(_at(frame.f_code.co_filename, frame.f_lineno), namespace)(function, args, kwargs or {})
        frame = frame.f_back
    return function(*args, **(kwargs or {}))
