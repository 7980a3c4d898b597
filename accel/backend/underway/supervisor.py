"""The supervisor: starts the worker process, replaces it when it has crashed, and gives up after several crashes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from accel.backend import devices
from accel.backend.underway.worker import Worker, WorkerLost
from accel.platform import config, logs
from accel.rules.rule import Unsupported

if TYPE_CHECKING:
    from accel.backend.disk.products import Place
    from accel.backend.job import Job

MAX_LOST = 3
"""Number of crashed workers after which nothing is compiled any more."""


class Supervisor:
    """Starts the worker when it is needed, and counts crashed ones. can_start: whether this process may have one.

    Two threads use it: one asks for the worker, another may end it at any time. So all of it is under a lock, but for
    the wait for a worker's answer.
    """

    def __init__(self) -> None:
        self.can_start = bool(sys.executable)
        self._worker: Worker | None = None
        self._lost = 0
        self._lock = threading.Lock()

    def current(self) -> Worker | None:
        """The worker, started if there is none; None if it cannot be started.

        Raises Unsupported if too many workers have crashed: compiling in this process would crash the program.
        """
        with self._lock:
            if self._lost >= MAX_LOST:
                raise Unsupported("compile.failed", f"the compiling process ended {self._lost} times")
            if self._worker is None and self.can_start:
                try:
                    self._worker = Worker()
                except WorkerLost as error:
                    logs.LOGGER.info("%s", error)
                    self.can_start = False
            return self._worker

    def end_worker(self) -> None:
        """End the current worker on purpose. The next job gets a new one."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.stop()

    def leave_worker(self, announce: Callable[[int], bool], more: Iterable[tuple[Job, Place]]) -> bool:
        """Leave the current worker to its job and more of them, at the end of the program. Returns whether it goes on.

        announce: is told the id of its process before, and says whether it may.
        """
        with self._lock:
            worker = self._worker
            if worker is None or not worker.process:
                return False
            if not announce(worker.process) or not worker.leave(more):
                return False
            self._worker = None
        return True

    def note_lost(self, worker: Worker) -> bool:
        """Count a worker that has crashed, and clear up after it. The next job gets a new one, up to MAX_LOST times.

        Returns False if it was ended on purpose.
        """
        with self._lock:
            crashed = worker is self._worker
            if crashed:
                self._lost += 1
                self._worker = None
        worker.stop()
        return crashed

    def forget(self) -> None:
        """In a forked child: let go of the worker, which belongs to the parent."""
        self._lock = threading.Lock()
        self.can_start = False
        if self._worker is not None:
            self._worker.forget()
            self._worker = None


supervisor = Supervisor()
"""This process's supervisor."""


def has_worker() -> bool:
    """Whether another process compiles, if it can be started: for one CPU only."""
    return config.current().devices == 1 and devices.is_cpu_alone()
