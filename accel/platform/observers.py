"""Observers: who else in this process could look at the program's objects while accel leaves them out of date.

Between two iterations of an outlined loop none of the program's own statements runs. The table here lists what else
might run. Where a row applies, no array is left out of date. The program cannot change an answer without running code
of its own. So all rows are asked once, when the first of several iterations begins.

`Unobserved` handles two more. A signal handler may run between any two instructions, so accel runs before it. Garbage
collection may run finalizers, so it is off while arrays are out of date.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from accel.platform import background, bars, interrupts

_WAITING = ("load", "compile", "kernels", "minutes", "lines")
WAITING_THREADS = frozenset(f"accel-{each}" for each in _WAITING)
"""Threads of accel's own that run no Python while arrays are out of date (see accel.platform.background)."""

PASSING_THREADS = frozenset({"accel-start", "accel-hook", "accel-watch"})
"""Threads of accel's own that soon end."""

BUSY = "accel compiles or looks for functions, in another thread"

MOST_OBJECTS, MOST_KEPT = 20_000, 256 * 2**20
"""Maximum number of new objects, and of bytes of kept arrays, before garbage is collected. Guesses.

Python collects after 700 objects, which the iterations of a model leave in a second."""

MONITORING_IDS = range(6)


def _are_other_threads() -> bool:
    known = _daemons(WAITING_THREADS | PASSING_THREADS) | bars.monitors() | {threading.get_ident()}
    return bool(set(sys._current_frames()) - known)


def _is_busy() -> bool:
    return background.threads.are_running or bool(_daemons(PASSING_THREADS))


def _daemons(names: frozenset[str]) -> set[int | None]:
    return {thread.ident for thread in threading.enumerate() if thread.daemon and thread.name in names}


def _is_other_thread() -> bool:
    return threading.current_thread() is not threading.main_thread()


def _is_traced() -> bool:
    monitoring: Any = getattr(sys, "monitoring", None)
    return (
        sys.gettrace() is not None
        or sys.getprofile() is not None
        or (monitoring is not None and any(monitoring.get_tool(each) is not None for each in MONITORING_IDS))
    )


OBSERVERS: tuple[tuple[str, Callable[[], bool]], ...] = (
    ("it runs in another thread than the main one, to which signals go", _is_other_thread),
    ("there are other threads", _are_other_threads),
    ("a debugger, profiler or coverage tool is active", _is_traced),
    (BUSY, _is_busy),
)
"""Possible observers in words, each with a test whether it is there at present."""


def observer() -> str | None:
    """The first observer of the program's objects between two iterations, in words; None if there is none."""
    return next((why for why, is_there in OBSERVERS if is_there()), None)


class Unobserved:
    """Calls `first` before any signal handler runs, and collects no garbage, from `begin` to `end`.

    Only in the main thread, to which signals go. `first` calls `end` itself. is_on: between `begin` and `end`.
    """

    def __init__(self, first: Callable[[], object]) -> None:
        self.is_on = False
        self._first = first
        self._stand_in = interrupts.HandlerStandIn(self._handle)
        self._collects = False

    def begin(self) -> None:
        self.is_on = True
        self._stand_in.take_over()
        self._collects = gc.isenabled()
        gc.disable()
        if not self.is_on:  # a signal came in between, before all of this was done
            self.end()

    def end(self) -> None:
        """Put signal handlers and garbage collection back. May be interrupted and called again."""
        collects, self._collects = self._collects, False
        if collects:
            gc.enable()
        self._stand_in.put_back()
        self._stand_in.handlers.clear()
        self.is_on = False

    def is_collection_due(self, kept: int) -> bool:
        """Whether garbage should be collected now. kept: bytes of arrays that may be garbage.

        Later than Python would: bringing arrays up to date takes far longer than looking through so many objects.
        """
        objects, usual = gc.get_count()[0], gc.get_threshold()[0]
        most = usual if kept > MOST_KEPT else max(usual, MOST_OBJECTS)
        return self._collects and objects > most and usual > 0

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._first()
        handler = signal.getsignal(number)  # the program's own again
        if callable(handler) and handler != self._handle:
            handler(number, frame)
