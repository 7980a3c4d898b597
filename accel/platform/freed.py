"""Freed memory that the process keeps: from when on, and how much faster that makes calls on NumPy.

glibc gives large blocks back to the kernel, which clears them again for the next array. accel lets it keep them (see
accel.platform.tuning). Many programs gain more by that than by anything else. To measure it, the first calls of the
program run without it, and the next ones with it.

What is compared is the time in the kernel as a share of the calls. Whole calls would have to do equal work: of 14
programs, one in two gave no figure or half of its gain, as its iterations differed.
"""

from __future__ import annotations

import sys
from collections import Counter

from accel.platform import tuning
from accel.platform.clocks import time

if sys.platform == "linux":  # where malloc can be told
    from resource import RUSAGE_THREAD, getrusage

CALLS = 6
"""Number of calls of one target before and after. The first call of each target is no sample."""

TELLING_S, ENOUGH_S = 0.1, 0.4
"""Seconds of calls that tell anything, and those that are waited for before memory is kept: kernels may count in ticks
of 4 ms. With 0.1 s, the gain of a molecular dynamics program was measured as 0.75 of its time; it is 0.4."""

LATEST_S = 2.0, 2.0
"""Seconds after which memory is kept, measured or not: processor seconds since the first call, and seconds of a program
that has made none."""

DOUBT = 0.2
"""Share by which a gain may be another than measured. Guess."""


class _Calls:
    """Calls on NumPy, all with or all without it. worked_s, system_s: their processor time, and that in the kernel.
    targets: those with samples."""

    def __init__(self) -> None:
        self._called: Counter[str] = Counter()
        self.worked_s = self.system_s = 0.0

    def add(self, target: str, worked_s: float, system_s: float) -> None:
        self._called[target] += 1
        if self._called[target] > 1:
            self.worked_s += worked_s
            self.system_s += min(max(0.0, system_s), worked_s)

    def are_enough(self, least_s: float) -> bool:
        return self.worked_s >= least_s and max(self._called.values()) >= CALLS

    @property
    def targets(self) -> frozenset[str]:
        return frozenset(name for name, calls in self._called.items() if calls > 1)

    @property
    def factor(self) -> float:
        """Their time as a multiple of that outside the kernel."""
        return self.worked_s / max(self.worked_s - self.system_s, TELLING_S / 10)


class FreedMemory:
    """What keeping freed memory gains in this process.

    factor: the time of NumPy's calls without it, as a multiple of that with it: the least and the most. None if
    unknown. targets: the functions whose calls have told that; None if an earlier run has.
    """

    def __init__(self) -> None:
        self.factor: tuple[float, float] | None = None
        self.targets: frozenset[str] | None = None
        self._is_settled = False
        self._began_s = 0.0
        self._before, self._after = _Calls(), _Calls()
        self._is_kept = False

    @property
    def waits(self) -> bool:
        """Whether no call was noted yet, and memory is not kept."""
        return not self._began_s and not self._is_settled

    def begin(self, known: float = 0.0) -> None:
        """Keep memory from now on. known: the likely factor by an earlier run, or 0."""
        tuning.keep_freed()
        self._is_settled = True
        if known >= 1.0:
            self.factor = 1.0 + (1.0 - DOUBT) * (known - 1.0), 1.0 + (1.0 + DOUBT) * (known - 1.0)

    def system_s(self) -> float:
        """Return the seconds that this thread has spent in the kernel, while the gain is being measured; else 0."""
        if self._is_settled or sys.platform != "linux":
            return 0.0
        return getrusage(RUSAGE_THREAD).ru_stime

    def note(self, target: str, worked_s: float, system_s: float) -> None:
        """Note a target's call on NumPy: its processor time, and that in the kernel. The first ones decide from when on
        memory is kept."""
        if self._is_settled:
            return
        if self._is_kept:
            self._after.add(target, worked_s, system_s)
            if self._after.are_enough(TELLING_S):
                self.targets = self._before.targets
                self.begin(max(1.0, self._before.factor / self._after.factor))
            return
        self._began_s = self._began_s or time.process_time()
        if not tuning.keeps_freed():  # a compile keeps it, too
            self._before.add(target, worked_s, system_s)
        is_late = tuning.keeps_freed() or time.process_time() - self._began_s > LATEST_S[0]
        if self._before.are_enough(TELLING_S if is_late else ENOUGH_S):
            self._is_kept = tuning.keep_freed()
            self._is_settled = not self._is_kept
        elif is_late:
            self.begin()


current = FreedMemory()
"""This process's."""


def give_back() -> None:
    """Give freed memory back again. What it gains is measured anew the next time."""
    global current
    tuning.give_back_freed()
    current = FreedMemory()
