"""A second look at a function whose programs were slower than NumPy: calls with larger arrays may come later."""

from __future__ import annotations

from accel.dispatch.costs.rest import LONG_CALL_FACTOR, LOOKS_AFTER_LONG_CALL, SMALL_CALL_S

SELDOM = 16
"""Calls between two that take long, if the machine may be the reason: it was busy."""


class SecondLook:
    """Whether calls on NumPy take so long that they must have larger arrays than those that programs were slower for.

    usual_s: what the longest of these took. It is *open* while calls are examined again.
    """

    def __init__(self, usual_s: float) -> None:
        self._long_s = LONG_CALL_FACTOR * max(usual_s, SMALL_CALL_S)
        self._since_long = SELDOM
        self._left = 0

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
