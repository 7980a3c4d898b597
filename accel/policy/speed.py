"""Speed: the times of a path's calls, compiled and on NumPy, and whether they show that its program is slower."""

from __future__ import annotations

import itertools
import statistics
from collections import deque
from collections.abc import Iterator
from math import inf

from accel.platform.clocks import time
from accel.platform.ledger import current_run

SPEED_SAMPLES = 8
"""Replays after which a program's speed is judged."""

NUMPY_SAMPLES = 3
"""Calls on NumPy that must be timed before that. Comparisons supply the missing ones."""

CLEARLY_SLOWER = 1.5
"""Half of SPEED_SAMPLES are enough if the fastest compiled call took this many times as long as NumPy's slowest."""

MAX_LOSS_S = 0.5
"""MIN_SAMPLES are enough if, in addition, they cost the program more than this many seconds in all. The loss per call
is the fastest compiled call less NumPy's slowest."""

FAR_SLOWER = 10.0
"""Slowdown above which a program is judged even while something is compiled. Below it nothing is judged then, as a
compile slows calls down. MIN_SAMPLES are enough then, too, if they cost more than MAX_LOSS_S: the compile may take as
long as the program runs."""

PAUSE_SHARE = 0.1
"""Share of MAX_LOSS_S at which calls pause until nothing is compiled any more. The calls must have cost this much, and
the fastest of the last samples must have taken CLEARLY_SLOWER times NumPy's usual time."""

MIN_SAMPLES = 3
"""Minimum number of replays by which a program is judged. Of two, one may have waited for its compile, and the other
may have met a busy machine."""

NO_LOSS_S, MORE_SAMPLES = 0.003, 16
"""A program that has cost its caller less than NO_LOSS_S seconds is judged from MORE_SAMPLES samples. The first calls
are no measure of later ones: neither code nor data are in the processor's caches."""

SHORT_S, CALLS_IN_A_ROW = 0.001, 4
"""NumPy calls shorter than SHORT_S are judged by CALLS_IN_A_ROW of them in a row, and so is a program that seemed to be
slower. The first of the row is no sample. In a comparison, NumPy's call finds the processor's caches full of the
comparison's data. Calls shorter than SHORT_S have been seen to take five times as long there as in a row."""

ROW_SHARE = 0.01
"""Share of the time of compiled calls that NumPy's calls in a row may take. They correct what was timed in comparisons:
an iteration of PyGCM's took 51 ms there, 45 in a row and 44 without accel."""

PLAINLY_FASTER = 2.0
"""Factor by which a program must be faster than NumPy; else its calls are judged in a row, too. Two libraries' threads
that wait for each other's processors have been seen to make comparisons' calls take twice as long."""

STRIKES, LOSS_S = 2, 0.01
"""A program is given up after STRIKES judgements in a row that it is slower, each from new samples. The calls judged
must also have cost LOSS_S seconds in all. A program about as fast as NumPy may yet become faster, when arrays come
aligned."""

APART_S, MAX_APART_S = 0.03, 3.0
"""Minimum seconds between two such judgements, and the most that they grow to. Other processes may have used the
processor for some milliseconds. The seconds double if two judgements in a row differ. Every second judgement of a
program as fast as NumPy says "slower", and each of those takes new comparisons."""

PARTS_FACTOR = 1.25
"""Slowdown against the programs of its parts at which a program is given up for them. They were timed earlier, when the
machine may have been less busy."""

KEPT = 32
"""Number of latest samples of a kind to keep: as many as decide, at MORE_SAMPLES, and as many again. A guess."""


_versions = itertools.count()


class Times:
    """The last KEPT samples of one kind, in seconds. version: a number that no other samples have."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=KEPT)
        self._sorted: list[float] | None = None
        self.version = next(_versions)

    def __len__(self) -> int:
        return len(self._seconds)

    def __iter__(self) -> Iterator[float]:
        return iter(self._seconds)

    def add(self, seconds: float) -> None:
        self._seconds.append(seconds)
        self._sorted, self.version = None, next(_versions)

    def clear(self) -> None:
        self._seconds.clear()
        self._sorted, self.version = None, next(_versions)

    def median(self) -> float:
        """The median, in seconds. Raises statistics.StatisticsError if empty."""
        return statistics.median(self._in_order())

    def quartile(self, *, upper: bool = False) -> float:
        """The lower or upper quartile, in seconds. Raises IndexError if empty."""
        ordered = self._in_order()
        return ordered[-1 - (len(ordered) - 1) // 4 if upper else (len(ordered) - 1) // 4]

    def least(self) -> float:
        """The shortest, in seconds. Raises IndexError if empty."""
        return self._in_order()[0]

    def most(self) -> float:
        """The longest, in seconds. Raises IndexError if empty."""
        return self._in_order()[-1]

    def _in_order(self) -> list[float]:
        """The samples in order. Cached: NumPy's are read at every replay, but only comparisons change them."""
        if self._sorted is None:
            self._sorted = sorted(self._seconds)
        return self._sorted


class Speed:
    """Times of a path's calls, compiled and on NumPy. Only `disturbed_s` and `busy_s` have times taken during a
    compile.

    parts_s: of calls without a program whose parts had programs (see accel.policy.parts). disturbed_s: of calls
    on NumPy while something was compiled, or the worker was starting. busy_s: of compiled calls meanwhile. wanted:
    calls in a row that are to run on NumPy, to be timed. pauses: whether calls are to run on NumPy as long as something
    is compiled.
    """

    def __init__(self) -> None:
        self.numpy_s = Times()
        self.parts_s = Times()
        self.compiled_s = Times()
        self.disturbed_s = Times()
        self.busy_s = Times()
        self._calls = deque[int](maxlen=KEPT)  # that each of `compiled_s` stands for: a streak is one sample
        self._least_s = inf  # of all of them
        self._row_s = Times()  # of NumPy's calls in a row, while some are still wanted
        self._disturbed_calls, self._disturbed_s = 0, 0.0  # of all of them, and not of the last ones alone
        self._slowdown_s = 0.0
        self._next_at, self._apart_s = 0.0, APART_S
        self._figures: tuple[tuple[int, int], float | None, float | None] | None = None
        self.begin_anew()

    def begin_anew(self) -> None:
        """Judge by new samples alone."""
        self.numpy_s.clear()
        self.forget_replays()
        self._forget_busy()
        self.wanted, self._in_a_row = 0, False
        self._strikes, self._lost_s = 0, 0.0
        self._replays, self._replays_s, self._rows = 0, 0.0, 1
        self._claimed = 0.0, 0.0, 0  # of all these replays: see `count_replay`

    def note_compared(self, seconds: float) -> None:
        """Note NumPy's call of a comparison."""
        # some may still be wanted: where an iteration of a loop is followed, none runs on NumPy
        if self.wanted or not self._in_a_row:
            self.numpy_s.add(seconds)

    def note_wanted(self, seconds: float) -> None:
        """Note one of the calls that were to run on NumPy."""
        if self.wanted == CALLS_IN_A_ROW:
            self._row_s = Times()
        else:
            self._row_s.add(seconds)
        self.wanted -= 1
        if self.wanted:  # until then there are the earlier samples: what is missing, comparisons would supply
            return
        for each in self.numpy_s if self._in_a_row else ():
            self._row_s.add(each)
        self.numpy_s, self._in_a_row = self._row_s, True

    @property
    def knows_numpy(self) -> bool:
        """Whether there are enough samples of NumPy to judge by."""
        return len(self.numpy_s) >= NUMPY_SAMPLES

    def note_replays(self, seconds: float, least_s: float, calls: int = 1, *, quiet: bool = True) -> None:
        """Note a sample of compiled calls: `seconds` together, the shortest least_s. quiet: nothing was compiled then.

        NumPy's samples are stretched as other programs stretch all its calls. They interrupt few calls shorter than
        SHORT_S, so the shortest is stretched likewise: else NumPy would seem to be slower by that factor.
        """
        sample = max(seconds / calls, least_s * current_run().stretch if least_s < SHORT_S else 0.0)
        if not quiet:
            self.busy_s.add(sample)
            self._busy_calls += calls
            return
        self.compiled_s.add(sample)
        self._calls.append(calls)
        self._least_s = min(self._least_s, least_s)

    def forget_replays(self) -> None:
        """Judge by new compiled calls alone."""
        self.compiled_s.clear()
        self._calls.clear()
        self._least_s = inf

    def count_replay(self, seconds: float, calls: int = 1) -> tuple[float, float, int]:
        """Count compiled calls of `seconds` together.

        Returns by how much three sums over all of them have grown: the seconds gained against NumPy, by how much that
        may be too little or too much, and the calls for which there are too few samples to tell. Samples change what
        earlier calls have gained, too: the first ones are comparisons, which are slower than NumPy alone.
        """
        self._replays += calls
        self._replays_s += seconds
        versions = self.numpy_s.version, self.disturbed_s.version
        if self._figures is None or self._figures[0] != versions:  # computing them takes 4 us, a fifth of a small call
            self._figures = versions, self.usual_s, self.spread_s
        count, (_, usual_s, spread_s), before = self._replays, self._figures, self._claimed
        gained_s = 0.0 if usual_s is None else count * usual_s - self._replays_s
        rows_s = self._rows * CALLS_IN_A_ROW * (usual_s or 0.0)
        if gained_s > 0.0 and not self.wanted and ROW_SHARE * self._replays_s >= rows_s:
            self.wanted = CALLS_IN_A_ROW
            self._rows += 1
        now = self._claimed = gained_s, count * (spread_s or 0.0), count if spread_s is None else 0
        return now[0] - before[0], now[1] - before[1], now[2] - before[2]

    @property
    def usual_s(self) -> float | None:
        """Seconds that a call would take without accel; None if no call on NumPy was timed.

        This is the lower quartile of NumPy's times: slower calls may have shared the machine. Calls during a compile
        have a quartile of their own, and the lower of both counts. Many of the other calls are comparisons, which run
        after a compiled call has emptied the processor's caches. They too are slower than without accel.
        """
        quartiles = [times.quartile() for times in (self.numpy_s, self.disturbed_s) if len(times)]
        return min(quartiles, default=None)

    @property
    def spread_s(self) -> float | None:
        """By how much NumPy's calls may take longer or less than `usual_s`; None for too few samples.

        The fastest call is the least that a call takes. More than half of the samples are calls that something of
        accel's slowed down: so the median is the most.
        """
        usual_s = self.usual_s
        if usual_s is None or len(self.numpy_s) + len(self.disturbed_s) < NUMPY_SAMPLES:
            return None
        times = min((each for each in (self.numpy_s, self.disturbed_s) if len(each)), key=Times.quartile)
        return max(usual_s - times.least(), times.median() - usual_s)

    def note_disturbed(self, seconds: float) -> None:
        """Note a call on NumPy during a compile."""
        self.disturbed_s.add(seconds)
        self._disturbed_calls += 1
        self._disturbed_s += seconds

    def more_slowdown_s(self) -> float:
        """Return the seconds by which compiling has slowed calls down since this was last asked.

        It is negative where the usual time turns out to be longer than it seemed then.
        """
        before, usual_s = self._slowdown_s, self.usual_s
        if usual_s is not None:
            self._slowdown_s = max(0.0, self._disturbed_s - self._disturbed_calls * usual_s)
        return self._slowdown_s - before

    def evidence_of_slowness(self) -> str | None:
        """The figures that show that the program is slower, in words; None as long as they do not show it.

        One judgement is usually not enough, because the machine may have been busy: the next uses new samples of both.
        """
        if len(self.compiled_s) < MIN_SAMPLES or not len(self.numpy_s):
            return None
        plainly = self._is_clearly_slower()
        if not plainly and (len(self.compiled_s) < SPEED_SAMPLES or time.perf_counter() < self._next_at):
            return None
        numpy_s = self.numpy_s.median()
        in_parts = len(self.parts_s) >= NUMPY_SAMPLES and PARTS_FACTOR * self.parts_s.median() < numpy_s
        other_s = self.parts_s.median() if in_parts else numpy_s
        if self._has_lost_little(other_s):
            return None
        compiled_s, calls = self.compiled_s.median(), sum(self._calls)
        self.forget_replays()
        if compiled_s <= (PARTS_FACTOR if in_parts else 1.0) * other_s:
            if self._strikes:
                self._apart_s = min(2.0 * self._apart_s, MAX_APART_S)
            self._strikes, self._lost_s = 0, 0.0
            self._forget_busy()
            # the sums may say that it has lost: then NumPy's last row has met a busy machine
            is_doubtful = self._claimed[0] < 0.0 or not self._in_a_row
            if is_doubtful and (compiled_s < SHORT_S or PLAINLY_FASTER * compiled_s > other_s):
                self.wanted, self._in_a_row = CALLS_IN_A_ROW, False
            return None
        self._strikes += 1
        self._lost_s += calls * (compiled_s - other_s)
        if plainly or (self._strikes >= STRIKES and self._lost_s >= LOSS_S):
            others = f"{other_s * 1e3:.3g} ms {'in parts' if in_parts else 'on NumPy'}"
            return f"{compiled_s * 1e3:.3g} ms compiled, {others}"
        self._next_at = time.perf_counter() + self._apart_s
        # what is slower need not wait for comparisons, which come rarely
        self.numpy_s.clear()
        self.wanted, self._in_a_row = CALLS_IN_A_ROW, False
        return None

    def evidence_while_busy(self) -> str | None:
        """As `evidence_of_slowness`, by calls while something was compiled: None unless they leave no doubt.

        Where they leave some, the calls that follow may have to pause.
        """
        on_numpy = [times for times in (self.numpy_s, self.disturbed_s) if len(times)]
        if len(self.busy_s) < MIN_SAMPLES or not on_numpy:
            return None
        best, worst = self.busy_s.least(), max(times.most() for times in on_numpy)
        usual = max(times.median() for times in on_numpy)
        self.pauses = best > CLEARLY_SLOWER * usual and self._busy_calls * (best - usual) > PAUSE_SHARE * MAX_LOSS_S
        if best <= FAR_SLOWER * worst or len(self.busy_s) * (best - worst) <= MAX_LOSS_S:
            return None
        self._forget_busy()
        return f"{best * 1e3:.3g} ms compiled, {worst * 1e3:.3g} ms on NumPy"

    def _forget_busy(self) -> None:
        self.busy_s.clear()
        self._busy_calls, self.pauses = 0, False  # calls: not of the last samples alone

    def _has_lost_little(self, other_s: float) -> bool:
        """Whether there is nothing to lose by more samples. other_s: what a call takes without the program."""
        samples = len(self.compiled_s)
        return samples < MORE_SAMPLES and sum(self._calls) * (sum(self.compiled_s) / samples - other_s) < NO_LOSS_S

    def _is_clearly_slower(self) -> bool:
        """Whether a few samples settle it: the fastest compiled call took far longer than NumPy's slowest."""
        worst, best, samples = self.numpy_s.most(), self._least_s, len(self.compiled_s)
        if best <= CLEARLY_SLOWER * worst or not self.knows_numpy:
            return False
        return samples >= SPEED_SAMPLES // 2 or sum(self._calls) * (best - worst) > MAX_LOSS_S
