"""Indices: of triangles, diagonals and true elements, open meshes, flat and several indices; elements by indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules.columns import Rounding
from accel.rules.core import in_bounds
from accel.rules.lowering import Array, from_start, jnp, number
from accel.rules.rule import Unsupported, add_rule, rewritten, rule
from accel.rules.special import Where


def _fixed(name: str) -> Any:
    """A function of static parameters: the values are NumPy's own, made while lowering."""

    def lower(**bound: object) -> Any:
        made = getattr(np, name)(**bound)
        return tuple(map(jnp.asarray, made)) if isinstance(made, tuple) else jnp.asarray(made)

    return lower


add_rule(np.diag_indices, _fixed("diag_indices"), "| n ndim")
add_rule(np.tril_indices, _fixed("tril_indices"), "| n k m")
add_rule(np.triu_indices, _fixed("triu_indices"), "| n k m")
add_rule(np.indices, _fixed("indices"), "| dimensions dtype sparse")


@rewritten(np.diag_indices_from, "arr")
def diag_indices_from(arr: Any) -> Any:
    line = np.cumsum(np.ones_like(arr[(slice(None),) + (0,) * (arr.ndim - 1)], dtype=np.int64)) - 1
    return (line,) * arr.ndim


@rewritten(np.unravel_index, "indices | shape order")
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """By division; indices out of bounds make it raise."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    total = int(np.prod(sizes))
    if not bool(np.all((indices >= 0) & (indices < total))):
        raise Unsupported("rule.parameter", "indices out of bounds")
    positions, axes = [], range(len(sizes))
    for axis in reversed(axes) if order == "C" else axes:
        positions.append(np.remainder(indices, sizes[axis]).astype(np.int64))
        indices = np.floor_divide(indices, sizes[axis])
    return tuple(reversed(positions)) if order == "C" else tuple(positions)


@rewritten(np.ravel_multi_index, "*multi_index | dims mode order")
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    sizes = (dims,) if isinstance(dims, int) else tuple(dims)
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    axes, total = range(len(sizes)), np.int64(0)
    for axis in axes if order == "C" else reversed(axes):
        total = total * sizes[axis] + _moded(multi_index[axis], sizes[axis], modes[axis])
    return total


def _moded(index: Any, size: int, mode: str) -> Any:
    """Whole numbers within bounds; some that are not make it raise."""
    index = (index if hasattr(index, "dtype") else np.asarray(index)).astype(np.int64)
    if mode == "raise" and not bool(np.all((index >= 0) & (index < size))):
        raise Unsupported("rule.parameter", "indices out of bounds")
    return np.remainder(index, size) if mode == "wrap" else np.clip(index, 0, size - 1) if mode == "clip" else index


@rewritten(np.ix_, "*args")
def ix_(args: tuple[Any, ...]) -> Any:
    """Vectors along axes of their own; a list is as good as a vector. How many elements a mask has is an outcome."""
    count, made = len(args), []
    for axis, vector in enumerate(args):
        if isinstance(vector, (list, tuple)):
            vector = np.ix_(vector)[0]
        if vector.ndim != 1:
            raise Unsupported("rule.parameter", "numpy.ix_ of arrays of several axes")
        if vector.dtype == np.bool_:
            vector = np.nonzero(vector)[0]
        made.append(vector.reshape((1,) * axis + (-1,) + (1,) * (count - axis - 1)))
    return tuple(made)


for _function, _of_size in ((np.tril_indices_from, np.tril_indices), (np.triu_indices_from, np.triu_indices)):
    rewritten(_function, "arr | k")(lambda arr, k=0, of_size=_of_size: of_size(arr.shape[0], k, arr.shape[1]))


# -- of true elements -------------------------------------------------------------------------------------------------

add_rule(np.nonzero, None, "a", special=Where())


@rewritten(np.argwhere, "a")
def argwhere(a: Any) -> Any:
    if not np.ndim(a):
        raise Unsupported("rule.parameter", "numpy.argwhere of a single value")
    return np.stack(np.nonzero(a), axis=-1)


rewritten(np.flatnonzero, "a")(lambda a: np.nonzero(np.ravel(a))[0])


@rewritten(np.extract, "condition arr")
def extract(condition: Any, arr: Any) -> Any:
    """By the mask; selections that depend on values stay selections."""
    return compress(np.ravel(np.not_equal(condition, False)), arr)


@rewritten(np.compress, "condition a | axis")
def compress(condition: Any, a: Any, axis: Any = None) -> Any:
    """By indices where the text gives the condition, else by the mask."""
    source, axis = (np.ravel(a), 0) if axis is None else (a, axis % a.ndim)
    key = (slice(None),) * axis
    if isinstance(condition, (list, tuple)):
        return source[(*key, [i for i, chosen in enumerate(condition) if chosen])]
    if len(condition) > source.shape[axis]:
        raise Unsupported("rule.parameter", "a condition that is longer than what it selects from")
    if len(condition) < source.shape[axis]:
        source = source[(*key, slice(0, len(condition)))]
    return source[(*key, np.not_equal(condition, False))]


# -- elements by their indices ----------------------------------------------------------------------------------------


def _indices_hold(
    *,
    a: Array | NDArray[Any],
    indices: Array | NDArray[Any] | float,
    shape: tuple[int, ...],
    axis: int | None = None,
    mode: str = "raise",
) -> Any:
    if axis is not None and not a.ndim:
        return False
    size = a.size if axis is None else a.shape[axis]
    return mode != "raise" or in_bounds(indices, size)


@rule(np.take, "a indices | axis mode", holds=_indices_hold, rounding=Rounding.EXACT)
def take(*, a: Array, indices: Array | float, axis: int | None = None, mode: str = "raise") -> Any:
    """Within bounds, as the replay checks; or wrapped or clipped, as `mode` says."""
    a, axis = (a.reshape(-1), 0) if axis is None else (a, axis % a.ndim)
    indices, size = jnp.asarray(indices).astype(np.int64), a.shape[axis]
    if mode == "wrap":
        indices = indices % number(size, indices)
    elif mode == "raise":
        indices = from_start(indices, size)
    # JAX's mode is of no account: the indices are within bounds by now, but for those to be clipped
    return jnp.take(a, indices, axis=axis, mode="clip")


def _along_holds(
    *, arr: Array | NDArray[Any], indices: Array | NDArray[Any], shape: tuple[int, ...], axis: int | None = -1
) -> Any:
    return in_bounds(indices, arr.size if axis is None else arr.shape[axis])


@rule(np.take_along_axis, "arr indices | axis", holds=_along_holds)
def take_along_axis(*, arr: Any, indices: Any, axis: Any = -1) -> Any:
    indices = from_start(indices.astype(np.int64), arr.size if axis is None else arr.shape[axis])
    return jnp.take_along_axis(arr, indices, axis=axis, mode="promise_in_bounds")
