"""NaN and infinity: an output that has more of them than any compared run is compared before it is committed."""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np

from accel.compiler.lower.written import Written
from accel.dispatch.comparing.errors import parts_of
from accel.dispatch.replay import StagedOutputs

GROWTH = 2
"""An output may have this many times as many NaNs and infinities as a compared run had. A guess: one that fills up with
them is compared log2(size) times, and not in each call."""


class NonFinite:
    """Number of NaNs and infinities that NumPy has given in each output of one path, by the output's position."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def are_new(self, staged: StagedOutputs) -> bool:
        """Whether an output of this run has more than comparisons with NumPy explain: any, where those had none."""
        return any(count > GROWTH * self._known.get(position, 0) for position, count in counts_of(staged).items())

    def note(self, counts: dict[int, int]) -> None:
        """Note the counts of a run that agrees with NumPy's call."""
        for position, count in counts.items():
            self._known[position] = max(count, self._known.get(position, 0))


def counts_of(staged: StagedOutputs) -> dict[int, int]:
    """The number of NaNs and infinities in each output that has some: numbers first, then new and changed arrays.

    Both parts of complex numbers count. Arrays whose values are on the device alone are left out: they would have to be
    fetched.
    """
    values = [*staged.numbers] if staged.unfetched is not None else [*staged.numbers, *staged.made, *staged.changed]
    counts = ((position, _count(value)) for position, value in enumerate(values))
    return {position: count for position, count in counts if count}


def _count(value: Any) -> int:
    if isinstance(value, np.ndarray):
        # measured: 7 us for 121 x 240 numbers, as long as copying them takes
        if value.dtype.kind not in "fc":
            return 0
        return sum(part.size - int(np.count_nonzero(np.isfinite(part))) for part in parts_of(value))
    if isinstance(value, Written):
        return sum(map(_count, value.contents))
    is_finite = not isinstance(value, (float, complex, np.inexact)) or cmath.isfinite(value)
    return 0 if is_finite else _count(np.asarray(value))
