"""Parts: the targets inside a call, which may use programs of their own while the call itself has none.

Most calls without a program run on NumPy as a whole: their program is soon there, and what their parts would gain until
then would not pay for recording and compiling them. A round of the program's own loop is another matter. It is large,
its program takes long to compile, and some of its rounds (that print, or plot) never get one. So its parts come first:

- The loop is not recorded before its parts have their programs, unless an earlier run has compiled programs of it.
- A round without a program runs in parts. What that takes is no time of NumPy's; a program that takes longer is given up.
- A round of a new kind is recorded once such rounds have taken as long as a recording does: kinds that come rarely never
  pay for one.
"""

from __future__ import annotations

import functools
from types import CodeType

from accel.backend import devices, experience
from accel.dispatch.call import Call
from accel.dispatch.costs import budget

SETTLED_CALLS = 16
"""After so many calls in which nothing was recorded, nor compiled, the parts are taken to have their programs."""

PARTS_SHARE = 0.5
"""The parts come first if their calls take this share of the whole call."""

PATIENCE_S = 30.0
"""Seconds of calls after which the whole is recorded, whether or not its parts go on to be recorded."""

RARE_S = 0.5
"""Calls of new kinds run on NumPy until they have taken so many seconds, if there is a program for others: recording
their parts would not pay."""

SOUGHT_S = 2.0
"""So many seconds of calls may run on NumPy while the programs that an earlier run has compiled are looked for."""

FREE_KINDS = 2
"""The first kinds of calls are recorded at once."""


class _Recorded:
    """The number of recordings that this process has made."""

    def __init__(self) -> None:
        self.count = 0


recorded = _Recorded()


class Parts:
    """The parts of one target's calls. code: by which its programs are known; None where calls do not run in parts.

    used: whether they do. name: the target's.
    """

    def __init__(self, name: str, code: CodeType | None) -> None:
        self.used = code is not None
        self._name = name
        self._code = code
        self._share = 0.0
        self._calls = 0
        self._settled = 0
        self._recorded = 0
        self._waited_s = 0.0
        self._on_numpy_s = 0.0
        self._unmatched_s = 0.0

    @functools.cached_property
    def _key(self) -> str:
        assert self._code is not None
        return experience.key_of_code(self._name, self._code)

    @functools.cached_property
    def are_superfluous(self) -> bool:
        """Whether an earlier run has compiled programs of the target itself."""
        return self.used and experience.is_known(self._key)

    def note_compiled(self) -> None:
        """Note for later runs that there is a program of the target."""
        if self.used:
            experience.note_known(self._key)

    # -- calls --------------------------------------------------------------------------------------------------------

    def note(self, call: Call, *, quiet: bool) -> None:
        """Note a call that has run in parts. quiet: whether nothing was being compiled."""
        seconds = call.seconds or 0.0
        self._calls += 1
        self._waited_s += seconds
        if seconds > 0.0:
            self._share = 1.0 - call.own_s / seconds
        # before JAX is imported, no program can be in use
        is_settled = quiet and devices.is_started() and recorded.count == self._recorded
        self._settled = self._settled + 1 if is_settled else 0
        self._recorded = recorded.count

    def note_on_numpy(self, seconds: float) -> None:
        """Note a call without a program that ran on NumPy as a whole."""
        self._on_numpy_s += seconds

    def note_unmatched(self, seconds: float) -> None:
        """Note a call that no known path takes, and how long it took."""
        self._unmatched_s += seconds

    # -- what follows from them ---------------------------------------------------------------------------------------

    @property
    def come_first(self) -> bool:
        """Whether the target is not to be recorded yet, because its parts are still to get their programs."""
        if not self.used or budget.for_later_runs or self.are_superfluous:
            return False
        if not self._calls:  # the first call ran on NumPy: nobody knows yet whether it has parts
            return True
        if self._share < PARTS_SHARE or self._waited_s > PATIENCE_S:
            return False
        return self._settled < SETTLED_CALLS

    def run(self, *, is_rare: bool = False) -> bool:
        """Whether a call without a program runs in parts. is_rare: others have one."""
        if not self.used or budget.for_later_runs:
            return self.used
        if is_rare and not self._calls:
            return self._on_numpy_s >= RARE_S
        return not self.are_superfluous or self._on_numpy_s >= SOUGHT_S

    def pay_for_another(self, recording_s: float, kinds: int) -> bool:
        """Whether calls that no known path takes have taken as long as a recording does. Asked before each recording.

        kinds: the recordings so far.
        """
        if self.used and kinds >= FREE_KINDS and self._unmatched_s < recording_s:
            return False
        self._unmatched_s = 0.0
        return True
