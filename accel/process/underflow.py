"""Underflow: whether arithmetic of this thread has given a number too small for its dtype.

XLA:CPU flushes subnormal numbers to 0, which NumPy keeps. Where it flushes a result, the processor raises the flag of
underflow in the thread that computes it. Numbers that come into a program subnormal are taken for 0 without a flag.
"""

from __future__ import annotations

import ctypes
import functools
import platform
from typing import Any

_FLAG = {"x86_64": 0x10, "amd64": 0x10, "aarch64": 8, "arm64": 8}
"""FE_UNDERFLOW of C's <fenv.h>, by machine."""


def clear() -> None:
    """Clear this thread's flag. Costs 0.3 us."""
    functions = _functions()
    if functions is not None:
        functions[0](_flag())


def has_happened() -> bool:
    """Whether the flag was raised since `clear`; False where it cannot be read. Costs 0.3 us."""
    functions = _functions()
    return functions is not None and bool(functions[1](_flag()))


@functools.cache
def _flag() -> int:
    return _FLAG.get(platform.machine().lower(), 0)


@functools.cache
def _functions() -> tuple[Any, Any] | None:
    """C's `feclearexcept` and `fetestexcept`, or None."""
    try:
        library = ctypes.CDLL(None)
        return library.feclearexcept, library.fetestexcept
    except (OSError, AttributeError, TypeError):
        return None
