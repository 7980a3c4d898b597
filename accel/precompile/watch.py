"""When enough of a program has been seen: nothing new for some steps, or so many steps as were asked for.

A step is a call of the target that a catalogue names as such, or else of the one with most time in it so far.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass

from accel import config
from accel.reports import timeline
from accel.reports.ledger import Ledger, State, current_run, ledgers, open_ledger

QUIET_S = 3.0
"""Seconds that have to pass as well without anything new: a small function is called often while a program starts."""

LOOK_S = 0.5
"""Seconds between two looks which target has most time in it."""

MAX_NEWS = 4
"""News of one target that count, for each program that it may have: paths that never recur are new for ever."""

SETTLED, STEPS = "settled", "steps"
"""Why it is enough: nothing was new, or so many steps were asked for."""


@dataclass(slots=True)
class Progress:
    """How far the program is. target: whose calls are counted, None before any; named: whether a catalogue says so.

    quiet: calls since something was recorded or compiled. programs, functions: compiled, and those that have them.
    """

    target: str | None
    named: bool
    calls: int
    quiet: int
    programs: int
    functions: int


class Watch:
    """Counts steps and news. settled: steps without news that are enough. steps: those asked for, in place of that."""

    def __init__(self, settled: int, steps: int | None = None) -> None:
        self._settled = settled
        self._steps = steps
        self._pace: Ledger | None = None
        self._looked = 0.0
        self._seen = 0
        self._news: Counter[str] = Counter()
        self._last_news = time.perf_counter()
        self._quiet_from = 0

    def after(self, target: str) -> str | None:
        """Note that a call of a target has ended. Returns why that is enough, once it is."""
        pace = self._find_pace()
        if self._has_news():
            self._last_news = time.perf_counter()
            self._start_counting(pace)
        if pace is None or pace.target != target:
            return None
        if self._steps is not None:
            return STEPS if pace.calls >= self._steps else None
        quiet = pace.calls - self._quiet_from >= self._settled and time.perf_counter() - self._last_news >= QUIET_S
        return SETTLED if quiet else None

    def progress(self) -> Progress:
        """How far the program is."""
        pace, books = self._pace, [book for book in ledgers() if book.variants]
        calls = 0 if pace is None else pace.calls
        return Progress(
            target=None if pace is None else pace.target,
            named=pace is not None and pace.target == current_run().step,
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
        """Whether something was recorded or compiled since it was last asked."""
        fresh, self._seen = timeline.events[self._seen :], len(timeline.events)
        found = False
        for event in fresh:
            if event.kind in (timeline.RECORDED, timeline.COMPILE):
                self._news[event.target] += 1
                found |= self._news[event.target] <= MAX_NEWS * config.current().max_variants
        return found


def _pace() -> Ledger | None:
    """The account of the target whose calls are steps."""
    step = current_run().step
    if step is not None:
        book = open_ledger(step)
        if book.calls or (book.state is State.UNCALLED and _is_loaded(step)):  # it is not left alone, and will come
            return book
    return max((book for book in ledgers() if book.calls), key=lambda book: book.spent_s, default=None)


def _is_loaded(target: str) -> bool:
    """Whether the program has imported what holds a target: a catalogue may be that of another program."""
    parts = target.split(".")
    for end in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:end]))
        if module is not None:
            return hasattr(module, parts[end])
    return False
