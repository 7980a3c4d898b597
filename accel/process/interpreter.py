"""Settings of the Python interpreter that accel changes while it records and compiles, and restores afterwards.

Any number of threads may hold a setting at the same time. If the program changes it meanwhile, the program's value
stays.
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
"""The thread switch interval, in seconds, while a thread compiles.

Tracing calls C++ code thousands of times and releases the GIL each time. The program's thread, running NumPy, then
keeps it for Python's default interval of 5 ms: tracing that takes 4 s alone took 60 s.
"""

ALLOCATIONS = 50_000
"""The garbage collector's first threshold while accel records and compiles, which creates many objects that stay.

With Python's default of 700, a third of the time of recording and lowering goes to the collector.
"""


_lock = threading.RLock()  # a signal handler may come here while its thread is here


class _Setting:
    """One of Python's settings: it has accel's value while at least one thread holds it."""

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], None], ours: Callable[[Any], Any]) -> None:
        """ours: computes accel's value from the program's."""
        self._read, self._write, self._wanted = read, write, ours
        self._holders: dict[object, int] = {}
        self._usual: Any = None
        self._ours: Any = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold accel's value for a block."""
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
        """Restore the program's value, unless the program has changed the setting meanwhile."""
        if self._read() == self._ours:
            self._write(self._usual)

    def leave_to(self, thread: int) -> None:
        """In a forked child: release what other threads held, which do not exist there."""
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
    """Shorten the thread switch interval for a block."""
    return _turns.held()


def rare_garbage_collection() -> AbstractContextManager[None]:
    """Make garbage collections rare for a block. If collection is off, it stays off."""
    return _garbage.held()


@forks.in_child
def _in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for setting in (_turns, _garbage):
        setting.leave_to(threading.get_ident())
