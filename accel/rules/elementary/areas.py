"""Inverse hyperbolic functions of float64 arrays, by way of `log1p` (as in fdlibm, Sun Microsystems, 1993)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accel.rules.elementary.bits import as_bits, magnitude, with_sign_of
from accel.rules.elementary.logarithms import log1p
from accel.rules.lowering import lax, where

LARGE = 2.0**54
"""From here on log(1 + x) is log(x), and the square root of 1 + x*x is x."""

TINY = 2.0**-28


def arcsinh(x: Any) -> Any:
    """The inverse hyperbolic sine, within 2 units in the last place."""
    size = abs(x)
    square = size * size
    is_large = size > LARGE
    found = log1p(where(is_large, size, size + square / (1.0 + lax.sqrt(1.0 + square))))
    return _from_zero(x, found + where(is_large, np.float64(math.log(2.0)), np.float64(0.0)))


def arctanh(x: Any) -> Any:
    """The inverse hyperbolic tangent, within 2 units in the last place; NaN outside -1 to 1."""
    size = abs(x)
    twice = size + size
    inner = size < 0.5
    ratio = where(inner, twice * size, twice) / (1.0 - size)
    return _from_zero(x, 0.5 * log1p(where(inner, twice + ratio, ratio)))


def _from_zero(x: Any, found: Any) -> Any:
    """`found` with the sign of x, but x where that is tiny."""
    return where(magnitude(x) < as_bits(np.float64(TINY)), x, with_sign_of(found, x))
