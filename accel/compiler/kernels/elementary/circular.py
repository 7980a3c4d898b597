"""Inverse trigonometric functions."""

from __future__ import annotations

from accel.compiler.kernels.elementary.pairs import (
    at_most,
    choose,
    literal,
    ordered_sum,
    polynomial,
    quotient,
    root,
    with_sign,
)
from accel.compiler.kernels.ir import Value

PI, PI_LOW = 3.141592653589793, 1.2246467991473532e-16
"""Two floats whose sum is pi."""

QUARTER, QUARTER_LOW = 0.7853981633974483, 3.061616997868383e-17
"""Two floats whose sum is pi / 4. The first has 50 bits, so that four times and three times it are exact."""

ARCTAN = (
    *(-0.333333333333332, 0.19999999999954068, -0.14285714280246958, 0.1111111078605372, -0.09090897833855634),
    *(0.07692061588054709, -0.06663119794973563, 0.0584800442012652, -0.05039824376507132, 0.03807776354841028),
    -0.017921648342034285,
)
"""(atan(t) - t) / t**3 as a polynomial of t * t: minimax for |t| up to 0.4142, within 2**-59 of 1 / t**2."""

ARCSIN = (
    *(0.16666666666665375, 0.07500000000344748, 0.044642856822014486, 0.030381959394012947, 0.022371751970756797),
    *(0.017359795177926896, 0.013884354663799737, 0.012174917447701472, 0.00650361555740484, 0.019594111751462324),
    *(-0.016326377286654467, 0.031981500399334194),
)
"""(asin(s) - s) / s**3 as a polynomial of s * s: minimax for |s| up to 0.5, within 2**-55.9 of 1 / s**2."""


def asin(x: Value) -> Value:
    """Return the arcsine, within 0.8 units in the last place; NaN outside -1 to 1."""
    size = x.abs()
    is_large, high, low = _arcsine(size)
    start, start_low = choose(is_large, PI / 2, 0.0, x), choose(is_large, PI_LOW / 2, 0.0, x)
    found, lost = ordered_sum(start, is_large.where(high * -2.0, high))
    return (found + (lost + (is_large.where(low * -2.0, low) + start_low))).copysign(x)


def acos(x: Value) -> Value:
    """Return the arccosine, within 0.8 units in the last place; NaN outside -1 to 1."""
    is_large, high, low = _arcsine(x.abs())
    high, low = high.copysign(x), with_sign(low, x.bits())
    start, start_low = (
        is_large.where(x.compare("lt", 0.0).where(literal(x, number), 0.0), number / 2) for number in (PI, PI_LOW)
    )
    found, lost = ordered_sum(start, is_large.where(high * 2.0, -high))
    return found + (lost + (is_large.where(low * 2.0, -low) + start_low))


def atan(x: Value) -> Value:
    """Return the arctangent, within 0.9 units in the last place."""
    return _angle(at_most(x.abs(), 2.0**1000), literal(x, 1.0), None).copysign(x)


def atan2(y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), within 0.9 units in the last place. Edge cases follow C's `atan2` and
    NumPy."""
    a, b = y.abs(), x.abs()
    is_far = a.compare("eq", float("inf")) | b.compare("eq", float("inf"))
    # infinity counts as 1, and a finite number beside it as 0; the origin is at 0
    a, b = (is_far.where(each.compare("eq", float("inf")).where(1.0, each * 0.0), each) for each in (a, b))
    b = (a.compare("eq", 0.0) & b.compare("eq", 0.0)).where(1.0, b)
    is_left = x.bits().compare("lt", 0)
    is_tiny = a.compare("lt", b * 2.0**-60) & ~is_left
    larger = a.compare("gt", b).where(a, b)
    is_large, is_small = larger.compare("gt", 2.0**900), larger.compare("lt", 2.0**-900)
    scale = is_large.where(2.0**-200, choose(is_small, 2.0**200, 1.0, a))
    return is_tiny.where(a / b, _angle(a * scale, b * scale, is_left)).copysign(y)


def _arcsine(size: Value) -> tuple[Value, Value, Value]:
    """Return whether `size` exceeds 0.5, and an arcsine as a pair.

    It is asin(size), or above 0.5 asin(sqrt((1 - size) / 2)), half of the complement.
    """
    is_large = size.compare("gt", 0.5)
    square = is_large.where(size.fma(-0.5, 0.5), size * size)
    high, low = root(square, literal(size, 0.0))
    high, low = is_large.where(high, size), is_large.where(low, 0.0)
    return is_large, high, (high * square).fma(polynomial(square, ARCSIN), low)


def _angle(a: Value, b: Value, is_left: Value | None) -> Value:
    """Return the angle of the point (b, a), or of (-b, a) where `is_left`. a and b are not negative, and not both zero.

    The ratio t is at most 1. The angle comes from atan(t), or from atan((1 - t) / (1 + t)) = pi / 4 - atan(t).
    Complements follow.
    """
    is_steep = a.compare("gt", b)
    large, small = is_steep.where(a, b), is_steep.where(b, a)
    is_middle = small.compare("gt", large * 0.41421356237309503)
    difference, lost = ordered_sum(large, -small)
    sum_, more = ordered_sum(large, small)
    high, low = quotient(
        (is_middle.where(difference, small), is_middle.where(lost, 0.0)),
        (is_middle.where(sum_, large), is_middle.where(more, 0.0)),
    )
    square = high * high
    low = (high * square).fma(polynomial(square, ARCTAN), low)
    quarters = is_steep.where(choose(is_middle, 1.0, 2.0, a), choose(is_middle, 1.0, 0.0, a))
    is_negative = is_middle ^ is_steep
    if is_left is not None:
        quarters, is_negative = is_left.where(4.0 - quarters, quarters), is_negative ^ is_left
    found, lost = ordered_sum(quarters * QUARTER, is_negative.where(-high, high))
    return found + (lost + quarters.fma(QUARTER_LOW, is_negative.where(-low, low)))
