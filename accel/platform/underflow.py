"""Underflow: whether arithmetic of this thread has given a number too small for its dtype.

XLA:CPU flushes subnormal numbers to 0, which NumPy keeps. Where it flushes a result, the processor raises the flag of
underflow in the thread that computes it. Numbers that come into a program subnormal are taken for 0 without a flag.

NumPy's functions clear the flag. So it is noted as soon as a program of XLA's has run.

Functions of NumPy's and SciPy's that such a program calls must not be flushed: the Bessel function `iv(2.5, 700.0)` was
0.3 % off, as SciPy scales a recurrence by its smallest numbers.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import platform
import threading
from collections.abc import Callable, Iterator
from typing import Any

_FLAG = {"x86_64": 0x10, "amd64": 0x10, "aarch64": 8, "arm64": 8}
"""FE_UNDERFLOW of C's <fenv.h>, by machine."""


_noted = threading.local()


def clear() -> None:
    """Clear this thread's flag, and forget what was noted. Costs 0.3 us."""
    _noted.any = False
    _calls()[0]()


def note() -> None:
    """Note the flag, if it was raised since `clear`. It cannot be read everywhere. Costs 0.3 us."""
    if _calls()[1]():
        _noted.any = True


def has_happened() -> bool:
    """Whether the flag was noted since `clear`."""
    return getattr(_noted, "any", False)


@contextlib.contextmanager
def not_flushed() -> Iterator[None]:
    """Keep subnormal numbers while a program of XLA's calls back. What underflows meanwhile raises no flag after it."""
    get, put = _environment()
    of_xla = ctypes.create_string_buffer(64)  # `fenv_t` has 32 bytes at most
    get(of_xla)
    put(_DEFAULT)
    try:
        yield
    finally:
        put(of_xla)


_DEFAULT = ctypes.c_void_p(-1)
"""FE_DFL_ENV of <fenv.h> in Linux's C libraries: the environment that a process starts with."""


@functools.cache
def _environment() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """C's `fegetenv` and `fesetenv`; what does nothing on other systems."""
    try:
        library = ctypes.CDLL(None)
        if platform.system() == "Linux" and platform.machine().lower() in _FLAG:
            return library.fegetenv, library.fesetenv
    except (OSError, AttributeError, TypeError):
        pass
    return bool, bool


@functools.cache
def _calls() -> tuple[Callable[[], Any], Callable[[], Any]]:
    """C's `feclearexcept` and `fetestexcept` of the flag; what does nothing where they cannot be called."""
    try:
        # without giving up the interpreter's lock: another thread might take it for 5 ms
        library, flag = ctypes.PyDLL(None), _FLAG[platform.machine().lower()]
        return functools.partial(library.feclearexcept, flag), functools.partial(library.fetestexcept, flag)
    except (OSError, AttributeError, TypeError, KeyError):
        return int, int  # 0 each time
