"""Complex numbers: NumPy's own formulas where XLA's differ, at infinities and NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.rules.columns import Rounding
from accel.rules.derivatives import derived_from
from accel.rules.lowering import Array, jnp, lax, number, where


def is_complex(*operands: object) -> bool:
    """Whether any operand is complex."""
    return any(jnp.result_type(operand).kind == "c" for operand in operands)


def rounding(node: Node) -> Rounding:
    """Rounding of a sign or an absolute value: NumPy's sizes of complex numbers depend on the function and the CPU."""
    return Rounding.FREE if np.dtype(getattr(node.args[0], "dtype", type(node.args[0]))).kind == "c" else Rounding.EXACT


def absolute(x: Array) -> Any:
    """Infinite where one part is, even if the other is NaN."""
    if not is_complex(x):
        return jnp.absolute(x)
    infinite = jnp.isinf(x.real) | jnp.isinf(x.imag)
    return where(infinite, number(np.inf, x.real), jnp.absolute(x))


def divide(x: Any, y: Any) -> Any:
    """NumPy's way: R. L. Smith, "Algorithm 116: Complex division", Comm. ACM 5 (1962) 435."""
    if not is_complex(x, y):
        return jnp.true_divide(x, y)
    x, y = jnp.broadcast_arrays(x, y)
    a, b, c, d = x.real, x.imag, y.real, y.imag
    wide, zero = abs(c) >= abs(d), (c == 0) & (d == 0)
    large, small = where(wide, c, d), where(wide, d, c)
    ratio = small / large
    # by the larger part of the divisor: `c*c + d*d` of the plain formula overflows where the quotient does not
    scale, shift = _inverse(large + small * ratio)
    real = where(wide, a + b * ratio, a * ratio + b) * scale * shift
    imag = where(wide, b - a * ratio, b * ratio - a) * scale * shift
    return lax.complex(where(zero, a / abs(c), real), where(zero, b / abs(c), imag))


def _inverse(divisor: Any) -> tuple[Any, Any]:
    """1 / divisor in two factors, of which none is a subnormal number: those are 0 to XLA."""
    shift = where(abs(divisor) > number(2.0**100, divisor), number(2.0**-27, divisor), number(1, divisor))
    return number(1, divisor) / (divisor * shift), shift


def reciprocal(x: Any) -> Any:
    """NumPy's way, by the method of `divide`."""
    c, d = x.real, x.imag
    wide, one = abs(d) <= abs(c), number(1, x.real)
    ratio = where(wide, d, c) / where(wide, c, d)
    scale = where(wide, c + d * ratio, c * ratio + d)
    return lax.complex(where(wide, one, ratio) / scale, -where(wide, ratio, one) / scale)


def square(x: Array) -> Any:
    """`x * x` rounded as NumPy rounds it."""
    return x * x


def sign(x: Array) -> Any:
    """The direction; that of an infinity is its axis. The sign of -0.0 is 0.0."""
    if not is_complex(x):
        found = jnp.sign(x)
        return where(x == number(0, x), number(0, found), found) if found.dtype.kind == "f" else found
    size, zero, nan = absolute(x), number(0, x.real), number(np.nan, x.real)
    unknown = jnp.isnan(size) | (jnp.isinf(x.real) & jnp.isinf(x.imag))

    def direction(part: Array, along: Array) -> Any:
        found = where(jnp.isinf(size), along, where(size == zero, zero, part / size))
        return where(unknown, nan, found)

    wide = jnp.isinf(x.real)  # else the imaginary part is infinite, or NumPy's result where the size overflows
    real, imag = where(wide, jnp.sign(x.real), zero), where(wide, zero, jnp.sign(x.imag))
    return lax.complex(direction(x.real, real), direction(x.imag, imag))


# -- order: by real part, then by imaginary part ----------------------------------------------------------------------


def compared(name: str) -> Callable[[Any, Any], Any]:
    """less, less_equal, greater or greater_equal."""
    strictly = name.partition("_")[0]

    def lower(x: Array | float, y: Array | float) -> Any:
        if not is_complex(x, y):
            return getattr(jnp, name)(x, y)
        x, y = jnp.broadcast_arrays(x, y)
        # NaN in any part makes the comparison false, as in NumPy
        apart = getattr(jnp, strictly)(x.real, y.real) & ~jnp.isnan(x.imag) & ~jnp.isnan(y.imag)
        return apart | ((x.real == y.real) & getattr(jnp, name)(x.imag, y.imag))

    return lower


def ordered(name: str) -> Callable[[Any, Any], Any]:
    """maximum and minimum, in which the first NaN wins; fmax and fmin, in which a number does.

    Of two zeros of different sign, NumPy's maximum and minimum give the second, or in float16 the first. Which one its
    fmax and fmin give depends on the element's place in the array.
    """
    holds = compared("greater_equal" if name.endswith("max") or name == "maximum" else "less_equal")

    def lower(x: Any, y: Any) -> Any:
        if not is_complex(x, y):
            dtype = jnp.result_type(x, y)  # a number of Python's has none of its own
            x, y = jnp.asarray(x, dtype), jnp.asarray(y, dtype)
            if name.startswith("f") or dtype.kind != "f":
                return getattr(jnp, name)(x, y)
            first = (x > y) if name == "maximum" else (x < y)
            found = where(first | (x != x) | ((x == y) if x.dtype == np.float16 else False), x, y)
            return derived_from(found, getattr(jnp, name)(x, y))
        x, y = jnp.broadcast_arrays(x, y)
        missing = y != y if name.startswith("f") else x != x
        return where(holds(x, y) | missing, x, y)

    return lower
