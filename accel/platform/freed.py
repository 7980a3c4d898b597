"""Freed memory that the process keeps: from when on, and how much faster that makes calls on NumPy.

glibc gives large blocks back to the kernel, which clears them again for the next array. accel lets it keep them (see
accel.platform.tuning). Many programs gain more by that than by anything else. To measure it, the first calls of the
first target that takes long enough run without it, and the next ones with it.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from accel.platform import tuning
from accel.platform.clocks import time

CALLS, LEAST_S = 6, 0.01
"""Number of calls before and after, and the least seconds that they take together. The first one is no sample."""

LATEST_S = 1.0, 2.0
"""Seconds after which memory is kept, measured or not: processor seconds since the first call, and seconds of a program
that has made none."""

WIDEST = 1.5
"""Maximum of the most as a multiple of the least: calls that differ more say nothing. Guess."""

DOUBT = 0.2
"""Share by which a gain that an earlier run has measured may be another in this one. Guess."""


class FreedMemory:
    """What keeping freed memory gains in this process.

    factor: the time of NumPy's calls without it, as a multiple of that with it: the least and the most. None if
    unknown.
    """

    def __init__(self) -> None:
        self.factor: tuple[float, float] | None = None
        self._is_settled = False
        self._began_s = 0.0
        self._before: defaultdict[str, list[float]] = defaultdict(list)
        self._target: str | None = None
        self._after: list[float] = []

    @property
    def likely_factor(self) -> float:
        """The middle of `factor`; 0 if it is unknown."""
        return 0.0 if self.factor is None else sum(self.factor) / 2

    @property
    def waits(self) -> bool:
        """Whether no call was noted yet, and memory is not kept."""
        return not self._before and not self._is_settled

    def begin(self, known: float = 0.0) -> None:
        """Keep memory from now on. known: the likely factor by an earlier run, or 0."""
        tuning.keep_freed()
        self._is_settled = True
        if known >= 1.0:
            self.factor = 1.0 + (1.0 - DOUBT) * (known - 1.0), 1.0 + (1.0 + DOUBT) * (known - 1.0)

    def note(self, target: str, seconds: float) -> None:
        """Note a target's call on NumPy, in processor time. The first ones decide from when on memory is kept."""
        if self._is_settled:
            return
        if self._target is not None:
            self._note_after(target, seconds)
            return
        if not self._before:
            self._began_s = time.process_time()
        calls = self._before[target]
        calls.append(seconds)
        if tuning.keeps_freed() or time.process_time() - self._began_s > LATEST_S[0]:
            self.begin()
        elif len(calls) >= CALLS and sum(calls) >= LEAST_S:
            self._target, self._is_settled = target, not tuning.keep_freed()

    def _note_after(self, target: str, seconds: float) -> None:
        if target != self._target:
            return
        self._after.append(seconds)
        if len(self._after) >= CALLS:
            before, after = self._before[target][1:], self._after[1:]
            least, most = (max(1.0, each) for each in (min(before) / median(after), median(before) / min(after)))
            self.factor = (least, most) if most <= WIDEST * least else None
            self._is_settled = True


current = FreedMemory()
"""This process's."""


def give_back() -> None:
    """Give freed memory back again. What it gains is measured anew the next time."""
    global current
    tuning.give_back_freed()
    current = FreedMemory()
