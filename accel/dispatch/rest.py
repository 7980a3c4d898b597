"""Rest: calls that go straight to NumPy, because looking at each would cost more than it can bring."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from accel import config
from accel.dispatch.call import THREAD
from accel.reports import timeline

SHARE = 0.02
"""What looking at calls may cost, as a share of their time on NumPy, while nothing is compiled."""

LONGEST = 1024
"""Calls that are not looked at."""

SMALLEST_S = 3e-5
"""Seconds on NumPy below which no call is compiled: starting a compiled program takes about as long."""

OTHERWISE = 4.0
"""A call that takes so many times as long as the one that was looked at is not of its kind: the next of its own kind is
looked at."""

SOUGHT = 64
"""Calls that are looked at for that."""


class Rest:
    """Calls that are left to NumPy, in a row. left: those to come. allowed: False where somebody looks at every call.

    taken, seconds: how many of them are in no ledger yet, and what they took, other targets inside them left out.
    A rest ends early where the settings change, where every call is to be noted, and where a call takes long.
    """

    __slots__ = ("_long_s", "_settings", "_sought", "allowed", "left", "seconds", "taken")

    def __init__(self) -> None:
        self.allowed = True
        self.left = self.taken = 0
        self.seconds = 0.0
        self._long_s = 0.0
        self._sought = 0
        self._settings: config.Settings | None = None

    def begin(self, looked_s: float, call_s: float) -> None:
        """Rest for as many calls as bear out one look. looked_s, call_s: what the look and NumPy took for the last."""
        if call_s > self._long_s:
            self._sought = 0
        if not self.allowed:
            return
        if self._sought:
            self._sought -= 1
            return
        self.left = min(int(looked_s / (SHARE * call_s)), LONGEST) if call_s > 0 else 0
        self._long_s = OTHERWISE * max(call_s, SMALLEST_S)
        self._settings = config.current()

    def takes(self) -> bool:
        """Whether the next call is one of them."""
        if self.left <= 0:
            return False
        if self._settings is not config.current() or timeline.calls is not None:
            self.left = 0
            return False
        self.left -= 1
        return True

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The function's own answer. Raises what it raises."""
        before, started = THREAD.counted_s, time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent = time.perf_counter() - started
            self.taken += 1
            self.seconds += spent - (THREAD.counted_s - before)
            THREAD.counted_s = before + spent
            if spent > self._long_s:
                self.left, self._sought = 0, SOUGHT

    def settle(self) -> tuple[int, float]:
        """How many calls are to be entered, and what they took; they count as entered then."""
        taken, seconds, self.taken, self.seconds = self.taken, self.seconds, 0, 0.0
        return taken, seconds
