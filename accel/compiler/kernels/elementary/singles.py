"""Functions of float32 numbers, computed in float64 and rounded: within 0.51 units in the last place of float32.

The numbers are normal in float64, and about 36 bits are enough: shorter polynomials, no pairs, one power of two. The
methods are those of the functions for float64.
"""

from __future__ import annotations

import math

from accel.compiler.kernels.elementary.calls import Except
from accel.compiler.kernels.elementary.logarithms import at_edges
from accel.compiler.kernels.elementary.pairs import (
    SHIFT,
    Pair,
    at_least,
    at_most,
    polynomial,
    power_of_two,
    split_normal,
    with_sign,
)
from accel.compiler.kernels.elementary.powers import with_edges
from accel.compiler.kernels.elementary.trigonometric import INVERSE, PARTS, is_large
from accel.compiler.kernels.ir import Value

LN2 = math.log(2.0)

EXPM1 = (
    *(0.9999999999954886, 0.4999999999963925, 0.16666666786705112, 0.041666666996684934, 0.008333283430763493),
    *(0.0013888804067158816, 0.00019907640264008373, 2.488454465824012e-05),
)
"""(exp(r) - 1) / r: minimax for |r| up to 0.3467, within 2**-37.7."""

LOG = (*(0.6666666667578189, 0.39999995625490703, 0.2857210900292001, 0.22176187539529915), 0.1958425804091801)
"""(log((1 + s) / (1 - s)) - 2 s) / s**3 as a polynomial of s * s: minimax for |s| up to 0.1716, within 2**-43."""

SIN = (-0.16666666641659963, 0.008333329388557213, -0.0001983933538026145, 2.718314566675806e-06)
"""(sin(r) - r) / r**3 as a polynomial of r * r: minimax for |r| up to pi/4, within 2**-37."""

COS = (0.041666666622955005, -0.0013888883761798193, 2.479952177288015e-05, -2.72103570697056e-07)
"""(cos(r) - 1 + r * r / 2) / r**4 as a polynomial of r * r: minimax for |r| up to pi/4, within 2**-43."""


def exp(x: Value) -> Value:
    scale, p = _exp_parts(at_least(at_most(x, 89.0), -110.0))
    return scale.fma(p, scale)


def exp2(x: Value) -> Value:
    return _exp2(at_least(at_most(x, 129.0), -160.0))


def expm1(x: Value) -> Value:
    return _expm1(at_least(at_most(x, 89.0), -20.0)).copysign(x)


def sinh(x: Value) -> Value:
    e = _expm1(at_most(x.abs(), 90.0))
    return ((e + e / (e + 1.0)) * 0.5).copysign(x)


def cosh(x: Value) -> Value:
    e = exp(at_most(x.abs(), 89.5) - LN2)
    return e + 0.25 / e


def tanh(x: Value) -> Value:
    e = _expm1(at_most(x.abs() * 2.0, 40.0))
    return (e / (e + 2.0)).copysign(x)


def log(x: Value) -> Value:
    return _in_base(x, LN2, 1.0)


def log2(x: Value) -> Value:
    return _in_base(x, 1.0, 1.0 / LN2)


def log10(x: Value) -> Value:
    return _in_base(x, math.log10(2.0), 1.0 / math.log(10.0))


def power(x: Value, y: Value) -> Value:
    """Return x**y. Edge cases follow C's `pow` and NumPy."""
    return with_edges(x, y, lambda size, exponent, edges: _exp2(_bounded(exponent * edges(_log(size, 1.0, 1.0 / LN2)))))


def sin(x: Value) -> Except:
    """Return sin(x); NaN at infinity."""
    found = _turned(*_circular_parts(x), 0)
    return Except(x.compare("eq", 0.0).where(x, found), is_large(x), "sin", x)


def cos(x: Value) -> Except:
    """Return cos(x); NaN at infinity."""
    return Except(_turned(*_circular_parts(x), 1), is_large(x), "cos", x)


def _exp_parts(x: Value) -> Pair:
    """Return 2**n, and exp(r) - 1."""
    shifted = x.fma(1.0 / LN2, SHIFT)
    r = (shifted - SHIFT).fma(-LN2, x)
    return power_of_two(shifted), r * polynomial(r, EXPM1)


def _exp2(x: Value) -> Value:
    shifted = x + SHIFT
    r, scale = (x - (shifted - SHIFT)) * LN2, power_of_two(shifted)
    return scale.fma(r * polynomial(r, EXPM1), scale)


def _bounded(x: Value) -> Value:
    return at_least(at_most(x, 129.0), -160.0)


def _expm1(x: Value) -> Value:
    scale, p = _exp_parts(x)
    return scale.fma(p, scale - 1.0)


def _log(x: Value, of_two: float, of_e: float) -> Value:
    """Return the logarithm in the base whose logarithms of 2 and e are `of_two` and `of_e`."""
    k, m = split_normal(x.bits("uint64"))
    f = m - 1.0
    s = f / (f + 2.0)
    square = s * s
    return k.fma(of_two, (s * of_e) * square.fma(polynomial(square, LOG), 2.0))


def _in_base(x: Value, of_two: float, of_e: float) -> Value:
    return at_edges(x, _log(x, of_two, of_e))


def _circular_parts(x: Value) -> tuple[Value, Value, Value]:
    """Return n as an integer whose lowest bits are right, and the sine and cosine of r."""
    shifted = x.fma(INVERSE, SHIFT)
    n = shifted - SHIFT
    r = n.fma(-PARTS[1], n.fma(-PARTS[0], x))
    square = r * r
    cosine = (square * square).fma(polynomial(square, COS), square.fma(-0.5, 1.0))
    return shifted.bits(), (r * square).fma(polynomial(square, SIN), r), cosine


def _turned(n: Value, sine: Value, cosine: Value, more: int) -> Value:
    quarters = n + more if more else n
    return with_sign((quarters & 1).compare("eq", 0).where(sine, cosine), quarters << 62)
