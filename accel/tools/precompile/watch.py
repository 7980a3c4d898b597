"""Decide when to end the run: after some steps without anything new, or after a given number of steps.

A step is a call of the target that a catalogue names as the step. Without one, the target with the most time so far
counts.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import NamedTuple

from accel.platform import config, timeline
from accel.platform.clocks import time
from accel.platform.ledger import Ledger, State, current_run, ledgers, open_ledger

QUIET_S = 3.0
"""Minimum seconds without anything new, in addition: a small function may be called often at the start."""

LOOK_S = 0.5
"""Seconds between two checks which target has the most time."""

MAX_NEWS = 4
"""Maximum events that count as new, per program that a target may have. Paths that never recur would be new forever."""


class Progress(NamedTuple):
    """The progress of the program.

    target: the target whose calls are counted; None before the first call. named: True if a catalogue names it. quiet:
    calls since the last recording or compile. programs: number of compiled programs. functions: functions that have
    any.
    """

    target: str | None
    named: bool
    calls: int
    quiet: int
    programs: int
    functions: int


class NewsCounter:
    """Counts steps, and steps without news (recordings and compiles).

    settled: end after this many steps without news. steps: if given, end after this many steps instead.
    """

    def __init__(self, settled: int, steps: int | None = None) -> None:
        self._settled = settled
        self._steps = steps
        self._pace: Ledger | None = None
        self._looked = 0.0
        self._seen = 0
        self._news: Counter[str] = Counter()
        self._last_news = time.perf_counter()
        self._quiet_from = 0

    def after(self, target: str) -> bool:
        """Record the end of a target's call. Returns whether the run should end."""
        pace = self._find_pace()
        if self._has_news():
            self._last_news = time.perf_counter()
            self._start_counting(pace)
        if pace is None or pace.target != target:
            return False
        if self._steps is not None:
            return pace.calls >= self._steps
        return pace.calls - self._quiet_from >= self._settled and time.perf_counter() - self._last_news >= QUIET_S

    def progress(self) -> Progress:
        """Return the progress so far."""
        pace, books = self._pace, [book for book in ledgers() if book.variants]
        calls = 0 if pace is None else pace.calls
        return Progress(
            target=None if pace is None else pace.target,
            named=pace is not None and pace.target == current_run().pace,
            calls=calls,
            quiet=calls - self._quiet_from,
            programs=sum(book.variants for book in books),
            functions=len(books),
        )

    def _find_pace(self) -> Ledger | None:
        now = time.perf_counter()
        if self._pace is None or now - self._looked >= LOOK_S:
            self._looked = now
            pace = _pace()
            if pace is not self._pace:
                self._pace = pace
                self._start_counting(pace)
        return self._pace

    def _start_counting(self, pace: Ledger | None) -> None:
        self._quiet_from = 0 if pace is None else pace.calls

    def _has_news(self) -> bool:
        """Return whether something was recorded or compiled since the last call of this method."""
        fresh, self._seen = timeline.events[self._seen :], len(timeline.events)
        has_news = False
        for event in fresh:
            if event.kind in (timeline.RECORDED, timeline.COMPILE):
                self._news[event.target] += 1
                has_news |= self._news[event.target] <= MAX_NEWS * config.current().max_variants
        return has_news


def _pace() -> Ledger | None:
    """Return the ledger of the target whose calls are steps; None before any call."""
    step = current_run().pace
    if step is not None:
        book = open_ledger(step)
        # it is accelerated, and not called yet. If its module is not imported, the catalogue may be for another program
        if book.calls or (book.state is State.UNCALLED and step.partition(":")[0] in sys.modules):
            return book
    return max((book for book in ledgers() if book.calls), key=lambda book: book.spent_s, default=None)
