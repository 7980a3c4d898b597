"""Python's own settings while accel records and compiles; each is as it was afterwards.

Any number of threads may be at it at a time. A setting that the program changes meanwhile stays as the program wants
it.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from accel.process import forks

SWITCH_S = 1e-4
"""Threads take turns so often while one of them compiles.

Tracing calls C++ code thousands of times, and each time another thread gets the interpreter. A program that goes on in
NumPy meanwhile keeps it for Python's usual 5 ms: tracing that takes 4 s alone took 60 s so.
"""

ALLOCATIONS = 50_000
"""New objects after which Python looks for garbage while there is little: tapes and programs stay.

With Python's usual 700 a third of the time that recording and lowering take is spent on looking.
"""


_lock = threading.RLock()  # a signal handler may come here while its thread is here


class _Setting:
    """One of Python's settings: ours from when the first thread wants it so until the last one does not any more."""

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], None], ours: Callable[[Any], Any]) -> None:
        """ours: from the program's value, the one that accel wants."""
        self._read, self._write, self._wanted = read, write, ours
        self._holders: dict[object, int] = {}
        self._usual: Any = None
        self._ours: Any = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have it as accel wants it."""
        holder = object()
        try:
            self._take(holder)
            yield
        finally:
            self._give_back(holder)

    def _take(self, holder: object) -> None:
        with _lock:
            if not self._holders:
                self._usual = self._read()
                self._ours = self._wanted(self._usual)
                self._holders[holder] = threading.get_ident()
                self._write(self._ours)
                self._ours = self._read()  # the interval is kept in whole microseconds
            else:
                self._holders[holder] = threading.get_ident()

    def _give_back(self, holder: object) -> None:
        with _lock:
            if self._holders.pop(holder, None) is not None and not self._holders:
                self._restore()

    def _restore(self) -> None:
        """Unless the program has changed it meanwhile."""
        if self._read() == self._ours:
            self._write(self._usual)

    def leave_to(self, thread: int) -> None:
        """In a forked child: the other threads, which wanted it so, are not there."""
        others = [holder for holder, its in self._holders.items() if its != thread]
        for holder in others:
            self._give_back(holder)


_turns = _Setting(sys.getswitchinterval, sys.setswitchinterval, lambda usual: min(usual, SWITCH_S))
_garbage = _Setting(
    gc.get_threshold,
    lambda threshold: gc.set_threshold(*threshold),
    lambda usual: (max(usual[0], ALLOCATIONS), *usual[1:]) if usual[0] else usual,
)


def short_switch_interval() -> AbstractContextManager[None]:
    """Have threads take turns often."""
    return _turns.held()


def rare_garbage_collection() -> AbstractContextManager[None]:
    """Have Python seldom look for garbage, unless it never does."""
    return _garbage.held()


@forks.in_child
def _in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for setting in (_turns, _garbage):
        setting.leave_to(threading.get_ident())
