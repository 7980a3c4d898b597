"""Parts: the targets inside a call, which may use programs of their own while the call itself has none.

Most calls without a program run on NumPy as a whole. Their program is soon there, and the gain of their parts until
then would not pay for recording and compiling them. An iteration of the program's own loop is another
matter. It is large, its program takes long to compile, and some iterations (that print, or plot) never get one. So its
parts come first. The time of an iteration while no program runs is all that a program of the loop could save. This time
is *missed*. Recording and compiling the loop are investments like others (see accel.policy.prices): they are made once
iterations have missed what they cost, or are certain to miss more. A loop over `range(n)`, a list or a progress bar
tells the number of iterations to come; of others, what they have missed so far tells what they are going to.

- If these end before its program can be there, the loop is recorded and compiled for later runs, once iterations have
  missed what that costs this one. A process has to go on with this after the program's end (see
  accel.backend.underway.last). A short run would never have a program of its loop.
- A program that an earlier run has begun to compile is compiled at once.
- One refused recording says little about a loop: its iteration may have been one that prints, or plots. The next
  recording is made once iterations have missed as much as that one took. After a second refusal, if no kind of
  iteration is known, they have to miss far more than all recordings took. If these were broken off for their time, the
  next one has to be allowed longer (see `Recordings.why_not`).
- An iteration that seems to be of a known kind may be of a new one. One is recorded once such iterations have missed
  the time of a recording, and ever more rarely.
- An iteration of a new kind is recorded once iterations of that kind have missed as much as a recording takes. Rare
  kinds never pay for one. Kinds are told apart by the guard or the branch at which they leave the program in use
  (`note_kind`).
- A program of the loop that takes longer than iterations in parts is given up.
"""

from __future__ import annotations

import functools
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from math import inf
from types import CodeType

from accel.backend.disk import experience
from accel.platform import config, gain
from accel.policy import budget, prices
from accel.policy.account import recorded
from accel.policy.call import Call

PARTS_SHARE = 0.5
"""The parts come first if their calls take this share of the whole call."""

FEW = 4
"""The fewest calls that show how long those to come take, and how often one of a kind comes."""

LAST = 16
"""Number of last calls whose fastest one predicts how long those to come take."""

RETRY_SHARE = 3.0
"""Time that calls have to miss before a target without a path is recorded again, as a multiple of its refused
recordings' time. It may never get a path. The factor is 1 if an earlier run has compiled it, or if only one was
refused."""

TELLING = 2
"""Number of refused recordings that say something about all calls of a target that runs in parts. Most of its calls are
alike, but a single one may have been unlike the others."""

FREE_KINDS = 2
"""The first kinds of calls are recorded at once."""

GONE_ON = 4
"""A loop of unknown length is taken for certain to miss this share, one in GONE_ON, of what it has missed so far. Of
loops seen at any moment of their runs, four of five go on for so long."""


@dataclass(slots=True)
class _Kind:
    """Calls of one kind that no known path takes. missed_s: by them, since one was recorded."""

    missed_s: float = 0.0
    left_at_first: int | None = None  # the number of calls to come at the first of these
    refused_s: float = 0.0  # of its refused recordings

    def forget_missed(self) -> None:
        self.missed_s, self.left_at_first = 0.0, None


class Parts:
    """The parts of one target's calls. code: by which its programs are known; None where calls do not run in parts.

    used: whether they do. name: the target's. calls_left: gives the number of calls to come, or None where nobody
    knows. recording_s: gives the seconds of a recording, by its account.
    """

    def __init__(self, name: str, code: CodeType | None) -> None:
        self.used = code is not None
        self._name = name
        self._code = code
        self.calls_left: Callable[[], int | None] = lambda: None
        self.recording_s: Callable[[], float] = lambda: 0.0
        self._share = 0.0
        self._calls = 0
        self._recorded = 0
        self._seconds, self._since_s = 0.0, budget.without_accel_s()
        self._missed_s = 0.0
        self._before_s, self._left = 0.0, 0  # missed before the loop that is under way; its calls to come
        self._unpaid_s = 0.0  # missed since that has paid for a recording
        self._last_s: deque[float] = deque(maxlen=LAST)
        self._last_missed_s: deque[float] = deque(maxlen=LAST)
        self._kinds: dict[Hashable, _Kind] = defaultdict(_Kind)
        self._kind = self._kinds[None]
        self._refused = 0  # recordings
        if self.used:
            budget.outlooks.add(self)
        self._last_unmatched = self._kind, 0.0  # the last examined call, if it was
        self._matched_s = 0.0
        self._rerecorded_in_vain = 0
        self._before_first = 0.0, 0  # seconds missed before the first recording, and the number of calls

    @functools.cached_property
    def _key(self) -> str:
        assert self._code is not None
        return experience.key_of_code(self._name, self._code)

    @functools.cached_property
    def _earlier_s(self) -> float:
        """Seconds that calls of earlier runs have missed; infinite if one of these has begun to compile the target."""
        earlier_s = experience.missed_s(self._key) if self.used else 0.0
        gain.potential_gain.add(0.0 if earlier_s == inf else earlier_s)
        return earlier_s

    @property
    def is_known(self) -> bool:
        """Whether an earlier run has begun to compile programs of the target itself."""
        return self._earlier_s == inf

    def note_begun(self) -> None:
        """Note for later runs that a program of the target is being compiled."""
        if self.used:
            experience.note_missed(self._key, inf)

    def note_end(self) -> None:
        """Note for later runs what calls have missed."""
        if self.used and self._missed_s:
            experience.note_missed(self._key, self._earlier_s + self._missed_s)

    # -- calls --------------------------------------------------------------------------------------------------------

    def note(self, call: Call, missed_s: float) -> None:
        """Note a call that has run in parts. missed_s: of that, while no program ran."""
        seconds = call.seconds or 0.0
        left = self.calls_left() or 0
        if left > self._left:
            self._before_s = self._missed_s
        self._left = left
        self._calls += 1
        self._seconds += seconds
        if seconds > 0.0:  # the largest: that of calls whose parts have no programs yet
            self._share = max(self._share, 1.0 - call.own_s / seconds)
        self._last_s.append(seconds)
        self._last_missed_s.append(missed_s)
        # what is recorded just now says nothing about later calls
        if recorded.count == self._recorded:
            self._missed_s += missed_s
            self._unpaid_s += missed_s
        self._recorded = recorded.count

    def note_kind(self, kind: Hashable) -> None:
        """Note of which kind the unmatched calls are that follow. kind: where they leave the program; None without."""
        self._kind = self._kinds[kind]

    def note_unmatched(self, missed_s: float) -> None:
        """Note a call that no known path takes."""
        self._kind.missed_s += missed_s
        if self._kind.left_at_first is None:
            self._kind.left_at_first = self.calls_left() or 0
        self._last_unmatched = self._kind, missed_s

    def note_matched(self, missed_s: float) -> None:
        """Note a call that a known path without a program seems to take."""
        self._matched_s += missed_s
        self._last_unmatched = self._kind, 0.0

    def note_first(self) -> None:
        """Note that a call was recorded, and that no path was known before."""
        self._before_first = self._unpaid_s, self._calls

    def missed_before_s(self, calls: int) -> float:
        """Return the seconds that calls of the first path missed before its recording: `calls` have taken it since."""
        missed_s, before = self._before_first
        earlier_s = 0.0 if self.is_known else self._earlier_s
        return earlier_s + missed_s * min(1.0, calls / max(1, self._calls - before))

    def note_rested(self, calls: int) -> None:
        """Note calls that were not examined: they are taken for ones like the last that was."""
        kind, missed_s = self._last_unmatched
        kind.missed_s += calls * missed_s

    # -- what follows from them ---------------------------------------------------------------------------------------

    @property
    def come_first(self) -> bool:
        """Whether the target is not to be recorded yet, because its parts are still to get their programs."""
        return not budget.for_later_runs and not self.is_known and not self.leave_enough

    @property
    def leave_enough(self) -> bool:
        """Whether calls in parts have missed what recording and compiling the whole costs, or are certain to."""
        if not self.used:
            return True
        if not self._calls:  # the first call ran on NumPy: nobody knows yet whether it has parts
            return False
        if self._share < PARTS_SHARE:
            return True
        record_s, compile_s = prices.program_s(self.recording_s())
        price_s = record_s + prices.burden_s(compile_s) + gain.potential_gain.wanting_s + budget.import_s
        if self.end_before(record_s + compile_s):
            return self.are_for_later_runs and self._missed_s >= FREE_KINDS * price_s
        # where the loop says how long it goes on, what it has missed itself says nothing
        lost_s = self._missed_s if self.calls_left() is None else self._before_s
        return prices.are_paid(price_s, self._earlier_s + lost_s, self.certain_miss_s(record_s + compile_s))

    @property
    def are_for_later_runs(self) -> bool:
        """Whether what comes too late for this run is finished after its end."""
        return self.used and not prices.IS_ALONE and config.current().finishes

    def end_before(self, seconds: float) -> bool:
        """Whether the calls to come are known to end before a program that takes so long to come is of use."""
        left = self.calls_left() if self.used else None
        meanwhile_s = prices.meanwhile_s(seconds)
        return left is not None and bool(self._last_s) and left * self._last_s[-1] < prices.CERTAIN * meanwhile_s

    @property
    def certain_s(self) -> float:
        """Seconds that the calls to come are known to take: at the speed of the last ones, or by the length of earlier
        runs. 0 where nobody knows."""
        return self._to_come_s(self._last_s)

    def certain_miss_s(self, seconds: float) -> float:
        """Seconds that calls are known to miss without a program that takes so long to come, at the rate of the last.

        Only those that come after that time count. Where nobody knows how long they go on, those so far tell (see
        GONE_ON).
        """
        to_come_s = self.certain_s
        if self.calls_left() is None and not to_come_s:
            return self._unpaid_s / GONE_ON
        share = max(0.0, 1.0 - prices.meanwhile_s(seconds) / to_come_s) if to_come_s else 0.0
        return share * self._to_come_s(self._last_missed_s)

    def _to_come_s(self, last_s: Collection[float]) -> float:
        if len(last_s) < FEW:
            return 0.0
        left = self.calls_left()
        return min(last_s) * (self._likely_calls if left is None else left)

    @property
    def _likely_calls(self) -> float:
        """Number of calls to come if this run takes as long as earlier ones, and calls have the share of it that they
        have had since the first one; 0 without earlier runs."""
        each_s, so_far_s = min(self._last_s), budget.without_accel_s() - self._since_s
        if each_s <= 0.0 or so_far_s <= 0.0:
            return 0.0
        return budget.expected_left_s() * min(1.0, self._seconds / so_far_s) / each_s

    @property
    def pay(self) -> bool:
        """Whether recordings are paid for by the time that calls have missed, and not by the budget."""
        return self.used and (self._share >= PARTS_SHARE or self.is_known)

    def pay_for_another(self, price_s: float, recordings: int, *, awaited: bool) -> bool:
        """Whether unmatched calls of this kind have missed as much as another path costs.

        Asked before each recording. price_s: that, in seconds. recordings: those so far, in earlier runs too. awaited:
        whether the program in use has kinds that an earlier run has recorded: a recording is all that these need.
        """
        is_free = recordings < FREE_KINDS or awaited
        price_s += self._kind.refused_s
        if self.used and not is_free and not prices.are_paid(price_s, self._kind.missed_s, self._certain_of_kind_s):
            return False
        self._kind.forget_missed()
        return True

    @property
    def _certain_of_kind_s(self) -> float:
        """Seconds that calls to come of this kind are known to miss, at the rate of those so far; 0 without a rate."""
        left = self.calls_left() or 0
        seen = 0 if self._kind.left_at_first is None else self._kind.left_at_first - left
        return left * self._kind.missed_s / seen if seen >= FEW else 0.0

    def note_refused(self, seconds: float) -> None:
        """A recording was refused: before the next one of its kind, calls have to miss as much as these have taken."""
        self.note_paid()
        self._refused += 1
        self._kind.refused_s += seconds
        self._kind.forget_missed()

    def note_paid(self) -> None:
        """Note a recording that the time missed so far has paid for: it pays for no other."""
        self._unpaid_s = 0.0

    @property
    def telling(self) -> int:
        """Number of refused recordings that say something about other calls."""
        return TELLING if self.used else 1

    @property
    def is_refusal_telling(self) -> bool:
        """Whether the refused recordings so far say something of other calls."""
        return self._refused >= self.telling

    @property
    def pay_for_a_retry(self) -> bool:
        """Whether calls have missed enough since the last refused recording, where no path is known."""
        refused_s = sum(kind.refused_s for kind in self._kinds.values())
        if not self.used or not refused_s:
            return True
        has_a_chance = self.is_known or not self.is_refusal_telling
        return sum(kind.missed_s for kind in self._kinds.values()) >= (1.0 if has_a_chance else RETRY_SHARE) * refused_s

    def pay_for_rerecording(self, recording_s: float, waiting: int) -> bool:
        """Whether calls that match a known path have missed enough for one of them to be recorded.

        It may take another path. Each recording that finds none doubles the time before the next one.
        """
        price_s = recording_s * 2 ** (waiting + self._rerecorded_in_vain)
        if self.used and self._matched_s < price_s:
            return False
        self._matched_s = 0.0
        return True

    def note_rerecorded(self, *, found: bool) -> None:
        """A call that matched a known path was recorded. found: it took another one."""
        self._rerecorded_in_vain = 0 if found else self._rerecorded_in_vain + 1
