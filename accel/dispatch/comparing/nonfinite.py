"""NaN and infinity: an output that has more of either than any compared run is compared before it is committed."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from typing import Any

import numpy as np

from accel.compiler.lower.written import Written
from accel.dispatch.comparing.errors import parts_of
from accel.dispatch.replay import StagedOutputs

GROWTH = 2
"""An output may have this many times as many NaNs and infinities as a compared run had. A guess: one that fills up with
them is compared log2(size) times, and not in each call."""


class NonFinite:
    """Number of NaNs, and of infinities, that NumPy has given in each output of one path, by `counts_of`'s keys."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], int] = {}

    def are_new(self, staged: StagedOutputs) -> bool:
        """Whether an output of this run has more than comparisons with NumPy explain: any, where those had none."""
        return any(count > GROWTH * self._known.get(key, 0) for key, count in counts_of(staged).items())

    def note(self, counts: dict[tuple[int, str], int]) -> None:
        """Note the counts of a run that agrees with NumPy's call."""
        for key, count in counts.items():
            self._known[key] = max(count, self._known.get(key, 0))


def counts_of(staged: StagedOutputs) -> dict[tuple[int, str], int]:
    """The number of NaNs, and of infinities, in each output that has some: numbers first, then new and changed arrays.

    An array of NaNs for land, or what is missing, says nothing of infinities. Both parts of complex numbers count.
    Arrays whose values are on the device alone are left out: they would have to be fetched.
    """
    values = [*staged.numbers] if staged.unfetched is not None else [*staged.numbers, *staged.made, *staged.changed]
    finite = {id(each) for each in staged.finite}
    counts: dict[tuple[int, str], int] = {}
    for position, value in enumerate(values):
        if id(value) in finite:
            continue
        written = value.contents if isinstance(value, Written) else (value,)
        parts = [each for each in written if id(each) not in finite]
        # measured: 7 us for 121 x 240 numbers, as long as copying them takes
        if both := sum(map(_count, parts)):
            nans = sum(_count(each, np.isnan) for each in parts)
            counts |= {(position, "nan"): nans, (position, "inf"): both - nans}
    return {key: count for key, count in counts.items() if count}


def _count(value: Any, test: Callable[[Any], Any] | None = None) -> int:
    """The number of NaNs and infinities, or of those that `test` finds."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "fc":
            return 0
        parts = parts_of(value)
        if test is None:
            return sum(part.size - int(np.count_nonzero(np.isfinite(part))) for part in parts)
        return sum(int(np.count_nonzero(test(part))) for part in parts)
    is_finite = not isinstance(value, (float, complex, np.inexact)) or cmath.isfinite(value)
    return 0 if is_finite else _count(np.asarray(value), test)
