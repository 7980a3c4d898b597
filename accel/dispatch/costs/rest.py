"""Rest: calls that go straight to NumPy, because examining each would cost more than it could gain.

To examine a call is to count it, and to match it against the known paths and refusals.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from accel import config
from accel.dispatch.call import THREAD
from accel.reports import timeline

SHARE = 0.02
"""What examining calls may cost, as a share of their time on NumPy, while nothing is compiled."""

MAX_REST = 1024
"""The most calls in one rest."""

SMALL_CALL_S = 3e-5
"""Calls that take fewer seconds on NumPy are not compiled: launching a compiled program takes about as long."""

LONG_CALL_FACTOR = 4.0
"""A call that takes this many times as long as the one examined last is of another kind. It ends the rest, so that the
next call of its kind is examined."""

LOOKS_AFTER_LONG_CALL = 64
"""The number of calls that are examined after such a long call."""


class Rest:
    """A series of calls that go straight to NumPy.

    left: calls to come. allowed: False if every call has to be observed. taken: calls that are not in the ledger yet;
    seconds: their time, without that of other targets called inside them. A rest ends early if the settings change, if
    a profile is started, or if a call takes long.
    """

    __slots__ = ("_long_s", "_looks_left", "_settings", "_settled", "allowed", "left", "seconds", "taken")

    def __init__(self) -> None:
        self.allowed = True
        self.left = self.taken = 0
        self.seconds = 0.0
        self._long_s = 0.0
        self._looks_left = 0
        self._settings: config.Settings | None = None
        self._settled = 0, 0.0

    def begin(self, looked_s: float, call_s: float) -> None:
        """Rest for as many calls as pay for examining one.

        looked_s: seconds that examining the last call took. call_s: seconds that NumPy took for it.
        """
        if call_s > self._long_s:
            self._looks_left = 0
        if not self.allowed:
            return
        if self._looks_left:
            self._looks_left -= 1
            return
        self.left = min(int(looked_s / (SHARE * call_s)), MAX_REST) if call_s > 0 else 0
        self._long_s = LONG_CALL_FACTOR * max(call_s, SMALL_CALL_S)
        self._settings = config.current()

    def takes_next_call(self) -> bool:
        """Whether the next call goes straight to NumPy."""
        if self.left <= 0:
            return False
        if self._settings is not config.current() or timeline.calls is not None:
            self.left = 0
            return False
        self.left -= 1
        return True

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the function. Raises what it raises."""
        before, started = THREAD.counted_s, time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent = time.perf_counter() - started
            self.taken += 1
            self.seconds += spent - (THREAD.counted_s - before)
            THREAD.counted_s = before + spent
            if spent > self._long_s:
                self.left, self._looks_left = 0, LOOKS_AFTER_LONG_CALL

    def settle(self) -> tuple[int, float]:
        """Hand over the calls that are not in the ledger yet: their number and their seconds."""
        taken, seconds, self.taken, self.seconds = self.taken, self.seconds, 0, 0.0
        self._settled = self._settled[0] + taken, self._settled[1] + seconds
        return taken, seconds

    @property
    def ever(self) -> tuple[int, float]:
        """All calls so far that went straight to NumPy, and their seconds."""
        return self._settled[0] + self.taken, self._settled[1] + self.seconds
