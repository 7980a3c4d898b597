"""Helpers: threads that take part in the runs of large kernels (see accel.compiler.kernels.sharing)."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from accel.platform import config, forks, processors
from accel.platform.clocks import time

THREAD = "accel-kernels"

_LEAST_CHUNKS = 12
"""Minimum number of chunks for each thread of a run. Waking a thread takes 50 us, three chunks' time."""

_MOST_THREADS = 16
"""Maximum number of threads: memory is no faster for more. Guess."""

_LOOK_AGAIN_S = 1.0

Entry = Callable[[bytes, int, int], None]
"""The function of a module: pointer table, number of the thread, number of threads."""


class _Team:
    """The helpers of this process. They start when they are needed, and wait for runs."""

    def __init__(self) -> None:
        self._runs: SimpleQueue[tuple[Entry, bytes, int, int, Any]] = SimpleQueue()
        self._started = 0
        self._starting = threading.Lock()

    def run(self, call: Entry, table: bytes, threads: int, kept: Any) -> None:
        """Run a module by `threads` threads, this one among them.

        table: its pointer table, with counters that are 0. kept: what must exist until the last helper has left the
        module.
        """
        self._start(threads - 1)
        # where the processors have other work, helpers come late, and find only runs that have ended
        if self._runs.empty():
            for number in range(1, threads):
                self._runs.put((call, table, number, threads, kept))
        call(table, 0, threads)

    def _start(self, count: int) -> None:
        if self._started >= count:
            return
        with self._starting:
            while self._started < count:
                threading.Thread(target=self._serve, name=THREAD, daemon=True).start()
                self._started += 1

    def _serve(self) -> None:
        while True:
            call, table, number, threads, _ = self._runs.get()
            call(table, number, threads)
            del call, _  # the kernel can be freed while nothing runs


team = _Team()


@forks.in_child
def _renew() -> None:
    global team
    team = _Team()


def threads_for(chunks: int) -> int:
    """Return the number of threads that are to run a module whose steps have so many chunks together, at least 1."""
    wanted = chunks // _LEAST_CHUNKS
    if wanted < 2:
        return 1
    return min(wanted, config.current().threads or _free.count())


class _Free:
    """The processors that other processes leave to this one."""

    def __init__(self) -> None:
        self._count, self._looked = 1, -math.inf
        self._had_s: float | None = None

    def count(self) -> int:
        """Return their number, at least 1 and at most `_MOST_THREADS`. Looks once in a second."""
        now = time.monotonic()
        if now - self._looked > _LOOK_AGAIN_S:
            # processor seconds that this process has had so far, or that nobody has had
            had_s = None if (idle_s := processors.idle_s()) is None else idle_s + time.process_time()
            if had_s is None or self._had_s is None:  # an average over a minute: what has just ended still counts
                # of the load, as many as this has allowed may be this process's own
                others = max(os.getloadavg()[0] - self._count, 0.0) if hasattr(os, "getloadavg") else 0.0
                free = processors.usable() - others
            else:
                free = min((had_s - self._had_s) / (now - self._looked), processors.usable())
            self._looked, self._had_s = now, had_s
            self._count = max(min(round(free), _MOST_THREADS), 1)
        return self._count


_free = _Free()
