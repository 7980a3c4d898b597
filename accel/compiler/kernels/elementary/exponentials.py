"""Exponentials and hyperbolic functions.

x = n * log(2) + r with whole n and |r| of at most log(2) / 2. log(2) is the sum of two numbers. exp(r) is a polynomial
(W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980, chapter 6). It is returned as a pair: 1
+ r, rounded, and the remainder.
"""

from __future__ import annotations

from accel.compiler.kernels.elementary.pairs import (
    SHIFT,
    Pair,
    at_least,
    at_most,
    exact_product,
    exact_sum,
    literal,
    ordered_sum,
    polynomial,
    power_of_two,
    quotient,
    scaled,
)
from accel.compiler.kernels.ir import Value

LN2, LN2_REST = 0.6931471805599453, 2.3190468138462996e-17
LN2_HIGH, LN2_LOW = 0.693147180559663, 2.8235290563031577e-13
"""Two splits of log(2): LN2 + LN2_REST, and LN2_HIGH + LN2_LOW. LN2_HIGH has 41 bits: it times an exponent is exact."""

AFTER_SQUARE = (
    *(0.16666666666666677, 0.0416666666666667, 0.00833333333332161, 0.0013888888888866737, 0.0001984126988619536),
    *(2.4801587360763757e-05, 2.7557244127041327e-06, 2.7557242579838846e-07, 2.5109069396565198e-08),
    2.092449869382929e-09,
)
"""(exp(r) - 1 - r - r**2 / 2) / r**3: minimax for |r| up to 0.3467, such that exp(r) - 1 is within 2**-61 of |r|."""

TINY = 2.0**-28
"""Threshold below which tanh(x) and sinh(x) are x."""


def exp(x: Value) -> Value:
    """Return exp(x), within 0.6 units in the last place."""
    shifted, high, low = exp_parts(at_least(at_most(x, 710.0), -746.0))
    return scaled(high + low, shifted)


def exp2(x: Value) -> Value:
    """Return 2**x, within 0.6 units in the last place."""
    return exp2_of_sum(at_least(at_most(x, 1025.0), -1080.0))


def exp2_of_sum(x: Value, more: Value | None = None) -> Value:
    """Return 2**(x + more) for x from -1080 to 1025, with a small `more`."""
    shifted = x + SHIFT
    rest = x - (shifted - SHIFT)
    r, low = exact_product(rest, LN2)
    low = rest.fma(LN2_REST, low)
    high, low = _near_zero(r, low if more is None else more.fma(LN2, low))
    return scaled(high + low, shifted)


def expm1(x: Value) -> Value:
    """Return exp(x) - 1, within 0.8 units in the last place."""
    high, low = _quarter_of_expm1(at_least(at_most(x, 710.0), -60.0))
    return x.abs().compare("lt", 2.0**-54).where(x, (high + low) * 4.0)


def sinh(x: Value) -> Value:
    """Return sinh(x), within 0.7 units in the last place: half of e + e / (e + 1) with e = exp(|x|) - 1."""
    size = x.abs()
    high, low = _quarter_of_expm1(at_most(size, 710.6))
    fourth, fourth_low = quotient((high, low), _plus((high, low), 0.25))
    half, rest = ordered_sum(high, fourth * 0.25)
    found = (half + (rest + fourth_low.fma(0.25, low))) * 2.0
    return size.compare("lt", TINY).where(x, found.copysign(x))


def cosh(x: Value) -> Value:
    """Return cosh(x), within 0.6 units in the last place: half of e + 1 / e with e = exp(|x|)."""
    shifted, one, rest = exp_parts(at_most(x.abs(), 710.6))
    fourth = power_of_two(shifted, 2)
    high, low = ordered_sum(one * fourth, rest * fourth)
    inverse, inverse_low = quotient((literal(x, 0.0625), literal(x, 0.0)), (high, low))
    half, rest = ordered_sum(high, inverse)
    return (half + (rest + (low + inverse_low))) * 2.0


def tanh(x: Value) -> Value:
    """Return tanh(x), within 0.7 units in the last place: e / (e + 2) with e = exp(2 |x|) - 1."""
    size = x.abs()
    fourth = _quarter_of_expm1(at_most(size + size, 44.0))
    high, low = quotient(fourth, _plus(fourth, 0.5))
    return size.compare("lt", TINY).where(x, (high + low).copysign(x))


def _plus(x: Pair, number: float) -> Pair:
    high, low = exact_sum(x[0], number)
    return high, low + x[1]


def exp_parts(x: Value, more: Value | None = None) -> tuple[Value, Value, Value]:
    """Return `n + SHIFT`, and exp(x + more) / 2**n as a pair, with a small `more`."""
    shifted = x.fma(1.0 / LN2, SHIFT)
    n = shifted - SHIFT
    return shifted, *_near_zero(n.fma(-LN2_HIGH, x), n * -LN2_LOW if more is None else n.fma(-LN2_LOW, more))


def _near_zero(high: Value, low: Value) -> Pair:
    """Return exp(high + low) as a pair, whose first number is 1 + high, rounded."""
    r = high + low
    low = (high * 0.5).fma(high, (r * r * r).fma(polynomial(r, AFTER_SQUARE), high.fma(low, low)))
    one = high + 1.0
    return one, high - (one - 1.0) + low


def _quarter_of_expm1(x: Value) -> Pair:
    """Return (exp(x) - 1) / 4 for x from -60 to 710.6, without overflow."""
    shifted, one, rest = exp_parts(x)
    fourth = power_of_two(shifted, 2)
    high, low = exact_sum(one * fourth, -0.25)
    return ordered_sum(high, rest.fma(fourth, low))
