"""Rest: calls that go straight to NumPy, because examining each would cost more than it could gain.

To examine a call is to count it, and to match it against the known paths and refusals.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from accel.platform import config, timeline
from accel.platform.clocks import time
from accel.platform.ledger import Ledger
from accel.policy.call import THREAD

SHARE = 0.01
"""Cost of examining calls before NumPy runs, as a share of their time on NumPy, while nothing is compiled. Counting
them afterwards takes about as long."""

SINGLE_LOOK_S, USUAL_LOOKS = 5e-5, 3
"""Maximum seconds for which one look counts, unless USUAL_LOOKS before it took longer, too. Looks in a row take long as
guards are generated, inputs observed and a program described, or as other processes run. A rest to make up for that
would delay the program, of a loop's iteration by a hundred. The budget is charged with them."""

MAX_REST = 1024
"""The most calls in one rest."""

WAITING_S = 0.05
"""Maximum seconds of a rest while a program of the target is compiled: each call may find it ready."""

SMALL_CALL_S = 3e-5
"""Calls that take fewer seconds on NumPy are not compiled: launching a compiled program takes about as long."""

TIMED_ONE_IN = 15
"""Number of calls in a rest of which one is timed, and stands for those after it. Timing a call of 5 us takes a tenth
of it. The number is odd so that calls of two kinds that alternate are both met."""

LONG_CALL_FACTOR = 4.0
"""A call that takes this many times as long as the one examined last is of another kind. It ends the rest, so that the
next call of its kind is examined. The thread's own time has to show it, too. On a machine whose cores are shared, calls
of all kinds are interrupted. Each interruption would lead to more examined calls than pay."""

LOOKS_AFTER_LONG_CALL = 64
"""The number of calls that are examined after such a long call."""

LOOKS_SHARE = 0.02
"""Cost of examining a target's calls, as a share of its time on NumPy and beyond what its programs have gained, above
which long calls do not end rests. Guess. A loop whose iterations took 4 us and 1 ms in turns was examined at nearly
each of them: 2 to 9 s of a run of 7 s."""


@dataclass(slots=True, eq=False)
class Rest:
    """A series of calls that go straight to NumPy.

    untimed: calls to come before the next one that is timed; settings: those under which it began (the wrapper reads
    both, see accel.dispatch.decorator). allowed: False if every call has to be observed. seconds: estimated time of the
    calls that are not in the ledger yet, from the timed ones, without that of other targets called inside them.

    A rest ends early if the settings change, if a profile is started, or if a timed call takes long.
    """

    allowed: bool = True
    seconds: float = 0.0
    untimed: int = 0
    settings: config.Settings | None = None
    _left: int = 0  # calls to come, from the next timed one on
    _granted: int = 0  # calls that are not in the ledger yet, and those to come that follow a timed one
    _looks_s: deque[float] = field(default_factory=lambda: deque(maxlen=USUAL_LOOKS))
    _long_s: float = 0.0
    _looks_left: int = 0
    _settled: tuple[int, float] = 0, 0.0

    def begin(self, looked_s: float, call_s: float, *, waits: bool = False, ends_early: bool = True) -> None:
        """Rest for as many calls as pay for examining one.

        looked_s: seconds that examining the last call took. call_s: seconds that NumPy took for it. waits: whether a
        program of the target is being compiled. ends_early: whether a long call ends this rest.
        """
        usual_s = max(min(self._looks_s), SINGLE_LOOK_S) if len(self._looks_s) == USUAL_LOOKS else SINGLE_LOOK_S
        self._looks_s.append(looked_s)
        # the long call that the looks were waiting for has been examined
        if call_s > self._long_s or not ends_early:
            self._looks_left = 0
        if not self.allowed:
            return
        if self._looks_left:
            self._looks_left -= 1
            return
        # n calls of `call_s` pay for one look if look_s <= SHARE * n * call_s
        look_s = min(looked_s, usual_s)
        most = int(WAITING_S / call_s) if waits and call_s > 0 else MAX_REST
        self._left = min(int(look_s / (SHARE * call_s)), MAX_REST, most) if call_s > 0 else 0
        self._long_s = LONG_CALL_FACTOR * max(call_s, SMALL_CALL_S) if ends_early else inf
        self.settings = config.current()

    def takes_next_call(self) -> bool:
        """Whether the next call goes straight to NumPy, timed. Not asked for calls that come untimed."""
        # untimed calls do not come here, unless the settings have changed or each call is to be in a profile
        if self.untimed > 0 or self.settings is not config.current() or timeline.calls is not None:
            self._end()
        if self._left <= 0:
            return False
        granted = min(self._left, TIMED_ONE_IN)
        self._left -= granted
        self._granted += granted
        self.untimed = granted - 1
        return True

    @property
    def is_over(self) -> bool:
        """Whether the next call is examined."""
        return self._left <= 0 and self.untimed <= 0

    @property
    def taken(self) -> int:
        """The number of calls that are not in the ledger yet."""
        return self._granted - self.untimed

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the function, timed. Raises what it raises."""
        before, worked, started = THREAD.counted_s, time.thread_time(), time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent = time.perf_counter() - started
            if spent > self._long_s and time.thread_time() - worked > self._long_s:
                self._end()
                self._looks_left = LOOKS_AFTER_LONG_CALL
            # it stands for the untimed ones too that follow it (none, if it has just ended the rest)
            calls = 1 + self.untimed
            self.seconds += (spent - (THREAD.counted_s - before)) * calls
            THREAD.counted_s = before + spent * calls

    def _end(self) -> None:
        """Let the next call be examined."""
        # these will not be taken any more
        self._granted -= self.untimed
        self._left = self.untimed = 0

    def settle(self) -> tuple[int, float]:
        """Hand over the calls that are not in the ledger yet: their number and their seconds."""
        taken, seconds = self.taken, self.seconds
        self._granted, self.seconds = self.untimed, 0.0
        self._settled = self._settled[0] + taken, self._settled[1] + seconds
        return taken, seconds

    def enter(self, ledger: Ledger) -> None:
        """Enter these calls into the ledger."""
        ledger.count_rested(*self.settle())

    @property
    def ever(self) -> tuple[int, float]:
        """All calls so far that went straight to NumPy, and their seconds."""
        return self._settled[0] + self.taken, self._settled[1] + self.seconds
