"""accel's own background threads, and whether one of them runs Python at present.

Python in such a thread may call code of the program: import hooks, log handlers, JAX listeners, finalizers. So no
background thread runs Python while arrays are out of date (see accel.backend.resident). A thread that is about to run
Python waits. The loop whose iterations leave arrays out of date asks after each iteration whether a thread waits, and
brings the arrays up to date.

XLA's compiler runs no Python and takes most of the time of such a thread. Arrays may be out of date meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from accel.platform import forks
from accel.platform.clocks import time

LOOK_S = 1e-3
"""Seconds between two checks whether arrays are up to date."""


class BackgroundThreads:
    """The background threads that run Python.

    is_held: whether arrays are out of date; set by the module that keeps them so. A thread first adds itself, then asks
    `is_held`. The module that leaves arrays out of date first notes that, then asks `are_running`. So of two that begin
    at the same time, at least one sees the other. There is no lock, because a signal handler could leave it taken.
    """

    def __init__(self) -> None:
        self.is_held: Callable[[], bool] = lambda: False
        self._running: set[int] = set()
        self._has_ended = False

    @property
    def are_running(self) -> bool:
        """Whether any of them runs Python, or waits for it."""
        return bool(self._running)

    @contextlib.contextmanager
    def python(self) -> Iterator[None]:
        """Run a block of Python in a background thread, once arrays are up to date."""
        own = threading.get_ident()
        try:
            self._begin(own)
            yield
        finally:
            self._running.discard(own)

    @contextlib.contextmanager
    def compiler(self) -> Iterator[None]:
        """Run a block that only calls the compiler, inside a `python()` block or outside."""
        own = threading.get_ident()
        runs = own in self._running
        self._running.discard(own)
        try:
            yield
        finally:
            if runs:
                self._begin(own)

    def may(self, act: Callable[[], object]) -> None:
        """Call `act()`, unless arrays are out of date: it is not worth waiting for."""
        own = threading.get_ident()
        self._running.add(own)
        try:
            if not self.is_held():
                act()
        finally:
            self._running.discard(own)

    def end(self) -> None:
        """Let no thread wait any more: the process ends."""
        self._has_ended = True

    def forget(self) -> None:
        """Start afresh in a forked child, which does not have the threads."""
        self._running.clear()
        self._has_ended = False

    def _begin(self, own: int) -> None:
        self._running.add(own)
        while self.is_held() and not self._has_ended:
            time.sleep(LOOK_S)


threads = BackgroundThreads()
"""The background threads of this process."""

forks.in_child(threads.forget)
