"""Sines, cosines and tangents, by fdlibm's polynomials (Sun Microsystems, 1993).

x = n * pi/2 + r with whole n and |r| of at most pi/4 (W. J. Cody and W. Waite, "Software Manual for the Elementary
Functions", 1980). pi/2 is the sum of three numbers. x less the first product is exact. The second product and its
difference are pairs. The C library computes larger numbers.
"""

from __future__ import annotations

from accel.compiler.kernels.elementary.calls import Except
from accel.compiler.kernels.elementary.pairs import (
    SHIFT,
    Pair,
    exact_product,
    exact_sum,
    ordered_sum,
    polynomial,
    quotient,
    with_sign,
)
from accel.compiler.kernels.ir import Value

LARGEST = 2.0**30
"""Largest number that is reduced here: rounding of n makes |r| exceed pi/4 by at most 2**-22."""

INVERSE = 0.6366197723675814
"""The float nearest to 2 / pi."""

PARTS = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
"""Three floats whose sum is pi/2."""

SIN = (
    *(-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04),
    *(2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10),
)
"""(sin(r) - r) / r**3 as a polynomial of r * r (k_sin.c)."""

COS = (
    *(4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05),
    *(-2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11),
)
"""(cos(r) - 1 + r * r / 2) / r**4 as a polynomial of r * r (k_cos.c)."""


def sin(x: Value) -> Except:
    """Return sin(x), within 0.8 units in the last place; NaN at infinity."""
    quarters, sine, cosine = _parts(x)
    found = _turned(quarters, sine, cosine)
    return Except(x.compare("eq", 0.0).where(x, found), is_large(x), "sin", x)


def cos(x: Value) -> Except:
    """Return cos(x), within 0.8 units in the last place; NaN at infinity."""
    quarters, sine, cosine = _parts(x)
    return Except(_turned(quarters + 1, sine, cosine), is_large(x), "cos", x)


def tan(x: Value) -> Except:
    """Return tan(x), within 0.95 units in the last place; NaN at infinity."""
    quarters, sine, cosine = _parts(x)
    sine, cosine = ordered_sum(*sine), ordered_sum(*cosine)
    even = (quarters & 1).compare("eq", 0)
    high, low = quotient(_either(even, sine, cosine), _either(even, cosine, sine))
    found = with_sign(high + low, quarters << 63)
    return Except(x.compare("eq", 0.0).where(x, found), is_large(x), "tan", x)


def is_large(x: Value) -> Value:
    size = x.abs()
    return size.compare("gt", LARGEST) & size.compare("lt", float("inf"))


def _turned(quarters: Value, sine: Pair, cosine: Pair) -> Value:
    """Return the sine after `quarters` quarter turns."""
    even = (quarters & 1).compare("eq", 0)
    high, low = _either(even, sine, cosine)
    return with_sign(high + low, quarters << 62)


def _either(truth: Value, yes: Pair, no: Pair) -> Pair:
    return truth.where(yes[0], no[0]), truth.where(yes[1], no[1])


def _parts(x: Value) -> tuple[Value, Pair, Pair]:
    """Return n as an integer whose lowest bits are right, and the sine and cosine of r."""
    shifted = x.fma(INVERSE, SHIFT)
    n = shifted - SHIFT
    product, low = exact_product(n, PARTS[1])
    r, rest = exact_sum(n.fma(-PARTS[0], x), -product)
    rest = n.fma(-PARTS[2], rest - low)
    square, square_low = exact_product(r, r)
    minus_half = square * -0.5
    bent = (square * r).fma(polynomial(square, SIN), rest.fma(minus_half, rest))
    cosine, lost = minus_half + 1.0, square * square
    lost = minus_half - (cosine - 1.0) + lost.fma(polynomial(square, COS), (-r).fma(rest, square_low * -0.5))
    return shifted.bits(), (r, bent), (cosine, lost)
