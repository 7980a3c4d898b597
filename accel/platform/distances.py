"""Distances: the difference of two arrays of numbers, as one figure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def distance(found: Any, expected: Any) -> tuple[float, float]:
    """Return the largest difference of two arrays, and the largest finite magnitude in `expected`.

    Both hold numbers and have one shape. The difference is infinite where NaN or infinities are at different places.
    The magnitude is 0 if nothing is finite.
    """
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True) or not np.isfinite(found[finite]).all():
        return math.inf, 0.0
    with np.errstate(all="ignore"):
        difference = np.abs(found[finite] - expected[finite]).max(initial=0.0)
        return float(difference), float(np.abs(expected[finite]).max(initial=0.0))
