"""Errors: how far a replay's values are from NumPy's, and what a comparison makes of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np

MAGNITUDE_FLOOR = 1e-3
"""The error of a value is relative to its magnitude, or to this share of its array's largest one if that is larger: a
small difference of two large numbers is known to their last place only, not to its own."""


class Verdict(StrEnum):
    """What a comparison with NumPy shows. WITHIN: no difference beyond the tolerance."""

    WITHIN = "within the tolerance"
    ROUNDING = "no more than rounding makes it"
    THRESHOLD = "near a threshold"
    MISMATCH = "mismatch"


def relative_errors(replayed: Any, actual: Any) -> Any:
    """The relative error of each element, as an array of the same shape; None if all elements are equal.

    The error is infinite where a NaN, an infinity, or a value that is not floating-point differs. It is relative to the
    value, or to `MAGNITUDE_FLOOR` times the array's largest magnitude if the value is smaller. So a subnormal
    number that XLA flushes to 0 counts only in an array that has nothing larger.
    """
    if actual.dtype.kind not in "fc":
        differs = np.asarray(replayed != actual)
        return np.where(differs, np.inf, 0.0) if differs.any() else None
    with np.errstate(all="ignore"):
        equal = (replayed == actual) | (np.isnan(replayed) & np.isnan(actual))
        if equal.all():
            return None
        magnitude = np.abs(actual)
        finite = np.isfinite(magnitude)
        scale = scale_of(magnitude, finite)
        error = np.where(equal, 0.0, np.abs(replayed - actual) / np.where(scale > 0, scale, 1.0))
    return np.where(np.isnan(error) | (~finite & ~equal), np.inf, error)


def scale_of(magnitude: Any, finite: Any) -> Any:
    """What an error of each element is relative to. magnitude: of the elements. finite: which of them are finite."""
    largest = float(magnitude.max(initial=0.0, where=finite))
    return np.maximum(magnitude, MAGNITUDE_FLOOR * largest)
