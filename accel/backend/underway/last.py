"""The worker's last jobs: whether they are finished after the program's end, for later runs.

A program may end while the worker compiles. That took seconds so far, and the next run would begin it again: one that
is shorter than its compiles would never have its programs. So the program says, at a normal end, that its jobs may be
finished, and hands over those that still waited. The worker goes on then, for `finish_s` seconds at most, keeps the
products, and ends. What the user runs next goes first.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from accel.backend.underway.priority import give_way
from accel.platform import config

if TYPE_CHECKING:
    from accel.backend.disk.products import Place


class LastJobs:
    """The worker's jobs after the program has ended. may_be_finished: whether the program has said that they may be.

    One thread is told of jobs, and others of the program's end. Modules are imported late: the program waits for the
    worker's first word.
    """

    def __init__(self) -> None:
        self.may_be_finished = False
        self._left = 0  # jobs that have come and have not ended
        self._place: Place | None = None
        self._is_alone = False
        self._lock = threading.Lock()

    def come(self) -> None:
        """Another job has come."""
        with self._lock:
            self._left += 1

    def begin(self, place: Place | None) -> None:
        """A job has begun. place: where its product is kept; None where nobody would find it."""
        with self._lock:
            self._place = place
            if self._is_alone:
                self._note_begun()

    def end(self, outcome: object) -> bool:
        """A job has ended. outcome: its product, or what failed. Returns whether the program is still there to get it.

        If it has gone, the product is kept, and after the last one this process ends.
        """
        with self._lock:
            self._left -= 1
            if not self._is_alone:
                return True
            self._keep(outcome)
            if not self._left:
                os._exit(0)
        return False

    def go_on_alone(self) -> None:
        """The program has gone: end the process, unless there are jobs that may be finished."""
        with self._lock:
            if self._is_alone:
                return
            if not self._left or not self.may_be_finished:
                os._exit(0)
            from accel.backend.disk import cache

            self._is_alone = True
            cache.makes_folders = False
            self._note_begun()
            end = threading.Timer(config.current().finish_s, self._give_up)
        end.daemon = True
        end.start()
        give_way()

    def _note_begun(self) -> None:
        from accel.backend.disk import products

        folder = config.current().cache_dir
        if folder is None or not os.path.isdir(folder):  # nobody waits for it
            os._exit(0)
        if self._place is not None:
            products.note_begun(self._place.key)

    def _keep(self, outcome: object) -> None:
        from accel.backend.disk import products
        from accel.backend.job import Product

        if self._place is not None:
            if isinstance(outcome, Product):
                self._place.keep(outcome)
            products.note_refused(self._place.key, outcome)
            products.have_come([self._place.key])

    def _give_up(self) -> None:
        with self._lock:  # not in the middle of keeping one
            os._exit(0)
