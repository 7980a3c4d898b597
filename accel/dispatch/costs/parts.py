"""Parts: the targets inside a call, which may use programs of their own while the call itself has none.

Most calls without a program run on NumPy as a whole: their program is soon there, and what their parts would gain until
then would not pay for recording and compiling them. A round of the program's own loop is another matter. It is large,
its program takes long to compile, and some of its rounds (that print, or plot) never get one. So its parts come first:

- While nothing is on disk, the loop is not recorded before its parts have their programs.
- A round without a program runs in parts. What that takes is no time of NumPy's; a program that takes longer is given up.
- A round of a new kind is recorded once such rounds have taken as long as a recording does: kinds that come rarely never
  pay for one.
"""

from __future__ import annotations

from accel.backend import cache
from accel.dispatch.call import Call
from accel.dispatch.costs import budget

SETTLED_CALLS = 16
"""After so many calls during which nothing was recorded or compiled, the parts are taken to have their programs."""

PARTS_SHARE = 0.5
"""The parts come first if their calls take this share of the whole call."""

PATIENCE = 30.0
"""Seconds of calls after which the whole is recorded, whether or not its parts go on to be recorded."""


class _Recorded:
    """The number of recordings that this process has made."""

    def __init__(self) -> None:
        self.count = 0


recorded = _Recorded()


class Parts:
    """The parts of one target's calls. used: whether they may use their programs where the target has none."""

    def __init__(self, *, used: bool) -> None:
        self.used = used
        self._share = 0.0
        self._calls = 0
        self._settled = 0
        self._recorded = 0
        self._waited_s = 0.0
        self._unmatched_s = 0.0

    def note(self, call: Call, *, quiet: bool) -> None:
        """Note a call that has run in parts. quiet: whether nothing was being compiled."""
        seconds = call.seconds or 0.0
        self._calls += 1
        self._waited_s += seconds
        if seconds > 0.0:
            self._share = 1.0 - call.own_s / seconds
        is_settled = quiet and recorded.count == self._recorded
        self._settled = self._settled + 1 if is_settled else 0
        self._recorded = recorded.count

    def note_unmatched(self, seconds: float) -> None:
        """Note a call that no known path takes, and how long it took."""
        self._unmatched_s += seconds

    @property
    def come_first(self) -> bool:
        """Whether the target is not to be recorded yet, because its parts are still to get their programs."""
        # what an earlier run has compiled is there at once, and makes programs for the parts superfluous
        if not self.used or budget.for_later_runs or cache.holds_programs():
            return False
        if not self._calls:  # the first call ran on NumPy: nobody knows yet whether it has parts
            return True
        if self._share < PARTS_SHARE or self._waited_s > PATIENCE:
            return False
        return self._settled < SETTLED_CALLS

    def pay_for_another(self, recording_s: float) -> bool:
        """Whether calls that no known path takes have taken as long as a recording does. Asked before each recording."""
        if self.used and self._unmatched_s < recording_s:
            return False
        self._unmatched_s = 0.0
        return True
