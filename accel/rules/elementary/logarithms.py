"""Logarithms of float64 arrays.

The method is that of fdlibm (Sun Microsystems, 1993; e_log.c, s_log1p.c and, for other bases, FreeBSD's e_log2.c): of
x = 2**k * (1 + f) with 1 + f between the roots of 1/2 and 2, log(1 + f) is f - f*f/2 + s * (f*f/2 + R), where
s = f / (2 + f), and R is a polynomial of s*s.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accel.rules.elementary.bits import INF_BITS, as_bits, leading, magnitude, polynomial, split
from accel.rules.elementary.exponentials import LN2_HIGH, LN2_LOW, exp_of_negative
from accel.rules.lowering import jnp, lax, where

ROOT_BITS = 0x3FE6_A09E_0000_0000
"""The bits of a number just below the square root of 1/2."""

SERIES = (
    *(6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01),
    *(1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01),
)
"""R of s*s, divided by s*s: within 2**-58.45."""


def log(x: Any) -> Any:
    """The natural logarithm, within 1 unit in the last place. -inf at zeros, NaN for negative numbers.

    Positive subnormal numbers have their logarithm, negative ones count as zero.
    """
    k, m = split(x, ROOT_BITS)
    return _at_edges(x, _from_parts(k, m - 1.0))


def _from_parts(k: Any, f: Any, more: Any = 0.0) -> Any:
    """k * log(2) + log(1 + f) + more, where `more` is small."""
    half, rest = _half_square(f)
    return k * LN2_HIGH - ((half - (rest + (k * LN2_LOW + more))) - f)


def _half_square(f: Any) -> tuple[Any, Any]:
    """Two numbers: log(1 + f) is f less the first and plus the second."""
    s, half = f * (1.0 / (2.0 + f)), 0.5 * f * f
    z = s * s
    return half, s * (half + z * polynomial(z, SERIES))


def _at_edges(x: Any, found: Any) -> Any:
    bits = as_bits(x)
    pole, nan = np.float64(-np.inf), np.float64(np.nan)
    edge = where(bits > 0, x, where(x == 0.0, pole, nan))
    return where((bits > 0) & (bits < INF_BITS), found, edge)


def log1p(x: Any) -> Any:
    """log(1 + x), within 1 unit in the last place; x itself where it is tiny. -inf at -1, NaN below."""
    one = np.float64(1.0)
    larger, smaller = lax.max(x, one), lax.min(x, one)
    u = larger + smaller
    lost = smaller - (u - larger)  # by rounding the sum
    k, m = split(u, ROOT_BITS)
    found = _at_edges(u, _from_parts(k, m - 1.0, lost / u))
    return where(magnitude(x) < as_bits(np.float64(2.0**-54)), x, found)


def logaddexp(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)), within 2 units in the last place of the larger operand, or of log(2) if that is more."""
    x, y = jnp.broadcast_arrays(x, y)
    larger, apart = lax.max(x, y), abs(x - y)
    found = larger + log1p(exp_of_negative(-apart))
    return where(x == y, x + math.log(2.0), where(abs(larger) == np.inf, larger, found))


def log2(x: Any) -> Any:
    """The logarithm to base 2, within 1 unit in the last place; exact at powers of 2. Edges as those of `log`."""
    k, m = split(x, ROOT_BITS)
    return _at_edges(x, _in_base(m, k, 0.0, 1.44269504072144627571e00, 1.67517131648865118353e-10))


def log10(x: Any) -> Any:
    """The logarithm to base 10, within 1 unit in the last place. Edges as those of `log`."""
    k, m = split(x, ROOT_BITS)
    whole, fraction = k * 3.01029995663611771306e-01, k * 3.69423907715893078616e-13
    return _at_edges(x, _in_base(m, whole, fraction, 4.34294481878168880939e-01, 2.50829467116452752298e-11))


def _in_base(m: Any, start: Any, more: Any, factor: float, factor_low: float) -> Any:
    """start + more + log(m) * (factor + factor_low), where start and factor have few digits."""
    f = m - 1.0
    half, rest = _half_square(f)
    high = leading(f - half)
    low = (f - high) - half + rest
    most = high * factor  # exact
    sum_ = start + most
    return (start - sum_ + most) + (more + (low + high) * factor_low + low * factor) + sum_
