"""Helpers for lowering functions: jax.numpy by name, imported when first used, and its functions without sub-programs.

Many functions of jax.numpy are compiled functions themselves; a program that calls them 2,000 times carries as many
calls. The ones here are made of single operations.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.rules.tracing import current

if TYPE_CHECKING:
    from jax import Array as Array
else:
    Array = Any  # for annotations, which import no JAX


class Lazy:
    """A module that is imported when something in it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


jnp: Any = Lazy("jax.numpy")
lax: Any = Lazy("jax.lax")
tree: Any = Lazy("jax.tree")


IN_KERNELS = frozenset({"log10", "log2"})
"""Functions of `jax.numpy` that are several operations, and one of accel's kernels'."""


def function_of(name: str) -> Callable[..., Any]:
    """The function of that name in `jax.numpy`; one operation of the program where accel's kernels have it so."""
    function: Callable[..., Any] = getattr(jnp, name)
    return _as_one(name) if name in IN_KERNELS and current().for_kernels else function


@functools.cache
def _as_one(name: str) -> Callable[..., Any]:
    import jax

    return jax.jit(getattr(jnp, name))


def same(name: str, module: str = "jax.numpy") -> Callable[..., Any]:
    """The function of the same name in jax.numpy, given the row's parameters as keywords."""

    def lower(**bound: object) -> Any:
        return getattr(_import(module), name)(**bound)

    return lower


def spread(name: str, *positional: str) -> Callable[..., Any]:
    """As `same`, for functions that take the parameters `positional` by position; a tuple there is several."""

    def lower(**bound: object) -> Any:
        given: list[Any] = []
        for parameter in positional:
            if parameter in bound:
                value = bound.pop(parameter)
                given.extend(value if isinstance(value, tuple) else [value])
        return getattr(_import("jax.numpy"), name)(*given, **bound)

    return lower


def _import(module: str) -> Any:
    return importlib.import_module(module)


def where(condition: Any, x: Any, y: Any) -> Any:
    """jax.numpy.where as single operations; x and y of one dtype."""
    # `jnp.where` is one of those compiled functions
    x, y = jnp.asarray(x), jnp.asarray(y)
    shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
    return lax.select(*(part if part.shape == shape else jnp.broadcast_to(part, shape) for part in (condition, x, y)))


def is_few(a: Any, axis: Any) -> bool:
    """Whether a sum is over fewer than 8 floats of several last axes: NumPy adds them from left to right.

    XLA does so only where they are of one axis.
    """
    axes = axes_of(axis, a.ndim)
    kept = a.ndim - len(axes)
    several = len(axes) > 1 and min(axes) >= kept and a.dtype.char in "fd"
    return several and 0 < math.prod(a.shape[kept:]) < 8


def in_order(a: Any, axis: Any) -> Any:
    """Sum from left to right over the last axes."""
    rows = a.reshape(*a.shape[: a.ndim - len(axes_of(axis, a.ndim))], -1)
    return functools.reduce(jnp.add, (rows[..., i] for i in range(rows.shape[-1])), number(0, a))


def axes_of(axis: object, ndim: int) -> tuple[int, ...]:
    """The axes that an `axis` parameter names, not negative; None names all."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple) else (axis,)
    return tuple(int(one) % ndim for one in given)


def nonzero(x: Array) -> Any:
    """Truth of each element; a complex number's cast to bool would look at its real part alone."""
    return x if x.dtype.kind == "b" else x != number(0, x)


def axis_within(axis: object, ndim: int) -> Any:
    """The `axis` parameter, None for arrays of no axes: NumPy accepts 0 and -1 there."""
    return axis if ndim else None


def number(value: Any, like: Any) -> Any:
    """A number as an array of no axes, of the dtype of `like`."""
    return jnp.asarray(value, like.dtype)


def from_start(indices: Any, size: int) -> Any:
    """Indices into an axis of `size`, the negative ones counted from its end."""
    return where(indices < 0, indices + number(size, indices), indices)


def join(parts: tuple[Any, ...] | list[Any], axis: int) -> Any:
    """The parts, of one dtype, one after the other along an axis; empty ones left out where others are not."""
    return lax.concatenate([part for part in parts if part.shape[axis]] or list(parts[:1]), axis)


def extreme(
    x: Any, axis: Any = None, *, largest: bool, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The largest or the smallest elements over axes, as NumPy has them: NaN where there is one.

    XLA's own reductions on the CPU lose it: `jnp.min` of 700 x 700 numbers, one of them NaN, is a number. So NaN is
    looked for by itself.
    """
    name = "max" if largest else "min"
    reduce = getattr(jnp, name)
    if x.dtype.kind != "f" or (current().for_kernels and x.size):
        given = {key: value for key, value in (("initial", initial), ("where", where)) if value is not None}
        return reduce(x, axis=axis, keepdims=keepdims, **given)
    start = number(-np.inf if largest else np.inf, x)
    if where is not None:
        x = jnp.where(where, x, start)
    lost = x != x
    found = reduce(jnp.where(lost, start, x), axis=axis, keepdims=keepdims, initial=start)
    found = jnp.where(lost.any(axis=axis, keepdims=keepdims), number(np.nan, x), found)
    return found if initial is None else getattr(jnp, f"{name}imum")(found, number(initial, found))
