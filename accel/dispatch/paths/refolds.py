"""Refolds: what became of constants that changed, how often they do, and what that takes."""

from __future__ import annotations

import time
from enum import Enum

REFOLD_SHARE, REFOLD_AFTER = 0.1, 4
"""Share of the time since a program is in use, and number of refolds, beyond which constants change often. Those
constants become inputs of the next program."""


class Refold(Enum):
    """Effect of changed constants on a program.

    GOES_ON: the program has the new constants. OTHER_WAY: with the new constants a branch takes another side; those of
    later calls may be as before. ANOTHER: only another program can take them.
    """

    GOES_ON = "goes on"
    OTHER_WAY = "other way"
    ANOTHER = "another"


class Refolds:
    """Number and time of foldings again of constants of the program in use."""

    def __init__(self) -> None:
        self._count = 0
        self._last_s, self._all_s = 0.0, 0.0
        self._since = time.perf_counter()

    def note(self, seconds: float) -> None:
        """Note one, in seconds. Without what only the first one takes."""
        self._count += 1
        self._last_s = seconds
        self._all_s += seconds

    @property
    def are_often(self) -> bool:
        """Whether the program had better read these constants at each launch."""
        share = self._all_s / max(time.perf_counter() - self._since, 1e-9)
        return self._count >= REFOLD_AFTER and share > REFOLD_SHARE

    def cost_more(self, numpy_s: float) -> bool:
        """Whether folding constants again costs more than a call on NumPy, which takes `numpy_s` seconds."""
        return self._last_s > numpy_s
