"""Python's own settings while accel records and compiles; each is as it was afterwards.

A setting that the program changes meanwhile stays as the program wants it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_S = 1e-4
"""Threads take turns so often while one of them compiles.

Tracing calls C++ code thousands of times, and each time another thread gets the interpreter. A program that goes on in
NumPy meanwhile keeps it for Python's usual 5 ms: tracing that takes 4 s alone took 60 s so.
"""

ALLOCATIONS = 50_000
"""New objects after which Python looks for garbage while there is little: tapes and programs stay.

With Python's usual 700 a third of the time that recording and lowering take is spent on looking.
"""


@contextmanager
def taking_turns() -> Iterator[None]:
    """Have threads take turns often."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, SWITCH_S))
    ours = sys.getswitchinterval()  # in whole microseconds
    try:
        yield
    finally:
        if sys.getswitchinterval() == ours:
            sys.setswitchinterval(usual)


@contextmanager
def keeping() -> Iterator[None]:
    """Have Python seldom look for garbage, unless it never does."""
    usual = gc.get_threshold()
    if usual[0]:
        gc.set_threshold(max(usual[0], ALLOCATIONS), *usual[1:])
    ours = gc.get_threshold()
    try:
        yield
    finally:
        if gc.get_threshold() == ours:
            gc.set_threshold(*usual)
