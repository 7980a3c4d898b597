"""Accounts: what one target's calls take on NumPy, and what helping them costs and may cost."""

from __future__ import annotations

from collections import deque

from accel.platform import config, freed
from accel.platform.clocks import time
from accel.platform.ledger import Ledger, ledgers, open_ledger
from accel.policy import budget, prices, rest
from accel.policy.call import Call, note_counted
from accel.policy.rest import Rest

GUESSED_OPERATIONS, GUESSED_IN_S = 330, 0.01
"""Operations in a time on NumPy, before recordings have shown how many there are. A guess. It counts for as much as
recordings of calls that take so long together."""

LONGEST_RECORDING_S, GAIN_SHARE = 0.5, 0.25
"""Maximum time of a recording beyond its call on NumPy: seconds, plus a share of the time of all calls of the function
so far. If as many calls follow, a program saves no more than that. A daily step of a model that branched by each of its
animals took 400 times as long as on NumPy."""

RUN_FIXED_S, RUN_SHARE = 1.0, 0.1
"""Limit on recordings that ended at a limit, all together: seconds, and a share of the process's time without accel.
Once they have reached it, each later one has LONGEST_RECORDING_S: loops and the functions that they call end there one
by one."""

BURST_S = 0.05
"""Seconds of a recording above which the next one has to wait for as long as it took. A step of a program that calls
many targets would wait for all their recordings at once."""

IN_VAIN_FACTOR = 1.5
"""Factor on a recording's price for each recording in a row after which nothing was gained."""

OVERDRAWN_FACTOR = 2.0
"""Factor on that price if accel has overdrawn its budget. Targets call each other, so each loses the same seconds on
NumPy. But they are lost at every later call, too: no more recordings would be worse."""

EXPECTED_GAIN_SHARE, SHOWN_CALLS = 2 / 3, 8
"""Share of a call's NumPy time that a program is expected to save, until this many calls have shown it. The first calls
may have taken long, and for some programs no call on NumPy has been timed."""

LAUNCH_S = 4e-5
"""Seconds that launching a program takes off what it saves."""

FIRST_CALLS = 4
"""Number of first calls whose fastest one shows how long a call without any program takes."""

UNKNOWN_LENGTH = 20
"""Operations that a call inside another one is taken to have before it was recorded. A guess: recorded loop bodies had
14 to 141."""

RELIABLE_CALL_S = 1e-3
"""A first call that takes longer tells how long later calls take. A shorter one may mostly have warmed something up."""


def expected_gain_s(seconds: float, calls: int = 1) -> float:
    """Return the seconds that a program is expected to save; negative if it costs. seconds: of all `calls` on NumPy."""
    return EXPECTED_GAIN_SHARE * seconds - LAUNCH_S * calls


class _Recorded:
    """The recordings of this process: how many operations the last ones had in a second on NumPy.

    count: their number. in_vain_s: what those have taken, beyond their calls, that ended at a limit. lengths: of each
    target, the operations of its longest one.
    """

    def __init__(self) -> None:
        self.count = 0
        self.lengths: dict[str, int] = {}
        self._last = deque([(float(GUESSED_OPERATIONS), GUESSED_IN_S)], maxlen=16)
        self._goes_on = 0.0  # when the next one may be made
        self.in_vain_s = 0.0

    def note_end(self, spent: float) -> None:
        """End a recording that took `spent` seconds."""
        if spent > BURST_S:
            self._goes_on = time.perf_counter() + spent

    @property
    def pauses(self) -> bool:
        """Whether the last one was only just made."""
        return time.perf_counter() < self._goes_on

    def note(self, spent: float, numpy_s: float) -> None:
        """Note a recording: seconds beyond its call's, and what the call takes on NumPy."""
        if numpy_s > 0.0:
            self._last.append((prices.recording.operations_for(spent), numpy_s))

    def likely_s(self, numpy_s: float) -> float:
        """Return the seconds that recording a call is likely to take, beyond those on NumPy."""
        operations, seconds = map(sum, zip(*self._last, strict=True))
        return prices.recording.of(numpy_s * operations / seconds)


recorded = _Recorded()


class Account:
    """Times of one target's calls, entered into its ledger.

    rest: see accel.policy.rest. call_s: seconds of the last call on NumPy. first_s: of the fastest of the first ones.
    numpy_calls: calls on NumPy so far, but for rested ones. total_s: seconds of all calls on NumPy, nested targets
    included; rested calls add their own.
    """

    def __init__(self, name: str) -> None:
        self.rest = Rest()
        self.call_s = 0.0
        self.numpy_calls = 0
        self.total_s = 0.0
        self._name = name
        self._recording_s: float | None = None
        self.first_s = 0.0
        self._rested = self.rest.ever
        # since the last recording: seconds of calls that no known path has taken; and what others had gained by then
        self._unmatched_s = 0.0
        self._gained_s = 0.0
        self._in_vain = 0  # recordings in a row
        self._calls_before: dict[str, int] = {}  # of all targets, by the end of the first call

    @property
    def ledger(self) -> Ledger:
        return open_ledger(self._name)

    # -- calls on NumPy -----------------------------------------------------------------------------------------------

    def add_rested(self) -> tuple[int, float]:
        """Add the calls that have gone straight to NumPy since this was called last: their number and seconds."""
        before, self._rested = self._rested, self.rest.ever
        # `ever` is only read: the ledger enters these calls by `Rest.enter`, whenever that comes
        calls, seconds = self._rested[0] - before[0], self._rested[1] - before[1]
        self.total_s += seconds
        return calls, seconds

    def begin_rest(self, looked_s: float, call_s: float, *, waits: bool = False) -> None:
        """Leave as many calls to NumPy as pay for examining this one. waits: whether a program is being compiled."""
        # there every call is observed, whatever it costs
        if budget.for_later_runs:
            return
        ledger = self.ledger
        covered_s = rest.LOOKS_SHARE * self.total_s + budget.TARGET_FIXED_S + ledger.gained_s
        self.rest.begin(looked_s, call_s, waits=waits, ends_early=ledger.costs["guards"] <= covered_s)
        if not self.rest.is_over:
            ledger.count_later(self.rest)

    def count_numpy(self, call: Call, *, quiet: bool) -> None:
        """Count a call that NumPy has answered.

        quiet: whether nothing of accel's slowed it, so that its time may be compared with those of compiled calls.
        """
        assert call.seconds is not None
        self.ledger.count_numpy(call.seconds if quiet else None, call.own_s)
        freed.current.note(self._name, call.worked_s, call.system_s)
        self.call_s = call.seconds
        if self.numpy_calls < FIRST_CALLS:
            self.first_s = min(self.first_s or call.seconds, call.seconds)
        self.numpy_calls += 1
        self.total_s += call.seconds
        if self.numpy_calls == 1:
            self._calls_before = {book.target: book.calls for book in ledgers()}

    @property
    def knows_numpy(self) -> bool:
        """Whether enough calls have shown how long NumPy takes."""
        return self.numpy_calls >= (1 if self.call_s > RELIABLE_CALL_S else 2)

    @property
    def is_small(self) -> bool:
        """Whether calls are too short for a compiled program to gain anything."""
        return self.call_s < rest.SMALL_CALL_S

    @property
    def gains_by_looking(self) -> bool:
        """Whether the target's programs have gained what examining all its calls has cost.

        Where they have not, most of its calls come to NumPy all the same, and each of them is examined for that.
        """
        ledger = self.ledger
        return ledger.gained_s >= ledger.costs["guards"]

    # -- recordings ---------------------------------------------------------------------------------------------------

    @property
    def pauses(self) -> bool:
        """Whether no recording is to be made now, as this process has only just made one."""
        return recorded.pauses

    def covers_recording(self, *, paid: bool = False, certain_s: float = 0.0) -> bool:
        """Whether another recording is worth its cost. paid: whether the time that calls have missed pays for it.

        certain_s: seconds that calls to come are certain to miss.

        It is if the budget covers it. It also is if the calls that no known path takes have lost a recording's price,
        and the budget of the process covers that. Their loss is their time, multiplied by the share that the target's
        programs save on other calls. The price is a multiple of the recording's seconds if the budget is overdrawn, or
        if the last recordings gained nothing.
        """
        _, compile_s = prices.program_s(self.recording_s)
        whole_s = self.recording_s + prices.burden_s(compile_s)
        if budget.covers(self.ledger, whole_s, self.total_s):
            return True
        shown = self.ledger.compiled_calls >= SHOWN_CALLS
        share = self.ledger.saved_share if shown else EXPECTED_GAIN_SHARE
        price_s = self.recording_s * IN_VAIN_FACTOR**self._in_vain
        if budget.is_overdrawn():
            price_s *= OVERDRAWN_FACTOR
        return (paid or 0.0 < price_s <= share * self._unmatched_s) and budget.grants(whole_s, certain_s)

    def note_unmatched(self, seconds: float) -> None:
        """Note a call on NumPy that no known path takes, though there are programs of others."""
        self._unmatched_s += seconds

    @property
    def recording_s(self) -> float:
        """Seconds that the next recording takes beyond its call on NumPy, about."""
        if self._recording_s is not None:
            return self._recording_s
        # later calls may be short because the functions inside have programs: these are recorded all the same
        return min(recorded.likely_s(max(self.call_s, self.first_s)), LONGEST_RECORDING_S)

    @property
    def longest_recording_s(self) -> float:
        """Seconds after which a recording is broken off: what has been called so little never gains as much."""
        left = RUN_FIXED_S + RUN_SHARE * budget.without_accel_s() - recorded.in_vain_s
        return self.call_s + max(LONGEST_RECORDING_S, min(LONGEST_RECORDING_S + GAIN_SHARE * self.total_s, left))

    @property
    def is_too_long(self) -> bool:
        """Whether a recording is certain to be broken off, by the calls of another target that this one's calls make.

        Measured: iterations with 300 to 600 calls inside cost runs of 8 s from 1 to 3 s that way.
        """
        before = self._calls_before if self.ledger.calls > self._calls_before.get(self._name, 0) else {}
        made = {book.target: book.calls - before.get(book.target, 0) for book in ledgers()}
        own = max(made.pop(self._name, 0), 1)
        inner = (count * recorded.lengths.get(name, UNKNOWN_LENGTH) for name, count in made.items())
        longest_s = max(self.longest_recording_s - self.call_s, LONGEST_RECORDING_S)
        return prices.recording.of(max(inner, default=0) / own) > longest_s

    def note_in_vain(self, spent: float) -> None:
        """Note a recording that ended at a limit."""
        recorded.in_vain_s += max(0.0, spent - self.call_s)

    def count_recorded(self, spent: float) -> None:
        """Count a recorded call: as NumPy's call, which it is, and what it took longer."""
        # its own time on NumPy cannot be told from the recording's: the last call's stands for it
        usual = min(spent, self.call_s)
        recorded.note(spent - usual, usual)
        recorded.note_end(spent)
        # the last call may have been a longer one, as the first often is
        self._begin_unmatched(max(spent - usual, spent / 2))
        self.ledger.count_numpy(None, usual)
        self.ledger.charge("recording", spent - usual)
        note_counted(spent)

    def charge_undone(self, spent: float) -> None:
        """Charge a recording that was undone: NumPy answers its call all over again."""
        recorded.note_end(spent)
        self._begin_unmatched(spent)
        self.ledger.charge("recording", spent)
        note_counted(spent)

    def _begin_unmatched(self, recording_s: float) -> None:
        """Note a recording: count anew what calls lose without one."""
        gained_s = self.ledger.gained_s
        if gained_s > self._gained_s:
            self._in_vain = 0
        elif self._unmatched_s:
            self._in_vain += 1
        self._recording_s, self._unmatched_s, self._gained_s = recording_s, 0.0, gained_s

    def charge_discarded(self, call: Call) -> float:
        """Charge what a call has taken so far, which was in vain. Returns the seconds."""
        now = time.perf_counter()
        spent, call.began = now - call.began, now
        self.ledger.charge("discarded", spent)
        note_counted(spent)
        return spent


def is_limited(mode: str) -> bool:
    """Whether the budget holds: not where the user wants each call compiled or compared, whatever it costs."""
    settings = config.current()
    return mode == "auto" and settings.ahead_of_time and settings.policy == config.BUDGET
