"""Aside: threads of accel's own, and whether one of them runs Python at present.

Python that such a thread runs may come to code of the program's: hooks of imports, handlers of logs, listeners of
JAX's, finalizers. So none of them runs any while arrays are out of date (see accel.backend.resident). A thread that is
about to waits; the loop whose rounds leave them so asks after each round whether one does, and brings them up to date.

XLA's compiler runs no Python, and takes most of the time of such a thread: rounds leave arrays out of date meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from accel.process import forks

LOOK_S = 1e-3
"""Seconds between two looks whether arrays are up to date."""


class Aside:
    """Which threads of accel's own run Python. is_held: whether arrays are out of date; set by who keeps them so.

    A thread that begins notes that first, and then asks `is_held`. Who leaves arrays out of date notes that first, and
    then asks `are_running`: of two that begin at a time, one at least sees the other. There is no lock, which a
    signal's handler could leave taken.
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
        """A block of Python in a thread of accel's own. It begins once arrays are up to date."""
        own = threading.get_ident()
        try:
            self._begin(own)
            yield
        finally:
            self._running.discard(own)

    @contextlib.contextmanager
    def compiler(self) -> Iterator[None]:
        """A block in such a block, or anywhere else, that runs no Python but what calls the compiler."""
        own = threading.get_ident()
        runs = own in self._running
        self._running.discard(own)
        try:
            yield
        finally:
            if runs:
                self._begin(own)

    def may(self, act: Callable[[], object]) -> None:
        """Do something that is not worth waiting for, unless arrays are out of date."""
        own = threading.get_ident()
        self._running.add(own)
        try:
            if not self.is_held():
                act()
        finally:
            self._running.discard(own)

    def end(self) -> None:
        """The process ends: nobody waits any more, whatever came of the arrays."""
        self._has_ended = True

    def forget(self) -> None:
        """In a forked child, which does not have the threads: start afresh."""
        self._running.clear()
        self._has_ended = False

    def _begin(self, own: int) -> None:
        self._running.add(own)
        while self.is_held() and not self._has_ended:
            time.sleep(LOOK_S)


threads = Aside()
"""This process's."""

forks.in_child(threads.forget)
