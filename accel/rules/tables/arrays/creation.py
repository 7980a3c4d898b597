"""Creation: arrays of literals, copies, and arrays like another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.rules.core import cast
from accel.rules.lowering import Array, jnp, lax, number, same, where
from accel.rules.rule import Unsupported, add_rule, rewritten, rule
from accel.rules.special import ArrayOf, Like

_function: Any
for _function in (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.copy, np.asfortranarray, np.require):
    add_rule(_function, None, special=ArrayOf())
for _function, _fill in ((np.zeros_like, 0), (np.ones_like, 1), (np.empty_like, 0), (np.full_like, None)):
    add_rule(_function, None, special=Like(_fill))


def _filled(name: str) -> Callable[..., Any]:
    """As `same`: JAX's arrays have no memory order to choose."""

    def lower(*, order: str = "C", **bound: object) -> Any:
        return getattr(jnp, name)(**bound)

    return lower


add_rule(np.zeros, _filled("zeros"), "| shape dtype order", by_shape=True)
add_rule(np.ones, _filled("ones"), "| shape dtype order", by_shape=True)
add_rule(np.full, _filled("full"), "fill_value | shape dtype order", cast="fill_value", by_shape=True)
add_rule(np.eye, same("eye"), "| N M k dtype order")
add_rule(np.identity, same("identity"), "| n dtype")
add_rule(np.tri, same("tri"), "| N M k dtype")


@rule(np.meshgrid, "*xi | indexing sparse")
def meshgrid(*, xi: tuple[Any, ...], **bound: object) -> Any:
    return jnp.meshgrid(*map(jnp.ravel, map(jnp.asarray, xi)), **bound)


@rule(np.logspace, "start stop | num endpoint base axis")
def logspace(*, start: Array, stop: Array | float, **bound: object) -> Any:
    base = bound.pop("base", 10.0)
    exponents = linspace(start=start, stop=stop, **bound)
    return jnp.power(cast(base, exponents.dtype), exponents)


add_rule(np.hanning, same("hanning"), "| M")
add_rule(np.hamming, same("hamming"), "| M")
add_rule(np.blackman, same("blackman"), "| M")
add_rule(np.bartlett, same("bartlett"), "| M")
add_rule(np.kaiser, same("kaiser"), "| M beta")


@rule(np.vander, "x | N increasing")
def vander(*, x: Array, N: int | None = None, increasing: bool = False) -> Any:
    """By multiplying on and on, as NumPy does."""
    x, N = cast(x, np.promote_types(x.dtype, int)), len(x) if N is None else N
    factors = jnp.broadcast_to(x[:, None], (*x.shape, max(N, 1))).at[:, 0].set(1)
    powers = jnp.cumprod(factors, axis=1)[:, :N]
    return powers if increasing else powers[:, ::-1]


@rule(np.empty, "| shape dtype order", by_shape=True)
def empty(*, shape: int | tuple[int, ...], dtype: np.dtype[Any] | type[Any] = float, order: str = "C") -> Any:
    """Zeros: the program may not depend on what memory happened to hold."""
    return jnp.zeros(shape, dtype)


@rule(np.arange, "| start_or_stop stop step dtype")
def arange(**bound: Any) -> Any:
    """Static bounds; the values are NumPy's own."""
    return jnp.asarray(np.arange(*_positional(bound), dtype=bound.get("dtype")))


def _positional(bound: dict[str, Any]) -> list[Any]:
    return [bound[name] for name in ("start_or_stop", "start", "stop", "step") if name in bound]


@rule(np.linspace, "start stop | num endpoint dtype axis")
def linspace(*, start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """By NumPy's own formula: start + i * step, the last value exactly `stop`."""
    if dtype is not None and np.dtype(dtype).kind in "iu":
        raise Unsupported("rule.parameter", "numpy.linspace in whole numbers, which the last place decides")
    exact = np.result_type(*(x if type(x) in (int, float, complex) else x.dtype for x in (start, stop)), 1.0)
    start, stop = jnp.broadcast_arrays(cast(start, exact), cast(stop, exact))
    count = num - 1 if endpoint else num
    line = cast(jnp.arange(num), exact).reshape((-1,) + (1,) * start.ndim)
    delta = stop - start
    step = delta / number(max(count, 1), delta)
    # if one step is 0, perhaps by underflow, NumPy divides first, in all columns
    values = where(
        jnp.broadcast_to(jnp.any(step == number(0, step)), (num, *step.shape)), line / count * delta, line * step
    )
    values = (values if count > 0 else line * delta) + start
    if endpoint and num > 1:
        values = lax.concatenate([values[:-1], stop[None]], 0)
    values = jnp.moveaxis(values, 0, axis)
    return values if dtype is None else cast(values, np.dtype(dtype))


@rewritten(np.astype, "x | dtype copy")
def astype(x: Any, dtype: object, copy: bool = True) -> Any:
    return x.astype(dtype, copy=copy)


@rewritten(np.asarray_chkfinite, "a | dtype order")
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """Infinities and NaN make it raise."""
    result = np.asarray(a, dtype=dtype, order=order) if dtype is not None else a
    if result.dtype.kind in "fc" and not bool(np.all(np.isfinite(result))):
        raise Unsupported("rule.parameter", "infinities or NaN")
    return result
