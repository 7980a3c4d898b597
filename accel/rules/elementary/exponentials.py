"""Exponentials and hyperbolic functions of float64 arrays.

x = n * log(2) + r with whole n and |r| at most log(2) / 2, where exp(r) is a Taylor polynomial (as in W. J. Cody and
W. Waite, "Software Manual for the Elementary Functions", 1980, chapter 6).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accel.rules.elementary.bits import as_bits, magnitude, polynomial, power_of_two, scaled, with_sign_of
from accel.rules.lowering import lax, where

LN2 = math.log(2.0)
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""Their sum is log(2); the first has so few digits that its product with an exponent is exact."""

TERMS = 14
"""Powers of r in a polynomial, from the zeroth on: the next one is 1e-17 of r at most."""

AFTER_SQUARE = tuple(1.0 / math.factorial(k) for k in range(2, TERMS))


def expm1_near_zero(r: Any, more: Any) -> Any:
    """exp(r + more) - 1 for |r| of at most 0.36, where `more` is less than a unit in r's last place."""
    return r + (more + r * r * polynomial(r, AFTER_SQUARE))


def _parts(x: Any) -> tuple[Any, Any]:
    """n and exp(r) - 1."""
    n = lax.round(x * (1.0 / LN2), lax.RoundingMethod.TO_NEAREST_EVEN)
    high, low = x - n * LN2_HIGH, n * LN2_LOW
    r = high - low
    return n, expm1_near_zero(r, (high - r) - low)


def exp_of_negative(x: Any) -> Any:
    """exp(x) for x of at most 0, within 1 unit in the last place; 0 where it is subnormal."""
    n, p = _parts(x)
    return where(x < -708.0, np.float64(0.0), scaled(1.0 + p, n))


def sinh(x: Any) -> Any:
    """The hyperbolic sine, within 2 units in the last place.

    With e = exp(|x|) - 1 it is half of e + e / (e + 1), or, more exact for small ones, of 2 e - e * e / (e + 1).
    """
    n, p = _parts(abs(x))
    fourth = power_of_two(n - 2.0)
    e = fourth * p + (fourth - 0.25)
    small = e < 0.25
    ratio = where(small, -4.0 * e * e, e) / (4.0 * e + 1.0)
    found = where(abs(x) > 710.5, np.float64(np.inf), 2.0 * (where(small, 2.0 * e, e) + ratio))
    tiny = magnitude(x) < as_bits(np.float64(2.0**-28))
    return where(tiny | (x != x), x, with_sign_of(found, x))


def cosh(x: Any) -> Any:
    """The hyperbolic cosine, within 2 units in the last place."""
    n, p = _parts(abs(x))
    fourth = power_of_two(n - 2.0)
    e = fourth + fourth * p
    found = where(abs(x) > 710.5, np.float64(np.inf), 2.0 * e + 0.125 / e)
    return where(x != x, x, found)
