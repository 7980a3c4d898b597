"""Whole quotients and their remainders, of integers and of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.rules.core import cast
from accel.rules.derivatives import derived_from
from accel.rules.lowering import Array, jnp, lax, number, where


def _float_quotient(x: Any, y: Any) -> Any:
    """The whole quotient by NumPy's steps, of which the last takes a half down; halves are divided as float32."""
    dtype = np.result_type(x, y)
    wide = np.promote_types(dtype, np.float32)
    x, y = (cast(cast(each, dtype), wide) for each in (x, y))
    zero, one = number(0, x), number(1, x)
    rest = lax.rem(*jnp.broadcast_arrays(x, y))
    quotient = (x - rest) / y
    quotient = where((rest != zero) & ((y < zero) != (rest < zero)), quotient - one, quotient)
    whole = lax.floor(quotient)
    whole = where(quotient - whole > number(0.5, x), whole + one, whole)
    whole = where(quotient == zero, jnp.copysign(zero, x / y), whole)
    return cast(where(y == zero, x / y, whole), dtype)


def _signed_remainder(x: Array | float, y: Array | float) -> Any:
    """The sign of a zero is the divisor's."""
    found = jnp.remainder(x, y)
    return derived_from(where(found == number(0, found), jnp.copysign(number(0, found), y), found), found)


_OF_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "floor_divide": lambda x, y: lax.stop_gradient(_float_quotient(x, y)),
    "remainder": _signed_remainder,
    "fmod": lambda x, y: jnp.fmod(x, y),
}


def _guarded(name: str) -> Callable[[Any, Any], Any]:
    """Integer division: by zero NumPy gives 0 (with a warning)."""

    def lower(x: Array | float, y: Array | float) -> Any:
        function = getattr(jnp, name)
        x, y = (cast(each, np.int64) if jnp.asarray(each).dtype.kind == "b" else each for each in (x, y))  # Python's
        if jnp.asarray(y).dtype.kind == "f":  # Python's `7 % 2.5`: NumPy has cast both operands
            x = jnp.asarray(x, jnp.result_type(x, y))
        if jnp.asarray(x).dtype.kind not in "iu":
            return _OF_FLOATS[name](x, y)
        x, y = jnp.broadcast_arrays(x, y)
        # XLA is given no division by zero
        none = y == number(0, y)
        return where(none, number(0, y), function(x, where(none, number(1, y), y)))

    return lower


floor_divide = _guarded("floor_divide")
remainder = _guarded("remainder")
fmod = _guarded("fmod")


def divmod(x: Array | float, y: Array | float) -> Any:
    return floor_divide(x, y), remainder(x, y)
