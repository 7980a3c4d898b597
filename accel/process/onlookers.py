"""Onlookers: what else of this process could look at the program's objects while accel leaves them out of date.

Between two rounds of a lifted loop none of the program's own statements runs. Something else might: that is a row of
the table here. Where a row applies, nothing is left out of date. The program cannot add to what a row asks for without
running code of its own; so all of them are asked once, when the first round of several begins.

Two things can be met halfway, by `Unobserved`. A signal's handler may run between any two instructions: accel comes
before it. And while arrays are out of date no garbage is collected, whose finalizers may look.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from accel.process import aside, bars, interrupts

WAITING_THREADS = frozenset({"accel-load", "accel-compile", "accel-status", "accel-errands"})
"""Threads of accel's own that run no Python while arrays are out of date (see accel.process.aside)."""

PASSING_THREADS = frozenset({"accel-start", "accel-hook", "accel-watch"})
"""Those that soon end."""

BUSY = "accel compiles or looks for functions, in another thread"

MOST_OBJECTS, MOST_KEPT = 20_000, 256 * 2**20
"""So many new objects, and bytes of arrays that the program keeps, may be garbage that waits. Python collects after 700
objects, which the rounds of a model leave in a second."""

MONITORING_IDS = range(6)


def _are_other_threads() -> bool:
    known = _daemons(WAITING_THREADS | PASSING_THREADS) | bars.monitors() | {threading.get_ident()}
    return bool(set(sys._current_frames()) - known)


def _is_busy() -> bool:
    return aside.threads.are_running or bool(_daemons(PASSING_THREADS))


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


ONLOOKERS: tuple[tuple[str, Callable[[], bool]], ...] = (
    ("it runs in another thread than the main one, to which signals go", _is_other_thread),
    ("there are other threads", _are_other_threads),
    ("a debugger, profiler or coverage tool is active", _is_traced),
    (BUSY, _is_busy),
)
"""Who could look, and whether they can at present."""


def onlooker() -> str | None:
    """Who could look at the program's objects between two rounds, in words; None if nobody can."""
    return next((why for why, is_there in ONLOOKERS if is_there()), None)


class Unobserved:
    """Has `first` done before a signal's handler runs, and no garbage collected, from `begin` to `end`.

    In the main thread alone, to which signals go. `first` comes to `end` in its turn. is_on: from the one to the other.
    """

    def __init__(self, first: Callable[[], object]) -> None:
        self.is_on = False
        self._first = first
        self._stand_in = interrupts.StandIn(self._handle)
        self._collects = False

    def begin(self) -> None:
        self.is_on = True
        self._stand_in.take_over()
        self._collects = gc.isenabled()
        gc.disable()
        if not self.is_on:  # a signal came in between, before all of this was done
            self.end()

    def end(self) -> None:
        """Put everything back. It may be interrupted and called again."""
        collects, self._collects = self._collects, False
        if collects:
            gc.enable()
        self._stand_in.put_back()
        self._stand_in.handlers.clear()
        self.is_on = False

    def is_collection_due(self, kept: int) -> bool:
        """Whether garbage is to be collected. kept: bytes of arrays that may be part of it.

        Later than Python would: to bring arrays up to date takes far longer than to look through so many objects.
        """
        objects, usual = gc.get_count()[0], gc.get_threshold()[0]
        most = usual if kept > MOST_KEPT else max(usual, MOST_OBJECTS)
        return self._collects and objects > most and usual > 0

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._first()
        handler = signal.getsignal(number)  # the program's own again
        if callable(handler) and handler != self._handle:
            handler(number, frame)
