"""Stages: the states of a program, and how often one whose runs were discarded is tried again."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from math import inf

MAX_BACKOFF = 1023
"""The most calls on NumPy between two runs of a program whose last runs were all discarded."""

DISCARDED_SHARE = 0.02
"""Maximum cost of discarded runs, as a share of the calls on NumPy between them. Fewer calls suffice for that."""


class Stage(Enum):
    """State of a program, which decides how the calls of its paths run.

    OBSERVING: calls run on NumPy, while inputs that do not change are found. PENDING: it is being compiled; calls run
    on NumPy. COMPILED: calls are replayed. GIVEN_UP: calls stay on NumPy for good.
    """

    OBSERVING = "observing"
    PENDING = "pending"
    COMPILED = "compiled"
    GIVEN_UP = "given up"


TRANSITIONS: Mapping[Stage, tuple[Stage, ...]] = {
    Stage.OBSERVING: (Stage.PENDING,),  # start; install, of a program of several paths
    # install; stop_folding, as a constant changed on another path; give_up, as compiling failed or took too long
    Stage.PENDING: (Stage.COMPILED, Stage.OBSERVING, Stage.GIVEN_UP),
    # drop_program, as a constant changed; give_up, as the program is slower than NumPy or cannot be run
    Stage.COMPILED: (Stage.OBSERVING, Stage.GIVEN_UP),
    Stage.GIVEN_UP: (Stage.COMPILED,),  # try_again: it was slower, but the machine may have been busy
}
"""Stages that may follow each stage, and the methods that lead there. A program begins in OBSERVING."""


class Backoff:
    """Exponential backoff of a program whose runs were discarded.

    calls: those that still go to NumPy before it is tried again.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._discarded = 0  # runs in a row

    def note_discarded(self, seconds: float, call_s: float) -> None:
        """A run was discarded, and its call's path has no program: try ever more rarely.

        seconds: of the run. call_s: of a call without a program. No more calls go by than make up for the run.
        """
        enough = seconds / (DISCARDED_SHARE * call_s) if call_s > 0.0 else inf
        self.calls = int(min(2**self._discarded - 1, MAX_BACKOFF, max(1.0, enough)))
        self._discarded += 1

    def note_accepted(self) -> None:
        """A run's outcomes held."""
        self._discarded = 0
