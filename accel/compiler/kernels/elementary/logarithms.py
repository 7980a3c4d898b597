"""Logarithms and inverse hyperbolic functions.

The method is that of fdlibm (Sun Microsystems, 1993; e_log.c). x = 2**k * (1 + f), with 1 + f between the roots of 1/2
and 2. log(1 + f) is f - f*f/2 + s * (f*f/2 + R), where s = f / (2 + f), and R is a polynomial of s*s. Here the result
is a pair. So are arguments that are sums: log(h + l) is log(h) + l / h for l of h's rounding.
"""

from __future__ import annotations

from accel.compiler.kernels.elementary.exponentials import LN2_HIGH, LN2_LOW
from accel.compiler.kernels.elementary.pairs import (
    Pair,
    at_most,
    choose,
    exact_product,
    exact_sum,
    literal,
    ordered_sum,
    polynomial,
    quotient,
    root,
    split,
)
from accel.compiler.kernels.ir import Value

SERIES = (
    *(6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01),
    *(1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01),
)
"""R of s*s, divided by s*s: within 2**-58.45 (e_log.c)."""

LARGE = 2.0**28
"""Threshold above which sqrt(x*x + 1) and sqrt(x*x - 1) equal x for the precision of logarithms."""

TINY = 2.0**-28
"""Threshold below which asinh(x) and atanh(x) are x."""


def log(x: Value) -> Value:
    """Return the natural logarithm, within 0.7 units in the last place."""
    return at_edges(x, _log(*_parts(x)))


def log2(x: Value) -> Value:
    """Return the logarithm to base 2, within 0.7 units in the last place; exact at powers of 2."""
    return _in_base(x, (1.0, 0.0), (1.4426950408889634, 2.0355273740931033e-17))


def log10(x: Value) -> Value:
    """Return the logarithm to base 10, within 0.7 units in the last place."""
    return _in_base(x, (0.30102999566383914, 1.42050232272661e-13), (0.4342944819032518, 1.098319650216765e-17))


def log1p(x: Value) -> Value:
    """Return log(1 + x), within 0.7 units in the last place."""
    high, low = exact_sum(at_most(x, 2.0**1000), 1.0)
    high = x.compare("gt", 2.0**1000).where(x, high)
    return x.abs().compare("lt", 2.0**-54).where(x, _log_of_sum(high, low))


def asinh(x: Value) -> Value:
    """Return asinh(x), within 0.7 units in the last place: log(|x| + sqrt(x*x + 1))."""
    size = x.abs()
    square, rest = exact_product(size, size)
    high, low = exact_sum(square, 1.0)
    found = _log_with_root(size, root(high, low + rest), larger_root=True)
    return size.compare("lt", TINY).where(x, found.copysign(x))


def acosh(x: Value) -> Value:
    """Return acosh(x), within 0.7 units in the last place: log(x + sqrt(x*x - 1))."""
    square, rest = exact_product(x, x)
    high, low = ordered_sum(square, literal(x, -1.0))
    found = _log_with_root(x, root(high, low + rest), larger_root=False)
    return x.compare("lt", 1.0).where(float("nan"), found)


def atanh(x: Value) -> Value:
    """Return atanh(x), within 0.7 units in the last place: log((1 + x) / (1 - x)) / 2."""
    size = x.abs()
    one = literal(x, 1.0)
    under = ordered_sum(one, -size)
    high, low = quotient(ordered_sum(one, size), under)
    pole = under[0].compare("le", 0.0)
    edge = size.compare("eq", 1.0).where(literal(x, float("inf")), float("nan"))
    found = pole.where(edge, _log_of_sum(high, low) * 0.5)
    return size.compare("lt", TINY).where(x, found.copysign(x))


def _log_with_root(x: Value, root: Pair, *, larger_root: bool) -> Value:
    """Return log(x + root), which is log(2 * x) for large x."""
    high, low = ordered_sum(root[0], x) if larger_root else ordered_sum(x, root[0])
    is_large = x.compare("gt", LARGE)
    high, low = is_large.where(x, high), is_large.where(0.0, low + root[1])
    return _log_of_sum(high, low, choose(is_large, 1.0, 0.0, x))


def _log_of_sum(high: Value, low: Value, more_k: Value | None = None) -> Value:
    k, found, rest = _parts(high)
    return at_edges(high, _log(k if more_k is None else k + more_k, found, rest + low / high))


def _parts(x: Value) -> tuple[Value, Value, Value]:
    """Return k, and log(1 + f) as a pair."""
    k, m = split(x)
    f = m - 1.0
    s = f / (f + 2.0)
    minus_half = f * -0.5
    square = s * s
    rest = s * square.fma(polynomial(square, SERIES), -(minus_half * f))
    high = minus_half.fma(f, f)
    return k, high, minus_half.fma(f, f - high) + rest


def _log(k: Value, high: Value, low: Value) -> Value:
    found, rest = ordered_sum(k * LN2_HIGH, high)
    return found + (rest + k.fma(LN2_LOW, low))


def _in_base(x: Value, of_two: tuple[float, float], of_e: tuple[float, float]) -> Value:
    """Return the logarithm in the base whose logarithms of 2 and e are these pairs. k times the first number is
    exact."""
    k, high, low = _parts(x)
    high, low = ordered_sum(high, low)
    product, rest = exact_product(high, of_e[0])
    rest = low.fma(of_e[0], high.fma(of_e[1], rest))
    found, lost = ordered_sum(k * of_two[0], product)
    return at_edges(x, found + (lost + k.fma(of_two[1], rest)))


def at_edges(x: Value, found: Value) -> Value:
    """Return `found` with edge cases: -inf at zero, NaN for negative numbers; infinity and NaN stay."""
    found = x.compare("lt", float("inf")).where(found, x)
    return x.compare("le", 0.0).where(choose(x.compare("eq", 0.0), float("-inf"), float("nan"), x), found)
