"""Powers, cube roots and hypotenuses."""

from __future__ import annotations

from collections.abc import Callable

from accel.compiler.kernels.elementary.exponentials import exp2_of_sum
from accel.compiler.kernels.elementary.pairs import (
    HALF_BITS,
    SHIFT,
    Pair,
    at_least,
    at_most,
    choose,
    exact_product,
    exact_sum,
    literal,
    ordered_sum,
    polynomial,
    power_of_two,
    root,
    split,
    with_sign,
)
from accel.compiler.kernels.ir import Value

FACTOR, FACTOR_LOW = 2.8853900817779268, 4.0710547481862066e-17
CUBIC, CUBIC_LOW = 0.9617966939259756, 5.0577616648125907e-17
QUINTIC, QUINTIC_LOW = 0.5770780163555853, 5.2551030481378675e-17
"""2 / log(2), a third of it, and a fifth of it, each as the sum of two floats."""

LOG2_SERIES = (
    *(0.4121985831111982, 0.32059889794356894, 0.2623081953481271, 0.22195247132412801, 0.1923943560127356),
    *(0.1685801944476091, 0.17183407985840454),
)
"""Polynomial of s**2 in the logarithm to base 2 of (1 + s) / (1 - s).

That logarithm divided by s is FACTOR, CUBIC s**2, QUINTIC s**4 and s**6 times this polynomial, within 2**-71: minimax
for |s| up to 0.1716.
"""

LARGEST = 1e300
"""Largest exponent to compute with. Such an exponent turns every base into 0, 1 or infinity, and is even, as all larger
ones."""


def power(x: Value, y: Value) -> Value:
    """Return x**y within 0.6 units in the last place. Edge cases follow C's `pow` and NumPy.

    It is 2 to the product of y and the logarithm, which is a pair (as in fdlibm, Sun Microsystems, 1993; e_pow.c).
    """
    return with_edges(x, y, _power_of_size)


def with_edges(x: Value, y: Value, formula: Callable[[Value, Value, Callable[[Value], Value]], Value]) -> Value:
    """Return x**y with all edge cases. formula: of |x|, y in bounds, and a function that adds infinities to log |x|."""
    size, exponent = x.abs(), at_least(at_most(y, LARGEST), -LARGEST)
    has_log = size.compare("lt", float("inf"))

    def logarithm(found: Value) -> Value:
        return has_log.where(size.compare("eq", 0.0).where(float("-inf"), found), size)

    found = formula(size, exponent, logarithm)
    half = exponent * 0.5
    is_whole, is_odd = exponent.floor().compare("eq", exponent), half.floor().compare("ne", half)
    found = with_sign(found, (is_whole & is_odd).where(x.bits(), 0))
    is_invalid = x.compare("lt", 0.0) & has_log & ~is_whole
    found = is_invalid.where(float("nan"), found)
    return (x.compare("eq", 1.0) | y.compare("eq", 0.0)).where(1.0, found)


def _power_of_size(size: Value, exponent: Value, logarithm: Callable[[Value], Value]) -> Value:
    high, low = _log2(size)
    product, rest = exact_product(exponent, logarithm(high))
    bounded = at_least(at_most(product, 1024.5), -1080.0)
    rest = bounded.compare("eq", product).where(exponent.fma(low, rest), 0.0)
    return exp2_of_sum(bounded, rest)


def _log2(x: Value) -> Pair:
    k, m = split(x)
    f, (under, under_low) = m - 1.0, exact_sum(m, 1.0)
    inverse = 1.0 / under
    s = f * inverse
    s_low = ((-s).fma(under, f) - s * under_low) * inverse
    square, square_low = exact_product(s, s)
    square_low = (s + s).fma(s_low, square_low)
    series = (square * square).fma(polynomial(square, LOG2_SERIES), CUBIC_LOW)
    product, low = exact_product(square, literal(x, QUINTIC))
    low = square.fma(QUINTIC_LOW, square_low.fma(QUINTIC, low))
    cubic, rest = ordered_sum(literal(x, CUBIC), product)
    cubic_low = rest + (low + series)
    product, low = exact_product(square, cubic)
    low = square.fma(cubic_low, square_low.fma(cubic, low))
    factor, rest = ordered_sum(literal(x, FACTOR), product)
    factor_low = rest + (low + FACTOR_LOW)
    product, low = exact_product(s, factor)
    high, rest = ordered_sum(k, product)
    return ordered_sum(high, rest + s.fma(factor_low, s_low.fma(factor, low)))


INVERSE_ROOT = (2.099379656659496, -2.9290577976289227, 3.4504334333582065, -2.180790840971184, 0.560066173253943)
"""m ** (-1/3) for m from 0.5 to 1, within 4.5e-5: interpolated at Chebyshev's points."""


def cbrt(x: Value) -> Value:
    """Return the cube root, within 0.51 units in the last place.

    The root of the reciprocal comes from a polynomial and one step of a third-order iteration. One Newton step with the
    exact residual follows.
    """
    size = x.abs()
    k, m = split(size, HALF_BITS)
    shifted = k.fma(1.0 / 3.0, SHIFT)
    third = shifted - SHIFT
    left = third.fma(-3.0, k)
    below, above = left.compare("lt", 0.0), left.compare("gt", 0.0)
    y = m * below.where(0.5, choose(above, 2.0, 1.0, x))
    inverse = polynomial(m, INVERSE_ROOT) * below.where(2.0 ** (1 / 3), choose(above, 0.5 ** (1 / 3), 1.0, x))
    error = (-y * inverse * inverse).fma(inverse, 1.0)
    inverse = inverse + inverse * error * error.fma(2.0 / 9.0, 1.0 / 3.0)
    square = inverse * inverse
    found = y * square
    high, low = exact_product(found, found)
    rest = (-high).fma(found, y) - low * found
    found = rest.fma(square * (1.0 / 3.0), found) * power_of_two(shifted)
    is_edge = size.compare("eq", 0.0) | size.compare("eq", float("inf")) | size.is_nan()
    return is_edge.where(x, found.copysign(x))


def hypot(x: Value, y: Value) -> Value:
    """Return sqrt(x*x + y*y), within 0.6 units in the last place; infinite if one of both is."""
    x, y = x.abs(), y.abs()
    larger = x.compare("gt", y)
    a, b = larger.where(x, y), larger.where(y, x)
    is_large, is_small = a.compare("gt", 2.0**500), a.compare("lt", 2.0**-400)
    scale = is_large.where(2.0**-600, choose(is_small, 2.0**600, 1.0, a))
    a, b = a * scale, b * scale
    p, p_low = exact_product(a, a)
    q, q_low = exact_product(b, b)
    high, low = ordered_sum(p, q)
    found, rest = root(high, low + (p_low + q_low))
    found = (found + rest) * is_large.where(2.0**600, choose(is_small, 2.0**-600, 1.0, a))
    infinite = x.compare("eq", float("inf")) | y.compare("eq", float("inf"))
    return infinite.where(float("inf"), found)
