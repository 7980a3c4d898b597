"""Errands: short work that a thread of accel's own does aside, while the program's own thread goes on.

For work that spends its time in C code without Python's lock. An errand that has not begun when its outcome is wanted
is called back: who sent it does the work itself, and never waits for a thread that has no processor.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from accel.process import aside, forks, interrupts

Outcome = TypeVar("Outcome")

NAME = "accel-errands"
"""The thread's."""

LEAVE_S = 0.5
"""So many seconds may the errand under way keep the process from ending."""


class Failed(Exception):
    """An errand's work raised something or takes too long, or its thread does not exist in this process."""


class Errand(Generic[Outcome]):
    """One errand. Whoever sets `holder` first, by one call of C code, does the work, or sees that nobody does."""

    def __init__(self, work: Callable[[], Outcome]) -> None:
        self._work: Callable[[], Outcome] | None = work
        self._outcome: SimpleQueue[Outcome | BaseException] = SimpleQueue()
        self._runner = _runner

    def call_back(self) -> bool:
        """Whether the errand has not begun. Then it never will."""
        if self.__dict__.setdefault("holder", "sender") != "sender":
            return False
        self._work = None
        return True

    def outcome(self, patience_s: float) -> Outcome:
        """What the work gave, once it is done. Asked for once, of an errand that could not be called back.

        Raises Failed, also where it takes longer than that.
        """
        if self._runner is not _runner:
            raise Failed("in a forked child")
        try:
            found = self._outcome.get(timeout=patience_s)
        except Empty:
            raise Failed("it takes too long") from None
        if isinstance(found, BaseException):
            raise Failed(f"{type(found).__name__}: {found}")
        return found

    def run(self) -> None:
        """Do the work, unless it has been called back. In the errands' thread."""
        with aside.threads.python():
            work = self._work
            if work is None or self.__dict__.setdefault("holder", "thread") != "thread":
                return
            self._work = None
            try:
                self._outcome.put(work())
            except BaseException as error:
                self._outcome.put(error)


class _Runner:
    """The thread, and what it has to do."""

    def __init__(self) -> None:
        self._sent: SimpleQueue[Errand[object] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
        self._thread.start()

    def send(self, errand: Errand[object]) -> None:
        self._sent.put(errand)

    def end(self) -> None:
        self._sent.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join(LEAVE_S)

    def _run(self) -> None:
        while (errand := self._sent.get()) is not None:
            errand.run()
            del errand  # what it holds is free now, and not at the next one


_runner: _Runner | None = None
_has_ended = False


def send(work: Callable[[], Outcome]) -> Errand[Outcome] | None:
    """Have work done aside. None where nobody does it: at the end of the process."""
    global _runner
    if _has_ended:
        return None
    if _runner is None:
        with interrupts.Deferral():
            _runner = _Runner()
    errand = Errand(work)
    _runner.send(errand)  # type: ignore[arg-type]  # it is only run there
    return errand


@atexit.register
def _end() -> None:
    global _has_ended
    _has_ended = True
    if _runner is not None:
        with contextlib.suppress(Exception):
            _runner.end()


@forks.in_child
def _forget() -> None:
    """In a forked child, which does not have the thread."""
    global _runner
    _runner = None
