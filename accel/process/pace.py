"""Pace: how much longer the program's calls on NumPy take than the processor time that they need.

On an idle machine the two are equal. Where other programs are at work, wall time is stretched, and what is fixed in
seconds has to be stretched too.
"""

from __future__ import annotations

LEAST_S = 0.02
"""Seconds of calls below which nothing is known. Guess."""

MOST = 8.0
"""Maximum stretch. A program that waits for something else looks like one on a busy machine."""


class Pace:
    """Wall time and processor time of calls on NumPy, in seconds."""

    def __init__(self) -> None:
        self.wall_s = 0.0
        self.worked_s = 0.0

    def note(self, wall_s: float, worked_s: float) -> None:
        """Note a call. worked_s: processor time of its thread."""
        self.wall_s += wall_s
        self.worked_s += worked_s

    def stretch(self) -> float:
        """Wall time as a multiple of processor time, from 1 on."""
        if self.worked_s < LEAST_S:
            return 1.0
        return min(MOST, max(1.0, self.wall_s / self.worked_s))


_pace = Pace()
note, stretch = _pace.note, _pace.stretch
"""This process's."""
