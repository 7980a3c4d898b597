"""Shares: the share of a call that each outlined part takes. Only a part that takes enough gets a target."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from accel.entry.lift.switch import Switch
from accel.platform.clocks import time
from accel.platform.interrupts import pass_on

LEAST_SHARE = 0.1
"""Minimum share of a call from which a part gets a target. Guess: the program of a smaller part could save less."""

WEIGHED_CALLS = 3
"""Number of calls after which a part that has not taken its share is left alone. Guess."""


def in_words(place: str) -> str:
    """A part's place in words.

    >>> in_words("17-23"), in_words("30-30"), in_words("30")
    ('lines 17-23', 'line 30', 'line 30')
    """
    first, _, last = place.partition("-")
    return f"line {first}" if last in ("", first) else f"lines {place}"


measured: dict[tuple[str, str], float] = {}
"""The share of a call, by the name of the whole and the place of the part."""


class Weighed:
    """Runs one part as it is, and times it.

    calls: gives the number of calls of the whole so far. call_s: seconds that one takes. decide: is told the part's
    share of call_s, once that is known to be enough or too little. It must set the switch's `call`, or turn the switch
    off.
    """

    def __init__(
        self, switch: Switch, calls: Callable[[], int], call_s: float, decide: Callable[[Switch, float], object]
    ) -> None:
        self._switch = switch
        self._calls = calls
        self._call_s = call_s
        self._decide = decide
        self._spent_s = 0.0
        self._before = calls()
        switch.call = self
        switch.on = True

    def __call__(self, body: FunctionType) -> Any:
        started = time.perf_counter()
        try:
            return body()
        finally:
            self._spent_s += time.perf_counter() - started
            if self._switch.call is self:  # not where it has been decided inside the body
                self._look()

    def _look(self) -> None:
        try:
            calls = self._calls() - self._before
            # with the call that is under way
            share = min(1.0, self._spent_s / max((calls + 1) * self._call_s, 1e-9))
            if share >= LEAST_SHARE or calls >= WEIGHED_CALLS:
                self._decide(self._switch, share)
        except Exception as error:  # the part has run: the program must see no error of accel's
            pass_on(error)
            self._switch.turn_off()
