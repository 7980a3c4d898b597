"""Distances: how far the numbers of two arrays are apart, as a whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def distance(found: Any, expected: Any) -> tuple[float, float]:
    """The largest difference of two arrays of numbers and of one shape, and the largest finite magnitude in `expected`.

    The difference is infinite where NaN or infinities are at different places. The magnitude is 0 if nothing is finite.
    """
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True) or not np.isfinite(found[finite]).all():
        return math.inf, 0.0
    with np.errstate(all="ignore"):
        difference = np.abs(found[finite] - expected[finite]).max(initial=0.0)
        return float(difference), float(np.abs(expected[finite]).max(initial=0.0))
