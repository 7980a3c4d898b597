"""Rest: calls that go straight to NumPy, because looking at each would cost more than it can bring."""

from __future__ import annotations

from accel import config
from accel.reports import timeline

SHARE = 0.02
"""What looking at calls may cost, as a share of their time on NumPy, while nothing is compiled."""

LONGEST = 1024
"""Calls that are not looked at."""

SMALLEST_S = 3e-5
"""Seconds on NumPy below which no call is compiled: starting a compiled program takes about as long."""


class Rest:
    """Calls that are left to NumPy, in a row. left: those to come. taken: those that are in no ledger yet.

    call_s: what each takes, about. A rest ends early where the settings change, or every call is to be noted.
    """

    __slots__ = ("_settings", "call_s", "left", "taken")

    def __init__(self) -> None:
        self.left = self.taken = 0
        self.call_s = 0.0
        self._settings: config.Settings | None = None

    def begin(self, looked_s: float, call_s: float) -> None:
        """Rest for as many calls as bear out one look. looked_s, call_s: what the look and NumPy took for the last."""
        self.left = min(int(looked_s / (SHARE * call_s)), LONGEST) if call_s > 0 else 0
        self.call_s = call_s
        self._settings = config.current()

    def takes(self) -> bool:
        """Whether the next call is one of them."""
        if self.left <= 0:
            return False
        if self._settings is not config.current() or timeline.calls is not None:
            self.left = 0
            return False
        self.left -= 1
        self.taken += 1
        return True
