"""A second look at a function whose programs were slower than NumPy.

Calls with larger arrays may come later. And the machine may have been busy while the programs were timed: after some
time they are tried again, ever more rarely.
"""

from __future__ import annotations

from accel.policy.rest import LONG_CALL_FACTOR, LOOKS_AFTER_LONG_CALL, SMALL_CALL_S

SELDOM = 16
"""Calls between two that take long, if the machine may be the reason: it was busy."""

AGAIN_S, AGAIN_CALLS, AGAIN_FACTOR = 3.0, 400, 4.0
"""Programs are tried again once calls on NumPy have taken AGAIN_S seconds, and the time of AGAIN_CALLS calls. Each time
that they were slower again, both grow by AGAIN_FACTOR. Some twenty calls show that: a share of the calls so far."""


class SecondLook:
    """Whether calls on NumPy take so long that they must have larger arrays than those that programs were slower for.

    usual_s: what the longest of these took. now_s: what all calls on NumPy have taken so far. before: the last one of
    this function. It is *open* while calls are examined again.
    """

    def __init__(self, usual_s: float, now_s: float = 0.0, before: SecondLook | None = None) -> None:
        self._wait_s: float = max(AGAIN_S, AGAIN_CALLS * usual_s)
        if before is not None:
            self._wait_s = max(self._wait_s, AGAIN_FACTOR * before._wait_s)
        self._again_at_s = now_s + self._wait_s
        self._long_s = LONG_CALL_FACTOR * max(usual_s, SMALL_CALL_S)
        self._since_long = SELDOM
        self._left = 0

    def is_time(self, now_s: float) -> bool:
        """Whether to try the programs again. now_s: what all calls on NumPy have taken so far."""
        return now_s >= self._again_at_s

    def opens(self, spent: float) -> bool:
        """Note a call that was not examined. Returns whether to examine those that follow."""
        self._since_long += 1
        if spent <= self._long_s:
            return False
        is_seldom, self._since_long = self._since_long > SELDOM, 0
        if is_seldom:
            return False
        self._left = LOOKS_AFTER_LONG_CALL
        return True

    def closes(self) -> bool:
        """Note an examined call that was like those before. Returns whether there have been enough of them.

        It goes on saying so: the first time, another path may still be on its way to a program, that it gets or not.
        """
        self._left -= 1
        return self._left <= 0
