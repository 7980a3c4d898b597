"""The error function and its complement.

Up to LIMIT, erf(x) is x and x times a polynomial of x * x. Above, erfc(x) is exp(-x * x) / (1 + 2 x) times a polynomial
of (x - K) / (x + K) (M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x**2) erfc x in
0 <= x < oo", Mathematics of Computation 36, 1981).
"""

from __future__ import annotations

from accel.compiler.kernels.elementary.exponentials import exp_parts
from accel.compiler.kernels.elementary.pairs import (
    at_most,
    exact_product,
    exact_sum,
    literal,
    ordered_sum,
    polynomial,
    quotient,
    scaled,
)
from accel.compiler.kernels.ir import Value

LIMIT = 0.65
"""Threshold between the two formulas. From 0.6 to 0.6557, both polynomials are precise."""

LARGEST = 28.0
"""Upper limit of x: erfc is 0 from 27.3 on."""

K = 3.75
FIRST, FIRST_LOW = 1.2375126308378275, 1.0528904825821427e-16
RATIO = (
    *(-0.14024059858554702, 0.003585415485463735, 0.0822767384901507, -0.10880393014171175, 0.09230432116021482),
    *(-0.05869339859039466, 0.028362277421130073, -0.009746579550339021, 0.00175562583737433, 0.0002937136226635025),
    *(-0.0002901540179249801, 5.164922995459988e-05, 2.238410510216405e-05, -1.1444311494403072e-05),
    *(-9.734822710463279e-07, 1.7514214012149927e-06, -5.690592851889171e-08, -2.5750660643178077e-07),
    *(2.244582005419775e-08, 3.6810735995925824e-08, -2.928346168826121e-09, -3.760960295349558e-09),
)
"""Coefficients of (1 + 2 x) exp(x * x) erfc(x): the first one is FIRST + FIRST_LOW, the others are RATIO.

Minimax for x from 0.6 to 27.3, within 2**-62.
"""

SERIES = (
    *(0.12837916709551256, -0.3761263890318352, 0.11283791670937071, -0.026866170639735218, 0.005223977543489691),
    *(-0.0008548319866754748, 0.00012054951800454906, -1.4913042219246322e-05, 1.6208355934613264e-06),
    -1.348914713268354e-07,
)
"""erf(x) / x - 1 as a polynomial of x * x: minimax for |x| up to 0.6557, within 2**-57."""


def erf(x: Value) -> Value:
    """Return erf(x), within 0.9 units in the last place."""
    size = x.abs()
    shifted, high, low = _complement(size)
    found, lost = ordered_sum(literal(x, 1.0), -scaled(high, shifted))
    found = found + (lost - scaled(low, shifted))
    return size.compare("lt", LIMIT).where(x + _more(x), found.copysign(x))


def erfc(x: Value) -> Value:
    """Return erfc(x) = 1 - erf(x), within 0.9 units in the last place."""
    size = x.abs()
    shifted, high, low = _complement(size)
    tail = scaled(high + low, shifted)
    found, lost = ordered_sum(literal(x, 1.0), -x)
    return size.compare("lt", LIMIT).where(found + (lost - _more(x)), x.compare("lt", 0.0).where(2.0 - tail, tail))


def _more(x: Value) -> Value:
    """Return erf(x) - x for |x| up to LIMIT."""
    return x * polynomial(x * x, SERIES)


def _complement(x: Value) -> tuple[Value, Value, Value]:
    """Return `n + SHIFT`, and erfc(x) / 2**n as a pair, for x from LIMIT on."""
    x = at_most(x, LARGEST)
    square, more = exact_product(x, x)
    shifted, one, rest = exp_parts(-square, -more)
    t = (x - K) / (x + K)
    high, low = ordered_sum(literal(x, FIRST), t * polynomial(t, RATIO))
    high, low = quotient((high, low + FIRST_LOW), exact_sum(x + x, 1.0))
    product, lost = exact_product(one, high)
    return shifted, *ordered_sum(product, rest.fma(high, one.fma(low, lost)))
