"""Indices: of triangles and diagonals, open meshes, and the way between flat and several indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from accel.rules.core import every
from accel.rules.lowering import jnp
from accel.rules.rule import Unsupported, add_rule, rewritten, rule
from accel.rules.special import Indices


def _fixed(name: str) -> Any:
    """A function of static parameters: the values are NumPy's own, made while lowering."""

    def lower(**bound: Any) -> Any:
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
    places, axes = [], range(len(sizes))
    for axis in reversed(axes) if order == "C" else axes:
        places.append(np.remainder(indices, sizes[axis]).astype(np.int64))
        indices = np.floor_divide(indices, sizes[axis])
    return tuple(reversed(places)) if order == "C" else tuple(places)


def _multi_holds(*, multi_index: Any, dims: Any, shape: Any, mode: Any = "raise", order: Any = "C") -> Any:
    result: Any = True
    for part, size, one in _axes(multi_index, dims, mode):
        if one == "raise":
            result = result & every((part >= 0) & (part < size))
    return result


def _axes(multi_index: Any, dims: Any, mode: Any) -> Iterator[tuple[Any, int, str]]:
    """Indices, size and mode of each axis."""
    sizes = (dims,) if isinstance(dims, int) else tuple(dims)
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    for part, size, one in zip(multi_index, sizes, modes, strict=True):
        array = part if hasattr(part, "dtype") else np.asarray(part)
        yield array.astype(np.int64), size, one


@rule(np.ravel_multi_index, "*multi_index | dims mode order", holds=_multi_holds)
def ravel_multi_index(*, multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    pairs = [(_moded(part, size, one), size) for part, size, one in _axes(multi_index, dims, mode)]
    total = jnp.zeros((), np.int64)
    for part, size in pairs if order == "C" else reversed(pairs):
        total = total * size + part
    return total


def _moded(index: Any, size: int, mode: str) -> Any:
    if mode == "wrap":
        return index % size
    return jnp.clip(index, 0, size - 1) if mode == "clip" else index


@rewritten(np.ix_, "*args")
def ix_(args: Any) -> Any:
    """Vectors along axes of their own; a list is as good as a vector."""
    count, made = len(args), []
    for axis, vector in enumerate(args):
        if isinstance(vector, (list, tuple)):
            vector = np.ix_(vector)[0]
        if vector.dtype == np.bool_ or vector.ndim != 1:
            raise Unsupported("shape.dynamic", "numpy.ix_ of masks")
        made.append(vector.reshape((1,) * axis + (-1,) + (1,) * (count - axis - 1)))
    return tuple(made)


add_rule(np.argwhere, None, "a", special=Indices())


@rewritten(np.tril_indices_from, "arr | k")
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    return np.tril_indices(arr.shape[0], k, arr.shape[1])


@rewritten(np.triu_indices_from, "arr | k")
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    return np.triu_indices(arr.shape[0], k, arr.shape[1])
