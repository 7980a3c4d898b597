"""Onlookers: what else of this process could look at the program's objects while accel leaves them out of date.

Between two rounds of a lifted loop none of the program's own statements runs. Something else might: that is a row of
the table here. Where a row applies, nothing is left out of date. The program cannot add to what a row asks for without
running code of its own; so all of them are asked once, when the first round of several begins.

Two things can be met halfway. Before a garbage collection, whose finalizers may look, `gc.callbacks` asks accel first
(accel.backend.resident). And Ctrl-C raises between any two instructions: `Interruptible` comes before the handler.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

IDLE_THREADS = frozenset({"accel-load", "accel-compile"})
"""Threads of accel's own that wait while nothing is compiled."""

MONITORING_IDS = range(6)


def _are_other_threads() -> bool:
    known = {thread.ident for thread in threading.enumerate() if thread.daemon and thread.name in IDLE_THREADS}
    return bool(set(sys._current_frames()) - known - {threading.get_ident()})


def _is_other_thread() -> bool:
    return threading.current_thread() is not threading.main_thread()


def _are_handlers() -> bool:
    return any(
        callable(signal.getsignal(number)) and signal.getsignal(number) is not signal.default_int_handler
        for number in signal.valid_signals()
    )


def _is_traced() -> bool:
    monitoring: Any = getattr(sys, "monitoring", None)
    return (
        sys.gettrace() is not None
        or sys.getprofile() is not None
        or (monitoring is not None and any(monitoring.get_tool(each) is not None for each in MONITORING_IDS))
    )


def _are_told_of_collections() -> bool:
    modules = {str(getattr(each, "__module__", None)).partition(".")[0] for each in gc.callbacks}
    return not modules <= {"accel", "jax", "jaxlib"}


ONLOOKERS: tuple[tuple[str, Callable[[], bool]], ...] = (
    ("it runs in another thread than the main one, to which signals go", _is_other_thread),
    ("there are other threads", _are_other_threads),
    ("a signal has a handler of the program's", _are_handlers),
    ("a debugger, profiler or coverage tool is active", _is_traced),
    ("the program is told of garbage collections", _are_told_of_collections),
)
"""Who could look, and whether they can at present."""


def onlooker() -> str | None:
    """Who could look at the program's objects between two rounds, in words; None if nobody can."""
    return next((why for why, is_there in ONLOOKERS if is_there()), None)


class Interruptible:
    """Lets `first` be done before Ctrl-C raises, from `begin` to `end`. In the main thread alone."""

    def __init__(self, first: Callable[[], object]) -> None:
        self._first = first
        self._before: Any = None

    def begin(self) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if handler is signal.default_int_handler:
            self._before = handler
            signal.signal(signal.SIGINT, self._handle)

    def end(self) -> None:
        """Put the handler back. It may be interrupted and called again."""
        if self._before is not None and signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, self._before)
        self._before = None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._first()
        signal.default_int_handler(number, frame)
