"""Speed: the times of a path's calls, compiled and on NumPy, and whether they show its program to be slower."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterator

SPEED_SAMPLES = 8
"""Replays before a program's speed is judged."""

NUMPY_SAMPLES = 3
"""Calls of NumPy's own that are timed before that; comparisons give what is missing."""

PLAINLY_SLOWER = 1.5
"""Half as many samples are enough where the best compiled one took so many times as long as NumPy's worst."""

LOST_S = 0.5
"""So are the fewest if they cost the program so many seconds, each as much as the best."""

FEWEST_SAMPLES = 3
"""Of two, one may have waited for its compile, the other for a busy machine."""

STRIKES = 2
"""Judgements, each on times of its own, that find a program slower before it is given up."""


class Times:
    """The last 32 of one kind of times, in seconds."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=32)
        self._sorted: list[float] | None = None

    def __len__(self) -> int:
        return len(self._seconds)

    def __iter__(self) -> Iterator[float]:
        return iter(self._seconds)

    def add(self, seconds: float) -> None:
        self._seconds.append(seconds)
        self._sorted = None

    def clear(self) -> None:
        self._seconds.clear()
        self._sorted = None

    def median(self) -> float:
        """Half of them were shorter. Raises statistics.StatisticsError if empty."""
        return statistics.median(self._in_order())

    def quartile(self) -> float:
        """A quarter of them were shorter. Raises IndexError if empty."""
        ordered = self._in_order()
        return ordered[(len(ordered) - 1) // 4]

    def _in_order(self) -> list[float]:
        """Asked for at every replay, and changed by comparisons only."""
        if self._sorted is None:
            self._sorted = sorted(self._seconds)
        return self._sorted


class Speed:
    """How long a path's calls take, compiled and on NumPy; times during a compile are not to be entered."""

    def __init__(self) -> None:
        self.numpy_s = Times()
        self.compiled_s = Times()
        self._strikes = 0

    @property
    def knows_numpy(self) -> bool:
        """Whether enough of NumPy's own times are known to judge by."""
        return len(self.numpy_s) >= NUMPY_SAMPLES

    def gained_s(self, seconds: float) -> float:
        """What a compiled call of so many seconds took less than NumPy does; 0 where that is unknown.

        NumPy's quicker calls count: others ran beside something else, or after a compiled call had emptied the caches.
        """
        return self.numpy_s.quartile() - seconds if len(self.numpy_s) else 0.0

    def found_slower(self) -> str | None:
        """What shows the program to be slower for good, once it does.

        One judgement is not enough, as a busy machine may have decided it: the next is on new times of both.
        """
        plainly = self._is_plainly_slower()
        if not len(self.numpy_s) or not (plainly or len(self.compiled_s) >= SPEED_SAMPLES):
            return None
        numpy_s, compiled_s = self.numpy_s.median(), self.compiled_s.median()
        self.compiled_s.clear()
        if compiled_s <= numpy_s:
            self._strikes = 0
            return None
        self._strikes += 1
        if plainly or self._strikes >= STRIKES:
            return f"{compiled_s * 1e6:.0f} us compiled against {numpy_s * 1e6:.0f} us"
        self.numpy_s.clear()
        return None

    def _is_plainly_slower(self) -> bool:
        """Whether a few samples are enough: the best of the compiled ones is far beyond NumPy's worst."""
        if not self.knows_numpy or len(self.compiled_s) < FEWEST_SAMPLES:
            return False
        worst, best, samples = max(self.numpy_s), min(self.compiled_s), len(self.compiled_s)
        enough = samples >= SPEED_SAMPLES // 2 or samples * (best - worst) > LOST_S
        return enough and best > PLAINLY_SLOWER * worst
