"""SciPy's boundary rules: one table for indices, one for coordinates.

A filter sees an array extended beyond its edges; interpolation folds a coordinate back into the array first. Names are
SciPy's, and so are the two meanings of "wrap": filters repeat the array with period n, interpolation with period n - 1
(its "grid-wrap" has period n).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

Index = NDArray[np.int64]

# -- indices -----------------------------------------------------------------------------------------------------------


def _mirrored(i: Index, n: int) -> Index:
    period = max(2 * n - 2, 1)
    i = np.mod(i, period)
    return np.minimum(i, period - i) if n > 1 else np.zeros_like(i)


def _reflected(i: Index, n: int) -> Index:
    i = np.mod(i, 2 * n)
    return np.minimum(i, 2 * n - 1 - i)


# Where index i of an extended axis of length n reads; -1 stands for `cval`.
INDEX_RULES: dict[str, Callable[[Index, int], Index]] = {
    "nearest": lambda i, n: np.clip(i, 0, n - 1),
    "mirror": _mirrored,
    "reflect": _reflected,
    "periodic": lambda i, n: np.mod(i, n),
    "constant": lambda i, n: np.where((i < 0) | (i >= n), -1, i),
}

# Filter mode -> index rule.
FILTER_RULES = {
    "nearest": "nearest",
    "wrap": "periodic",
    "grid-wrap": "periodic",
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "mirror": "mirror",
    "constant": "constant",
    "grid-constant": "constant",
}

# Interpolation mode -> index rule of the taps that lie beyond the edge. "wrap" and "constant" read the mirror image
# there, as in SciPy, whose spline coefficients assume that as well (see `spline.PREFILTER_RULES`).
TAP_RULES = {
    "nearest": "nearest",
    "wrap": "mirror",
    "grid-wrap": "periodic",
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "mirror": "mirror",
    "constant": "mirror",
    "grid-constant": "constant",
}


def rule_of(mode: object, table: dict[str, str]) -> str:
    """The rule for `mode`; RuntimeError, as in SciPy, if there is none."""
    if not isinstance(mode, str) or mode not in table:
        raise RuntimeError("boundary mode not supported")
    return table[mode]


@lru_cache(maxsize=512)
def extended(n: int, before: int, after: int, rule: str) -> Index:
    """Source index of each position of an axis of length n extended at both ends; shape (before + n + after,)."""
    index = INDEX_RULES[rule](np.arange(-before, n + after), n)
    index.setflags(write=False)
    return index


def take(x: Array, index: Index | Array, axis: int) -> Array:
    """x[..., index, ...] along `axis` for a one-dimensional index known to be in bounds (no clamping is emitted)."""
    shape = list(x.shape)
    shape[axis] = 1
    offset = tuple(a for a in range(x.ndim) if a != axis)
    dims = lax.GatherDimensionNumbers(offset_dims=offset, collapsed_slice_dims=(axis,), start_index_map=(axis,))
    start = jnp.asarray(index, jnp.int32)[:, None]
    return lax.gather(x, start, dims, tuple(shape), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def _edge(x: Array, index: Index, axis: int) -> Array:
    """x[..., index, ...] for a short index that mostly runs straight up or down: then without a gather."""
    steps = set(np.diff(index).tolist())
    if len(index) and steps <= {1}:
        return lax.slice_in_dim(x, index[0], index[-1] + 1, axis=axis)
    if steps == {-1}:
        return lax.rev(lax.slice_in_dim(x, index[-1], index[0] + 1, axis=axis), (axis,))
    return take(x, index, axis)


def _put(whole: Array, part: Array, axis: int, at: int) -> Array:
    start = [0] * whole.ndim
    start[axis] = at
    return lax.dynamic_update_slice(whole, part, start)


def pad(x: Array, axis: int, before: int, after: int, rule: str, cval: Any = 0.0) -> Array:
    """`x` extended along `axis` by an index rule. Shape grows by before + after; dtype stays.

    How it is done was measured on XLA:CPU. A padded array that fuses into its readers is recomputed for each of them,
    branches included. So leading axes gather whole rows, which is cheap either way, and the others end in an in-place
    update, which does not fuse: a Gaussian on 121x240 takes 0.07 ms instead of 0.11 to 0.25.
    """
    n = x.shape[axis]
    if not before and not after:
        return x
    if rule == "constant":
        shape = list(x.shape)
        shape[axis] = before + n + after
        return _put(jnp.full(shape, cval, x.dtype), x, axis, before)
    index = extended(n, before, after, rule)
    if axis < x.ndim - 1:
        return take(x, index, axis)
    head, tail = _edge(x, index[:before], axis), _edge(x, index[before + n :], axis)
    whole = lax.concatenate([head, x, tail], axis)
    return _put(whole, head, axis, 0) if before else _put(whole, tail, axis, n)


def window(x: Array, axis: int, start: int, length: int) -> Array:
    """`length` consecutive entries of `axis`, from `start`."""
    return lax.slice_in_dim(x, start, start + length, axis=axis)


# -- coordinates -------------------------------------------------------------------------------------------------------
# Each rule takes a = |c|, where c < 0, and the length n > 1; it leaves 0 .. n-1 alone. `xp` is numpy for coordinates
# known while tracing, jax.numpy otherwise.


def _remainder(a: Any, period: int, xp: Any) -> Any:
    """a - period * floor(a / period) for a >= 0, exactly.

    XLA makes a division by a constant a product, which is off at some multiples. So the product is made here, with a
    reciprocal that is too small: the quotient is right or one short, and one correction does.
    """
    reciprocal = float(np.nextafter(np.nextafter(1.0 / period, 0.0), 0.0))
    rest = a - period * xp.floor(a * reciprocal)
    return rest - xp.where(rest >= period, float(period), 0.0)


def _fold_mirror(a: Array | NDArray[Any], negative: object, n: int, xp: Any) -> Any:
    period = 2 * n - 2
    rest = _remainder(a, period, xp)
    return xp.where(rest >= xp.where(negative, n - 1, n), period - rest, rest)


def _fold_reflect(a: Array | NDArray[Any], negative: object, n: int, xp: Any) -> Any:
    period = 2 * n
    rest = _remainder(a, period, xp)
    # The 1e-15 is SciPy's: next to 0 the place would come out as -1, which stands for outside.
    left = xp.where(rest > n, period - rest, xp.where(rest < 1e-15, 1e-15, rest) - 1)
    return xp.where(negative, left, xp.where(rest >= n, period - rest - 1, rest))


def _fold_wrap(a: object, negative: object, n: int, xp: Any) -> Any:
    rest = _remainder(a, n - 1, xp)
    return xp.where(negative, (n - 1) - rest, xp.where(a == n - 1, a, rest))


def _fold_grid_wrap(a: Any, negative: Any, n: int, xp: Any) -> Any:
    shifted = xp.where(negative, a - 1, a)
    rest = xp.where(shifted < 0, shifted, _remainder(shifted, n, xp))
    return xp.where(negative, (n - 1) - rest, rest)


_FOLDS: dict[str, Callable[[Any, Any, int, Any], Any]] = {
    "mirror": _fold_mirror,
    "reflect": _fold_reflect,
    "grid-mirror": _fold_reflect,
    "wrap": _fold_wrap,
    "grid-wrap": _fold_grid_wrap,
}


def fold(c: Any, n: int, mode: str, xp: Any = jnp) -> Any:
    """Coordinates `c` (any shape, working dtype) of an axis of length n, mapped into it by SciPy's rule for `mode`.

    The result lies in (-1, n). Under "constant" a coordinate outside becomes -1; "nearest" and "grid-constant" are
    returned as they are, since their taps are mapped one by one. NaN stays NaN.
    """
    if mode in ("nearest", "grid-constant"):
        return c
    if mode == "constant" or n <= 1:
        return xp.where((c < 0) | (c > n - 1), -1.0 if mode == "constant" else 0.0, c)
    return _FOLDS[mode](xp.abs(c), c < 0, n, xp)
