"""Functions that change their first argument: each row computes what it holds afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules.core import cast, in_bounds
from accel.rules.lowering import Array, from_start, jnp, where
from accel.rules.rule import Unsupported, rule
from accel.rules.special import WritesInto


def _wide(value: Any, like: Any) -> Any:
    """A value broadcast to an array's shape, leading axes of length 1 dropped, in its dtype."""
    value = cast(value, like.dtype)
    extra = value.ndim - like.ndim
    return jnp.broadcast_to(value.reshape(value.shape[extra:]) if extra > 0 else value, like.shape)


@rule(np.copyto, "dst src where", special=WritesInto())
def copyto(*, dst: Array, src: Array | float, where: Array | bool = True) -> Any:
    from accel.rules.lowering import where as choose

    return choose(jnp.broadcast_to(jnp.asarray(where), dst.shape), _wide(src, dst), dst)


def _cycled(values: Any, like: Any, positions: Any) -> Any:
    """values[positions], over and over, in the array's dtype."""
    values = cast(values, like.dtype).reshape(-1)
    if not values.shape[0]:
        raise Unsupported("rule.parameter", "no values to put")
    return values[positions % values.shape[0]]


@rule(np.putmask, "a mask values", special=WritesInto())
def putmask(*, a: Array, mask: Array, values: Array | float) -> Any:
    """Values by the position of the element."""
    mask = jnp.broadcast_to(mask, a.shape).astype(bool)
    return where(mask, _cycled(values, a, jnp.arange(a.size).reshape(a.shape)), a)


@rule(np.place, "arr mask vals", special=WritesInto())
def place(*, arr: Array, mask: Array, vals: Array | float) -> Any:
    """Values by the position among the chosen ones."""
    chosen = mask.reshape(-1) != 0
    order = jnp.maximum(jnp.cumsum(chosen) - 1, 0)
    return where(chosen, _cycled(vals, arr, order), arr.reshape(-1)).reshape(arr.shape)


def _put_holds(
    *,
    a: Array | NDArray[Any],
    ind: Array | NDArray[Any] | float,
    v: Array | NDArray[Any] | float,
    shape: tuple[Any, ...],
    mode: str = "raise",
) -> Any:
    return mode != "raise" or in_bounds(ind, a.size)


@rule(np.put, "a ind v | mode", special=WritesInto(), holds=_put_holds)
def put(*, a: Any, ind: Any, v: Any, mode: str = "raise") -> Any:
    """One after the other: of values for the same place the last one stays."""
    ind = jnp.asarray(ind).reshape(-1).astype(np.int64)
    if not ind.shape[0]:
        return a
    if mode == "wrap":
        ind = ind % a.size
    elif mode == "clip":
        ind = jnp.clip(ind, 0, a.size - 1)
    return _store_in_order(a.reshape(-1), ind, _cycled(v, a, jnp.arange(ind.shape[0]))).reshape(a.shape)


def _store_in_order(flat: Any, positions: Any, values: Any) -> Any:
    """flat[positions] = values, the last one winning where a position repeats: XLA leaves that open."""
    positions = from_start(positions, flat.shape[0])
    turn = jnp.arange(positions.shape[0])
    last = jnp.full(flat.shape[0], -1, turn.dtype).at[positions].max(turn)
    return where(last >= 0, values[jnp.maximum(last, 0)], flat)


def _along_holds(
    *,
    arr: Array | NDArray[Any],
    indices: Array | NDArray[Any],
    values: Array | NDArray[Any] | float,
    axis: int,
    shape: tuple[Any, ...],
) -> Any:
    return in_bounds(indices, arr.size if axis is None else arr.shape[axis])


@rule(np.put_along_axis, "arr indices values | axis", special=WritesInto(), holds=_along_holds)
def put_along_axis(*, arr: Any, indices: Any, values: Any, axis: Any) -> Any:
    if axis is None:
        return put_along_axis(arr=arr.reshape(-1), indices=indices, values=values, axis=0).reshape(arr.shape)
    axis, indices = axis % arr.ndim, indices.astype(np.int64)
    rest = [jnp.arange(size).reshape((-1,) + (1,) * (arr.ndim - ax - 1)) for ax, size in enumerate(arr.shape)]
    index = tuple(indices if ax == axis else rest[ax] for ax in range(arr.ndim))
    positions = jnp.arange(arr.size).reshape(arr.shape)[index]
    wide = jnp.broadcast_to(cast(values, arr.dtype), positions.shape)
    return _store_in_order(arr.reshape(-1), positions.reshape(-1), wide.reshape(-1)).reshape(arr.shape)


@rule(np.fill_diagonal, "a val | wrap", special=WritesInto())
def fill_diagonal(*, a: Array, val: Array | float, wrap: bool = False) -> Any:
    """The diagonal of the flattened array; in tall matrices it starts anew after a gap where `wrap` says so."""
    step = a.shape[1] + 1 if a.ndim == 2 else 1 + sum(int(np.prod(a.shape[:axis])) for axis in range(1, a.ndim))
    end = a.shape[1] * a.shape[1] if a.ndim == 2 and not wrap else a.size
    positions = np.arange(0, min(end, a.size), step)
    values = _cycled(val, a, jnp.arange(len(positions)))
    return a.reshape(-1).at[positions].set(values).reshape(a.shape)
