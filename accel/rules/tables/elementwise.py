"""Functions of each element that are no ufuncs: comparisons with a tolerance, rounding, parts of complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.rules.columns import Rounding
from accel.rules.core import cast, in_common_dtype
from accel.rules.lowering import Array, jnp, lax, number, spread, where
from accel.rules.rule import Unsupported, add_rule, rewritten, rule

# -- comparisons ------------------------------------------------------------------------------------------------------


@rewritten(np.isclose, "a b rtol atol | equal_nan")
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """By NumPy's formula, so that NumPy's own dtypes follow: JAX compares int32 in float32."""
    b = b if getattr(b, "dtype", np.dtype(int)).kind in "fc" else b * 1.0
    close = np.less_equal(abs(a - b), atol + rtol * abs(b)) & np.isfinite(b) | np.equal(a, b)
    return close | (np.isnan(a) & np.isnan(b)) if equal_nan else close


@rewritten(np.allclose, "a b rtol atol | equal_nan")
def allclose(a: Any, b: Any, **bound: Any) -> Any:
    return np.array_equiv(np.isclose(a, b, **bound), True)  # which gives a bool of Python's


def _equal(name: str) -> Callable[..., Any]:
    """In the dtype in which NumPy compares: JAX compares int32 with float32 in float32."""

    def lower(*, a1: Array, a2: Array, **bound: object) -> Any:
        given = [each if hasattr(each, "dtype") else np.asarray(each) for each in (a1, a2)]
        compared = in_common_dtype(*given)
        if compared[0].dtype.kind == "f" and all(each.dtype.kind in "iu" for each in given):
            raise Unsupported("rule.parameter", f"numpy.{name} of signed numbers and uint64")
        return getattr(jnp, name)(*compared, **bound)

    return lower


add_rule(np.array_equal, _equal("array_equal"), "a1 a2 | equal_nan")
add_rule(np.array_equiv, _equal("array_equiv"), "a1 a2")


@rule(np.angle, "z | deg", elementwise=True)
def angle(*, z: Array, deg: bool = False) -> Any:
    if z.dtype.kind not in "fc":
        raise Unsupported("rule.parameter", "numpy.angle of whole numbers")
    found = cast(jnp.angle(z, deg), z.real.dtype)
    return found if z.dtype.kind == "c" else lax.stop_gradient(found)  # 0 or half a turn


def _floating(x: Array) -> Any:
    return x if x.dtype.kind in "fc" else cast(x, np.dtype(float))


@rule(np.sinc, "x", elementwise=True)
def sinc(*, x: Array) -> Any:
    """By NumPy's formula: jax.numpy's is 0 at whole numbers and at infinity since JAX 0.12."""
    x = _floating(x)
    zero, one = x == number(0, x), number(1, x)
    angle = number(np.pi, x) * where(zero, one, x)
    return where(zero, one, jnp.sin(angle) / angle)


@rule(np.i0, "x", elementwise=True)
def i0(*, x: Array) -> Any:
    return jnp.i0(_floating(x))


def _round(*, a: Array, decimals: int = 0) -> Any:
    if a.dtype.kind == "b" or (a.dtype.kind in "iu" and decimals < 0):
        raise Unsupported("rule.parameter", "rounding truths, or whole numbers to tens")
    if decimals and (a.dtype == np.float16 or abs(decimals) > 30):
        raise Unsupported("rule.parameter", "rounding to decimals whose power of ten is no such number")
    if a.dtype.kind in "iu":
        return a
    return _to_decimals(a, decimals) if decimals and a.dtype.kind == "f" else jnp.round(a, decimals)


def _to_decimals(a: Array, decimals: int) -> Any:
    """NumPy's way: by the power of ten itself, which is no number for negative exponents."""
    power = number(10.0 ** abs(decimals), a)
    if decimals < 0:
        return jnp.round(a / power) * power
    return jnp.round(a * power) / power


for _function in (np.round, np.around):
    add_rule(_function, _round, "a | decimals", elementwise=True, rounding=Rounding.EXACT, jumps=True)
add_rule(np.isneginf, spread("isneginf", "x"), "x", elementwise=True)
add_rule(np.isposinf, spread("isposinf", "x"), "x", elementwise=True)
rewritten(np.real, "val")(lambda val: val.real)
rewritten(np.imag, "val")(lambda val: val.imag)
rewritten(np.isreal, "x")(lambda x: np.equal(np.imag(x), 0))
rewritten(np.iscomplex, "x")(lambda x: np.not_equal(np.imag(x), 0))
add_rule(np.fix, lambda *, x: jnp.trunc(x), "x", elementwise=True)


@rewritten(np.real_if_close, "a | tol")
def real_if_close(a: Any, tol: int = 100) -> Any:
    if a.dtype.kind == "c":
        raise Unsupported("rule.parameter", "numpy.real_if_close: its dtype depends on values")
    return a
