"""Errors: how far a replay's values are from NumPy's, and what a comparison makes of it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from accel.platform import config

if TYPE_CHECKING:
    from accel.backend.executable import Executable

MAGNITUDE_FLOOR = 1e-3
"""Floor of the magnitude that an error is relative to, as a share of the largest magnitude that has an error. A small
difference of two large numbers is exact only to the last place of the large ones."""


class Verdict(StrEnum):
    """Result of a comparison with NumPy. WITHIN: no difference beyond the tolerance."""

    WITHIN = "within the tolerance"
    ROUNDING = "no more than rounding makes it"
    THRESHOLD = "near a threshold"
    MISMATCH = "mismatch"


class Tolerance(NamedTuple):
    """Difference from NumPy that is allowed.

    rtol: relative error. unit: of the last place, relative to the value, by which rounding may explain more; None: as
    the value's dtype has it. exact: whether the program's arithmetic decides comparisons and step functions as NumPy's
    does: in float64 on the CPU.
    """

    rtol: float
    unit: float | None = None
    exact: bool = True

    def of(self, executable: Executable) -> Tolerance:
        """Return the tolerance for results of this program."""
        return self._replace(exact=executable.on_cpu and executable.precision == config.FLOAT64)


def relative_errors(replayed: Any, actual: Any) -> Any:
    """The relative error of each element, as an array of the same shape; None if all elements are equal.

    The error is infinite where a NaN, an infinity, or a value that is not floating-point differs. It is relative to the
    value, or to `MAGNITUDE_FLOOR` times the largest magnitude among the elements that differ if the value is smaller.
    Elements that are equal bit by bit justify no error of others: fill values of 1e36 do not hide anything. But a
    subnormal number that XLA flushes to 0 counts only in an array that has nothing larger.
    """
    if actual.dtype.kind not in "fc":
        differs = np.asarray(replayed != actual)
        return np.where(differs, np.inf, 0.0) if differs.any() else None
    with np.errstate(all="ignore"):
        equal = same(replayed, actual)
        if equal.all():
            return None
        magnitude = np.abs(actual)
        finite = np.isfinite(magnitude)
        gap = np.abs(replayed - actual)
        by_all = scale_of(magnitude, finite)
        is_flushed = gap < np.finfo(actual.dtype).tiny
        scale = np.where(is_flushed, by_all, scale_of(magnitude, finite & ~equal))
        # where NumPy has 0, and no other element differs: at most 1
        scale = np.where(scale > 0, scale, np.where(by_all > 0, np.minimum(by_all, 1.0), 1.0))
        error = np.where(equal, 0.0, gap / scale)
    error = np.where(np.isnan(error) | (~finite & ~equal), np.inf, error)
    if actual.dtype.kind == "c":  # beside a NaN or an infinity that both have, the other part counts
        real, imag = relative_errors(replayed.real, actual.real), relative_errors(replayed.imag, actual.imag)
        error = np.where(finite, error, np.maximum(0.0 if real is None else real, 0.0 if imag is None else imag))
    return error


def parts_of(values: Any) -> list[Any]:
    """Real and imaginary parts of complex numbers; others as they are."""
    return [values.real, values.imag] if values.dtype.kind == "c" else [values]


def same(replayed: Any, actual: Any) -> Any:
    """Mask of the elements that are equal, or NaN in the same parts."""
    equal = [(a == b) | ((a != a) & (b != b)) for a, b in zip(parts_of(replayed), parts_of(actual), strict=True)]
    return equal[0] & equal[-1]


def scale_of(magnitude: Any, among: Any) -> Any:
    """Return the scale of each element's relative error.

    magnitude: of the elements. among: the elements whose largest magnitude sets the floor.
    """
    largest = float(magnitude.max(initial=0.0, where=among))
    return np.maximum(magnitude, MAGNITUDE_FLOOR * largest)
