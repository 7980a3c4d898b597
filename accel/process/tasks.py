"""Tasks: short work that a background thread does while the program's own thread goes on.

For work that spends its time in C code without Python's lock. A task that has not begun when its outcome is wanted is
called back: the sender does the work itself, and never waits for a thread that has no processor.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from accel.process import background, forks, interrupts

Outcome = TypeVar("Outcome")

NAME = "accel-tasks"
"""The thread's name."""

LEAVE_S = 0.5
"""Maximum seconds that a running task may keep the process from ending. Guess."""


class TaskFailed(Exception):
    """A task raised an error or takes too long, or its thread does not exist in this process."""


class Task(Generic[Outcome]):
    """One task. The sender or the thread that sets `holder` first, by one call of C code, decides who does the work."""

    def __init__(self, work: Callable[[], Outcome]) -> None:
        self._work: Callable[[], Outcome] | None = work
        self._outcome: SimpleQueue[Outcome | BaseException] = SimpleQueue()
        self._runner = _runner

    def call_back(self) -> bool:
        """Take the task back, if it has not begun. Returns whether it was taken back."""
        if self.__dict__.setdefault("holder", "sender") != "sender":
            return False
        self._work = None
        return True

    def outcome(self, patience_s: float) -> Outcome:
        """The result of the work. Ask once, for a task that could not be called back.

        Raises TaskFailed, also where it takes longer than `patience_s`.
        """
        if self._runner is not _runner:
            raise TaskFailed("in a forked child")
        try:
            found = self._outcome.get(timeout=patience_s)
        except Empty:
            raise TaskFailed("it takes too long") from None
        if isinstance(found, BaseException):
            raise TaskFailed(f"{type(found).__name__}: {found}")
        return found

    def run(self) -> None:
        """Do the work, unless the task was called back. Called in the background thread."""
        with background.threads.python():
            work = self._work
            if work is None or self.__dict__.setdefault("holder", "thread") != "thread":
                return
            self._work = None
            try:
                self._outcome.put(work())
            except BaseException as error:
                self._outcome.put(error)


class _Runner:
    """The thread, and its queue of tasks."""

    def __init__(self) -> None:
        self._sent: SimpleQueue[Task[object] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
        self._thread.start()

    def send(self, task: Task[object]) -> None:
        self._sent.put(task)

    def end(self) -> None:
        self._sent.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join(LEAVE_S)

    def _run(self) -> None:
        while (task := self._sent.get()) is not None:
            task.run()
            del task  # frees what it holds now, instead of at the next one


_runner: _Runner | None = None
_has_ended = False


def send(work: Callable[[], Outcome]) -> Task[Outcome] | None:
    """Send work to the background thread. Returns None at the end of the process, when no thread does it."""
    global _runner
    if _has_ended:
        return None
    if _runner is None:
        with interrupts.Deferral():
            _runner = _Runner()
    task = Task(work)
    _runner.send(task)  # type: ignore[arg-type]  # it is only run there
    return task


@atexit.register
def _end() -> None:
    global _has_ended
    _has_ended = True
    if _runner is not None:
        with contextlib.suppress(Exception):
            _runner.end()


@forks.in_child
def _forget() -> None:
    """Start afresh in a forked child, which does not have the thread."""
    global _runner
    _runner = None
