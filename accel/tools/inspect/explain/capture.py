"""Capture one real call of a function in a running program, as it begins."""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, FunctionType
from typing import Any

from accel.entry.callables import PlainCall

Profile = Callable[[FrameType, str, Any], None]


real_path = functools.cache(os.path.realpath)


@contextmanager
def profiled(profile: Profile) -> Iterator[None]:
    """Let Python call `profile` at every call and return, in this thread and in new ones."""
    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def nth_call(file: str, qualname: str, nth: int, found: Callable[[PlainCall], None]) -> Profile:
    """Return a profile function that passes the nth call of `qualname` in `file` to `found`, as the call begins."""
    counts = iter(range(1, nth + 1))

    def profile(frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_qualname != qualname or real_path(code.co_filename) != file:
            return
        if next(counts, 0) == nth:
            call = call_of_frame(frame)
            if call is not None:
                found(call)

    return profile


def call_of_frame(frame: FrameType) -> PlainCall | None:
    """Return the call of a frame that has just begun; None if its function cannot be found."""
    code, values = frame.f_code, frame.f_locals
    function = next((each for each in gc.get_referrers(code) if type(each) is FunctionType), None)
    if function is None:
        return None
    # CPython's order of variables: arguments, keyword-only ones, then *args and **kwargs
    names = iter(code.co_varnames)
    args = [values[next(names)] for _ in range(code.co_argcount)]
    kwargs = {name: values[name] for name in (next(names) for _ in range(code.co_kwonlyargcount))}
    if code.co_flags & inspect.CO_VARARGS:
        args += values[next(names)]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        kwargs.update(values[next(names)])
    return PlainCall(function, tuple(args), kwargs)
