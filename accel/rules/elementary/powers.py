"""Powers and cube roots of float64 arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.rules.elementary.bits import (
    INF_BITS,
    MAGNITUDE,
    ONE_BITS,
    as_bits,
    as_float,
    leading,
    magnitude,
    polynomial,
    power_of_two,
    scaled,
    split,
    with_sign_of,
)
from accel.rules.elementary.exponentials import LN2, expm1_near_zero
from accel.rules.elementary.logarithms import ROOT_BITS
from accel.rules.lowering import lax, where

HALF_BITS = 0x3FE0_0000_0000_0000
"""The bits of 0.5."""

LOG_SERIES = tuple(3.0 / k for k in range(5, 27, 2))
"""3 / (2 s**5) * (log((1 + s) / (1 - s)) - 2 s - 2 s**3 / 3) as a polynomial of s * s."""

FACTOR, FACTOR_HIGH, FACTOR_LOW = 9.61796693925975554329e-01, 9.61796700954437255859e-01, -7.02846165095275826516e-09
"""2 / (3 log(2)), and the same as the sum of two."""

LN2_HIGH, LN2_LOW = 6.93147182464599609375e-01, -1.90465429995776804525e-09
"""Their sum is log(2). The first has fewer digits than in `exponentials`, as what it is multiplied with has more."""
"""log(2), and the same as the sum of two: the product of the first, which has 24 digits, with 21 digits is exact."""


def power(x: Any, y: Any) -> Any:
    """x**y, within 1 unit in the last place where the result is normal; edges as those of C's `pow`, and NumPy's.

    Results that are subnormal, and exponents that are, count as zero.

    The method is that of fdlibm (Sun Microsystems, 1993; e_pow.c): the logarithm to base 2 as a sum of two numbers,
    times y, and the exponential of that.
    """
    x_bits, y_bits, size, one = as_bits(x), as_bits(y), magnitude(x), np.float64(1.0)
    y = lax.min(lax.max(y, np.float64(-LARGE)), np.float64(LARGE))  # infinity times log2(1) would be NaN
    has_log = (size > 0) & (size < INF_BITS)
    high, low = _log2_as_sum(as_float(size))
    high = where(has_log, high, where(size == 0, np.float64(-np.inf), as_float(size)))
    found, lost = _exp2_of_product(y, high, low)
    negative, whole, half = x_bits < 0, lax.floor(y) == y, 0.5 * y
    found = where(lost | (negative & ~whole & has_log), np.float64(np.nan), found)
    found = where(negative & whole & (lax.floor(half) != half), -found, found)
    return where((y_bits & MAGNITUDE == 0) | (x_bits == ONE_BITS), one, found)


LARGE = 1e300
"""An exponent of this size makes 0, 1 or infinity of every number, and is even, as any larger one."""


def _log2_as_sum(x: Any) -> tuple[Any, Any]:
    """log2 of positive numbers as a sum of two, of which the first has 21 digits. Exact to about 65 digits."""
    n, m = split(x, ROOT_BITS)
    f, v = m - 1.0, 1.0 / (m + 1.0)
    s = f * v
    s_high = leading(s)
    t_high = leading(m + 1.0)
    t_low = m - (t_high - 1.0)
    s_low = v * ((f - s_high * t_high) - s_high * t_low)
    square = s * s
    rest = square * square * polynomial(square, LOG_SERIES) + s_low * (s_high + s)
    square = s_high * s_high
    # log(m) is 2 s / 3 times the sum of 3, s * s and the rest
    t_high = leading(3.0 + square + rest)
    t_low = rest - ((t_high - 3.0) - square)
    u, v = s_high * t_high, s_low * t_high + t_low * s
    p_high = leading(u + v)
    p_low = v - (p_high - u)
    z_high = FACTOR_HIGH * p_high
    z_low = FACTOR_LOW * p_high + p_low * FACTOR
    high = leading((z_high + z_low) + n)
    return high, z_low - ((high - n) - z_high)


def _exp2_of_product(y: Any, high: Any, low: Any) -> tuple[Any, Any]:
    """2**(y * (high + low)), 0 where that is subnormal; and whether the product is NaN."""
    y_high = leading(y)
    product = y_high * high
    p_high = lax.min(lax.max(product, np.float64(-1080.0)), np.float64(1024.75))
    p_low = where(p_high == product, (y - y_high) * high + y * low, np.float64(0.0))
    n = lax.round(p_low + p_high, lax.RoundingMethod.TO_NEAREST_EVEN)
    p_high = p_high - n
    t = leading(p_low + p_high)
    u, v = t * LN2_HIGH, (p_low - (t - p_high)) * LN2 + t * LN2_LOW
    r = u + v
    return scaled(1.0 + expm1_near_zero(r, (u - r) + v), n), product != product


# -- the cube root ----------------------------------------------------------------------------------------------------


INVERSE_ROOT = (2.099379656659496, -2.9290577976289227, 3.4504334333582065, -2.180790840971184, 0.560066173253943)
"""m ** (-1/3) for m from 0.5 to 1, within 4.5e-5: interpolated at Chebyshev's points."""


def cbrt(x: Any) -> Any:
    """The cube root, within 1 unit in the last place.

    The root of the reciprocal by a polynomial and one step of a third-order iteration, which needs no quotient. From it
    come the root's first 21 digits, whose cube can be taken from the number without an error (so the end of s_cbrt.c).
    """
    k, m = split(as_float(magnitude(x)), HALF_BITS)
    third = lax.round(k * (1.0 / 3.0), lax.RoundingMethod.TO_NEAREST_EVEN)
    left = k - 3.0 * third
    y, r = m * _by_left(left, 0.5, 2.0), polynomial(m, INVERSE_ROOT) * _by_left(left, 2.0 ** (1 / 3), 0.5 ** (1 / 3))
    error = 1.0 - y * r * r * r
    r = r + r * (error * (1.0 / 3.0 + (2.0 / 9.0) * error))
    root = leading(y * r * r)
    square = root * root
    square_high = leading(square)
    residual = (y - square_high * root) - (square - square_high) * root
    found = root + residual * (r * r) * (1.0 / 3.0 + residual * (r * r * r) * (1.0 / 9.0))
    size = magnitude(x)
    return where((size == 0) | (size >= INF_BITS), x, with_sign_of(found * power_of_two(third), x))


def _by_left(left: Any, below: float, above: float) -> Any:
    return where(left < 0.0, np.float64(below), where(left > 0.0, np.float64(above), np.float64(1.0)))
