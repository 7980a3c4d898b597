"""Prefetching draws: another thread makes the next replay's draws while the program and this replay's end run.

A twin of the program's generator draws, from the state in which this replay's draws have left it. The generator itself
is at any time as NumPy would have it. The next replay takes the numbers if it finds the generator in that very state,
and puts it into the twin's final state; else it draws for itself. So the fate of this replay does not matter, nor what
the program does with its generator.

If two threads can draw one stream (accel.dispatch.replay.halves), the next replay draws a part itself: as much as makes
both end at the same time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np

from accel import config
from accel.dispatch.replay.halves import ADVANCING, Divisible, End, Halves, Rooms, Twins, divisible
from accel.ir.tape import nodes_in
from accel.process import processors, tasks
from accel.record.state.draw import Draw
from accel.record.values.draws.generators import GeneratorKind, is_same_state

Make = Callable[[list[Any]], None]

OWNERS = (np.random.Generator, np.random.RandomState)
"""Generators that draw without Python's lock."""

LEAST_S = 1.5e-4
"""Draws that take fewer seconds are not worth another thread."""

SEEN = 3
"""Number of calls in a row that have to find the generator as the one before left it, before accel prefetches draws."""

WORTH = 0.9
"""A run for which was drawn ahead has to take less than this share of the time of another run."""

MOST_LOST, MOST_SAVED = 2.0, 4.0
"""Prefetching draws pauses once it has lost the time of MOST_LOST runs. Runs that it saved before count against that,
up to MOST_SAVED: the machine may have become busy since. Few, as a program is given up after some slow runs in a
row."""

PATIENCE = 1.0
"""Time that a call waits for the other thread, as a multiple of the draws' time. That thread may have lost its
processor."""

PAUSE, LONGEST_PAUSE = 32, 512
"""Calls that draw themselves after something was drawn in vain, and twice as many after each further time."""

SHORT_PAUSE = 3
"""Number of calls that draw for themselves after the other thread had not begun, for want of a processor. That costs
little."""

ADAPTED = 0.25
"""The share of the difference between the ends of both halves by which they are changed for the next time."""


class Recent:
    """The median of the last few times."""

    def __init__(self) -> None:
        self._seconds = deque[float](maxlen=7)
        self.median = inf

    def __len__(self) -> int:
        return len(self._seconds)

    def add(self, seconds: float) -> None:
        self._seconds.append(seconds)
        self.median = sorted(self._seconds)[len(self._seconds) // 2]


class Pace:
    """Decides when to draw ahead.

    draw_s: what draws take in the program's own thread. run_s: what they and the program take, where nothing is drawn
    ahead meanwhile. Where there is no processor for the other thread, it takes the time of the program's.
    """

    def __init__(self) -> None:
        self.draw_s, self.run_s = Recent(), Recent()
        self._seen = 0
        self._lost = 0.0
        self._pause, self._next_pause = 0, PAUSE

    def note_plain(self, seconds: float, *, expected: bool) -> None:
        """Note draws that a call made itself. expected: it found the generator as the call before had left it."""
        self.draw_s.add(seconds)
        self._pause = max(0, self._pause - 1)
        self._seen = self._seen + 1 if expected else 0

    def note_ahead(self, seconds: float) -> None:
        """Note a run that took what had been drawn ahead, and during which something was drawn ahead."""
        self._lost = max(self._lost + seconds / self.run_s.median - WORTH, -MOST_SAVED)
        if self._lost > MOST_LOST:
            self.note_miss()
        elif self._lost == -MOST_SAVED:
            self._next_pause = PAUSE

    def note_miss(self) -> None:
        """Note that something was drawn ahead in vain."""
        self._lost = 0.0
        self._pause, self._next_pause = self._next_pause, min(2 * self._next_pause, LONGEST_PAUSE)

    def note_not_begun(self) -> None:
        """Note that the other thread had not begun."""
        self._pause = SHORT_PAUSE

    def is_time(self) -> bool:
        """Whether the next call's draws should be made ahead."""
        return not self._pause and self._seen >= SEEN and self.draw_s.median >= LEAST_S and len(self.run_s) >= SEEN


class Whole:
    """The draws of the next call, which another thread makes."""

    def __init__(self, draws: Sequence[Draw], make: Make, kind: GeneratorKind, twin: Any, state: Any) -> None:
        self._slots, self._make, self._kind = [draw.slot for draw in draws], make, kind
        owners = {draw.owner for draw in draws if draw.owner is not None}
        self._values: list[Any] = [None] * (1 + max(owners.union(self._slots)))
        for owner in owners:
            self._values[owner] = twin
        self._twin = twin
        kind.put_back(twin, state)

    def work(self) -> Any:
        """In the other thread: draw. Returns the state after it."""
        self._make(self._values)
        return self._kind.state(self._twin)

    def collect(self, errand: tasks.Task[Any], values: list[Any], patience_s: float) -> Any:
        """Put what was drawn into the slots. Returns the generator's state after it. Raises tasks.TaskFailed."""
        after = errand.outcome(patience_s)
        for slot in self._slots:
            values[slot] = self._values[slot]
        return after


class Shared:
    """The draws of the next call, divided between another thread and this one."""

    def __init__(self, halves: Halves, shares: Shares) -> None:
        self._halves, self._shares = halves, shares

    def work(self) -> End:
        return self._halves.draw_first()

    def collect(self, errand: tasks.Task[Any], values: list[Any], patience_s: float) -> Any:
        self._halves.draw_second()
        drawn = time.perf_counter()
        end = errand.outcome(patience_s)
        self._shares.adapt(drawn, end)
        after = self._halves.join(end)
        for slot, array in self._halves.values():
            values[slot] = array
        return after


class Shares:
    """Division of draws between two threads. count: of the numbers that the first one draws."""

    def __init__(self, divisible: Divisible) -> None:
        self._divisible = divisible
        self._rooms = Rooms(divisible.total)
        self.count = divisible.total // 2

    def halves(self, twins: Twins, state: Any) -> Halves:
        return Halves(self._divisible, twins, state, self._rooms.room(), self.count)

    def adapt(self, drawn: float, end: End) -> None:
        """Let both end at the same time. drawn: when this thread had drawn its part."""
        total = self._divisible.total
        change = ADAPTED * (drawn - end.at) / max(end.seconds, 1e-6)
        self.count = round(min(max(self.count * (1 + change), total / 8), total * 7 / 8))


class Ahead:
    """Draws a path's numbers ahead."""

    def __init__(self, draws: Sequence[Draw]) -> None:
        self._draws = draws
        shared = divisible(draws)
        self._shares = None if shared is None else Shares(shared)
        self._twins: Twins | None = None
        self._pace = Pace()
        self._left: Any = None  # the state in which the last call has left the generator
        self._begun: tuple[tasks.Task[Any], Whole | Shared] | None = None
        self._was_ahead = False

    def note_run(self, seconds: float) -> None:
        """Note what a call's draws and its program have taken together."""
        if self._was_ahead and self._begun is not None:
            self._pace.note_ahead(seconds)
        elif not self._was_ahead and self._begun is None:
            self._pace.run_s.add(seconds)

    def make(self, make: Make, values: list[Any], kind: GeneratorKind, generator: Any, state: Any) -> None:
        """Make the draws of a call by `make`, or take them. state: the generator's. What NumPy raises is raised."""
        begun, self._begun = self._begun, None
        left, self._left = self._left, None
        expected = left is not None and is_same_state(state, left)
        after = self._collected(begun, values) if begun is not None and expected else None
        self._was_ahead = after is not None
        if after is not None:
            kind.put_back(generator, after)
        else:
            if begun is not None:
                self._note_in_vain(begun[0], expected)
            began = time.perf_counter()
            make(values)
            self._pace.note_plain(time.perf_counter() - began, expected=expected)
            after = kind.state(generator)
        self._left = after
        if self._pace.is_time() and _may_use_two_threads():
            self._begin(make, kind, generator, after)

    def _collected(self, begun: tuple[tasks.Task[Any], Whole | Shared], values: list[Any]) -> Any:
        """The generator's state after draws that were made ahead; None if they were not made."""
        errand, drawing = begun
        if errand.call_back():
            return None
        try:
            return drawing.collect(errand, values, PATIENCE * self._pace.draw_s.median)
        except tasks.TaskFailed:
            return None

    def _note_in_vain(self, errand: tasks.Task[Any], expected: bool) -> None:
        has_not_begun = errand.call_back()
        if not has_not_begun:
            self._twins = None  # the other thread may be using them
        if has_not_begun and expected:
            self._pace.note_not_begun()
        else:
            self._pace.note_miss()

    def _begin(self, make: Make, kind: GeneratorKind, generator: Any, state: Any) -> None:
        bits = generator.bit_generator if type(generator) is np.random.Generator else generator._bit_generator
        if self._twins is None or self._twins.of != (type(generator), type(bits)):
            self._twins = Twins(generator, type(bits), state)
        drawing: Whole | Shared
        if self._shares is not None and type(generator) is np.random.Generator and type(bits) in ADVANCING:
            drawing = Shared(self._shares.halves(self._twins, state), self._shares)
        else:
            drawing = Whole(self._draws, make, kind, self._twins.first, state)
        errand = tasks.send(drawing.work)
        if errand is not None:
            self._begun = errand, drawing


def _may_use_two_threads() -> bool:
    return config.current().threads != 1 and processors.usable() > 1


def ahead_of(draws: Sequence[Draw]) -> Ahead | None:
    """Return a prefetcher for these draws; None if each call has to make them, as they depend on values that it
    computes."""
    owners = {draw.owner for draw in draws}
    taken = nodes_in([(draw.args, draw.kwargs) for draw in draws])
    return Ahead(draws) if len(owners) == 1 and None not in owners and not taken else None
