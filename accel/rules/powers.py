"""Powers with the exponents and edges of NumPy's: multiplications, square roots, squaring, and XLA's power."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.rules.columns import Rounding
from accel.rules.complex_edges import with_edges
from accel.rules.complexes import divide, reciprocal
from accel.rules.core import cast
from accel.rules.derivatives import always_with_slopes, derived_from, with_slopes
from accel.rules.lowering import function_of, jnp, lax, number, where
from accel.rules.tracing import current

_ROUNDED_ONCE = range(-1, 3)
"""Whole exponents whose power is one operation. Others of single precision are multiplied in double precision."""

_MULTIPLIED = range(-2, 5)
"""Whole exponents by multiplication: off by at most 2 units in the last place. Measured: 1.8 for 4, 2.2 for -3, 13 for
20, 45 for 64. NumPy's `pow` is off by half a unit."""


def power(x: Any, y: Any) -> Any:
    """Small whole exponents by multiplication, and a half by the square root, as NumPy's own fast paths do."""
    x_dtype = getattr(x, "dtype", np.dtype(float))
    if type(y) is float and x_dtype.kind in "fc":
        found = _power_of_constant(x, y, x_dtype)
        if found is not None:
            return found
    x = cast(x, x_dtype)
    y = cast(y, x.dtype)
    if x_dtype.kind in "iu":
        return _integer_power(x, y)
    if x_dtype.kind == "c":
        return _complex_power(x, y)
    found = _REAL_POWER(x, y) if current().has_derivatives else function_of("power")(x, y)
    one = np.ndim(x) > 0 and (np.ndim(y) == 0 or np.size(y) == 1 < np.size(x))
    if one and x_dtype.char in "fd" and not current().has_derivatives:
        # as NumPy's loop of one exponent for a whole array: the root of -inf is NaN, where `pow` gives inf
        for exponent, result in ((0.5, jnp.sqrt(x)), (2.0, x * x), (-1.0, 1 / x)):
            found = jnp.where(y == exponent, result, found)
    return found


def _power_of_constant(x: Any, y: float, dtype: np.dtype[Any]) -> Any:
    """The power by multiplication or by roots; None where neither is as exact as NumPy's `pow`."""
    is_real = dtype.kind == "f"
    if y == 0.5:
        return with_edges("sqrt")(x)
    if y.is_integer() and abs(y) <= 64:
        if not is_real:
            found = x * x if y == 2 else reciprocal(x) if y == -1 else _complex_power(x, number(y, x))
            return derived_from(found, lax.integer_pow(x, int(y)))
        if current().has_derivatives:
            return lax.integer_pow(x, int(y))
        if dtype.itemsize < 8 and y not in _ROUNDED_ONCE:
            return cast(lax.integer_pow(cast(x, np.float64), int(y)), dtype)
        if y in _MULTIPLIED:
            return lax.integer_pow(x, int(y))
    return _power_by_roots(y)(x) if is_real and y in _BY_ROOTS else None


def _power_by_base(x: Any, y: Any) -> Any:
    """y * x**(y - 1), and 0 for 0**0, which is 1 for any base."""
    return y * _REAL_POWER(_one_where((x == 0) & (y == 0), x), y - 1)


def _power_by_exponent(x: Any, y: Any) -> Any:
    """x**y * log(x), and 0 for 0**y, which is 0 for any positive y."""
    zero = (x == 0) & (y > 0)
    base = _one_where(zero, x)
    return jnp.where(zero, number(0, x), _REAL_POWER(base, y) * jnp.log(base))


def _one_where(mask: Any, x: Any) -> Any:
    return jnp.where(mask, number(1, x), x)


_REAL_POWER = always_with_slopes(lambda x, y: jnp.power(x, y), _power_by_base, _power_by_exponent)


def float_power(x: Any, y: Any) -> Any:
    """Without the square root that NumPy's power takes for a half."""
    half = type(y) is float and y == 0.5 and x.dtype.kind == "f"
    return _power_by_roots(0.5)(x) if half else power(x, y)


def _integer_power(x: object, y: object) -> Any:
    """By squaring, through all bits of the exponents: jax.numpy stops after six. What overflows wraps, as in NumPy."""
    x, y = jnp.broadcast_arrays(x, y)

    def step(state: tuple[Any, ...]) -> Any:
        result, power, left = state
        return where(left % 2 == 1, result * power, result), power * power, left // 2

    return lax.while_loop(lambda state: (state[2] > 0).any(), step, (jnp.ones_like(x), x, y))[0]


_BY_ROOTS: dict[float, Callable[[Any], Any]] = {
    0.5: lambda x: jnp.sqrt(x),
    0.25: lambda x: jnp.sqrt(jnp.sqrt(x)),
    0.75: lambda x: jnp.sqrt(x) * jnp.sqrt(jnp.sqrt(x)),
    1.5: lambda x: x * jnp.sqrt(x),
}
"""Powers that square roots give within a unit or two in the last place, eight times faster than XLA's power."""


@functools.cache
def _power_by_roots(y: float) -> Callable[[Any], Any]:
    """The derivative is another power, not that of roots, which have none at 0 where the power may have one."""
    return with_slopes(lambda x: _at_edges(x, _BY_ROOTS[y](x)), lambda x: y * _REAL_POWER(x, number(y - 1.0, x)))


def _at_edges(x: object, power: object) -> Any:
    """A positive fractional power where roots differ from it: -0.0 gives 0.0, and -inf gives inf."""
    power = where(x == number(0, x), number(0, x), power)
    return where(x == number(-np.inf, x), number(np.inf, x), power)


_MOST_MULTIPLIED = 99
"""The largest whole exponent of a complex number for which NumPy multiplies."""


def _complex_power(x: object, y: Any) -> Any:
    """NumPy's ways: multiplications for whole exponents below 100, which keep real numbers real, else the C library's.

    Anything to the power of 0 is 1; 0 is 0 where the power's real part is positive.
    """
    x, y = jnp.broadcast_arrays(x, y)
    zero, one, nan = number(0, x), number(1, x), number(complex(np.nan, np.nan), x)
    at_zero = where(y.real > 0, zero, nan)
    base = where(x == zero, one, x)
    # as the C library, whose powers overflow later than XLA's
    found = with_edges("exp")(y * with_edges("log")(base))
    count = jnp.abs(y.real)
    is_whole = (y.imag == 0) & (count <= _MOST_MULTIPLIED) & (count == jnp.floor(count))
    multiplied = _multiplied(base, where(is_whole, count, number(0, count)).astype(np.int32))
    found = where(is_whole, where(y.real < 0, divide(one, multiplied), multiplied), found)
    found = where(y == zero, one, where(x == zero, at_zero, found))
    return derived_from(found, jnp.power(base, y))


def _multiplied(x: Any, count: Any) -> Any:
    """x to whole powers of at most 127, by NumPy's order of multiplications."""
    found, square = number(1, x), x
    for bit in range(7):
        first = (count < 4) & (count >> bit << bit == count)
        found = where((count >> bit) & 1 == 1, where(first, square, found * square), found)
        square = square * square
    return found


def rounding(node: Node) -> Rounding:
    """A square is rounded as NumPy rounds it, other powers as XLA likes."""
    exponent = node.args[1]
    return Rounding.ROUNDED if type(exponent) in (int, float) and exponent == 2 else Rounding.FREE


def work(node: Node) -> float:
    """Work for each element: that of a root where multiplications and roots give the power."""
    exponent = node.args[1]
    return 5.0 if type(exponent) in (int, float) and (exponent in _MULTIPLIED or exponent in _BY_ROOTS) else 40.0
