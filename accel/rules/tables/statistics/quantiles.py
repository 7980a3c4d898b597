"""Medians and quantiles.

Few elements are ranked by comparing each with each. Others are sorted, by NumPy where the program may call it
(accel.rules.order).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules import order
from accel.rules.core import cast
from accel.rules.lowering import Array, axes_of, jnp, lax, number, where
from accel.rules.rule import Unsupported, add_rule
from accel.rules.tables.statistics.reductions import real_only
from accel.rules.tables.statistics.sorting import from_keys, keys_of
from accel.rules.tracing import current

FEW = 12
"""Maximum elements along an axis that are ranked by comparing each with each. Guess."""


def _flat(x: Any, axis: Any, keepdims: bool) -> tuple[Any, tuple[int, ...]]:
    """`x` with the reduced axes made one, in front; and the shape of a reduction over them."""
    axes = axes_of(axis, x.ndim)
    others = tuple(ax for ax in range(x.ndim) if ax not in axes)
    rest = tuple(x.shape[ax] for ax in others)
    size = int(np.prod([x.shape[ax] for ax in axes], dtype=np.int64))
    shape = tuple(1 if ax in axes else x.shape[ax] for ax in range(x.ndim)) if keepdims else rest
    moved = x if axes + others == tuple(range(x.ndim)) else x.transpose(axes + others)
    return moved.reshape((size, *rest)), shape


# -- selection --------------------------------------------------------------------------------------------------------


def _two_of(flat: Array, keys: Array, k: Array) -> tuple[Any, Any]:
    """Select as `_by_selection` does, by NumPy or with derivatives where these are asked for."""
    if flat.ndim == 1 and flat.dtype.kind == "f" and order.are_called(flat):
        # the largest key, of NaN and of what does not count, stands for no element that is asked for
        largest = number(np.iinfo(keys.dtype).max, keys)
        counting = where(keys == largest, number(np.inf, flat), flat)
        return order.two_of(counting, k, lambda x, k: _by_selection(x, keys_of(x), k))
    if not current().has_derivatives or flat.dtype.kind != "f":
        return _by_selection(flat, keys, k)
    ranked = jnp.argsort(keys, axis=0)
    k = jnp.broadcast_to(k, (k.shape[0], *keys.shape[1:]))
    places = (jnp.take_along_axis(ranked, jnp.minimum(each, keys.shape[0] - 1), 0) for each in (k, k + 1))
    low, high = (jnp.take_along_axis(flat, place, 0) for place in places)
    return low, high


def _by_selection(flat: Array, keys: Array, k: Array) -> tuple[Any, Any]:
    """The k-th smallest values (from 0) along the first axis, and those after them (the same at the end).

    keys: (n, *rest), n > 0. k: (m, 1, ..., 1) or (m, *rest). Each result: (m, *rest).
    """
    k = jnp.broadcast_to(k, (k.shape[0], *keys.shape[1:]))
    later = jnp.minimum(k + 1, keys.shape[0] - 1)
    if keys.shape[0] <= FEW:
        low, high = _by_rank(keys, k, later)
    else:
        ordered = order.in_order(keys, 0, lambda keys: lax.sort(keys, dimension=0))
        low, high = (jnp.take_along_axis(ordered, place, 0) for place in (k, later))
    return from_keys(low, flat.dtype), from_keys(high, flat.dtype)


def _count(condition: Any) -> Any:
    return condition.sum(axis=0, dtype=np.int32)


def _by_rank(keys: Array, *places: Array) -> list[Any]:
    """By each key's rank: how many keys are smaller, or equal and before it."""
    size = keys.shape[0]
    ranks = [
        sum((keys[j] <= keys[i]).astype(np.int32) for j in range(i))
        + sum((keys[j] < keys[i]).astype(np.int32) for j in range(i + 1, size))
        + jnp.zeros(keys.shape[1:], np.int32)
        for i in range(size)
    ]

    def at(position: Array) -> Any:
        chosen = jnp.broadcast_to(keys[0], position.shape)
        for i in range(1, size):
            chosen = where(ranks[i] == position, keys[i], chosen)
        return chosen

    return [at(place) for place in places]


# -- median and quantiles ---------------------------------------------------------------------------------------------


def _median(*, a: Any, mask: Any = None, axis: Any = None, keepdims: bool = False, skip_nan: bool = False) -> Any:
    """The mean of the one or two values in the middle; NaN where there is one, or no value at all."""
    dtype = a.dtype if real_only(a).dtype.kind == "f" else np.dtype(float)
    flat, shape = _flat(a, axis, keepdims)
    if flat.shape[0] == 0:
        return jnp.full(shape, np.nan, dtype)
    keys, count, bad = _counted(flat, _selected(mask, a, axis), skip_nan)
    low, high = _two_of(flat, keys, jnp.maximum((count - 1) // 2, 0)[None])
    low, high = (cast(part[0], dtype) for part in (low, high))
    # a sum starts at 0: the mean of negative zeros is 0
    middle = where(count % 2 == 1, low, _mean_of(low, high)) + number(0, low)
    return where(bad, number(np.nan, middle), middle).reshape(shape)


def _mean_of(low: Array, high: Array) -> Any:
    if low.dtype == np.float16:  # NumPy sums halves in single precision
        return ((cast(low, np.dtype("f")) + cast(high, np.dtype("f"))) / 2).astype(np.float16)
    return (low + high) / 2


def _selected(mask: Any, a: Any, axis: object) -> Any:
    """A mask of rows, shaped like the flattened array."""
    if mask is None:
        return None
    wide = jnp.broadcast_to(mask.reshape(mask.shape + (1,) * (a.ndim - 1)), a.shape)
    return _flat(wide, axis, False)[0]


def _counted(flat: Any, chosen: Any, skip_nan: bool) -> tuple[Any, Any, Any]:
    """Keys with what does not count made largest, how many count, and where the result is NaN."""
    keys = keys_of(flat)
    missing = flat != flat
    nan = missing.any(axis=0) if flat.dtype.kind == "f" else jnp.zeros(flat.shape[1:], bool)
    count = jnp.full(flat.shape[1:], flat.shape[0], np.int32)
    if chosen is not None:
        keys = where(chosen, keys, number(np.iinfo(keys.dtype).max, keys))
        count, nan = _count(chosen), (missing & chosen).any(axis=0)
    if skip_nan and flat.dtype.kind == "f":
        count = _count(~missing)
        nan = jnp.zeros(flat.shape[1:], bool)
    return keys, count, nan | (count == 0)


def _nanmedian(**bound: Any) -> Any:
    return _median(**bound, skip_nan=True)


add_rule(np.median, _median, "a | axis keepdims", masked=_median, work=20.0)
add_rule(np.nanmedian, _nanmedian, "a | axis keepdims", work=20.0)


def _bounded(alpha: float, beta: float) -> Callable[[Any, Any], Any]:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


VIRTUAL: dict[str, Callable[[Any, Any], Any]] = {
    "linear": lambda n, q: (n - 1) * q,
    "hazen": _bounded(0.5, 0.5),
    "weibull": _bounded(0.0, 0.0),
    "median_unbiased": _bounded(1 / 3, 1 / 3),
    "normal_unbiased": _bounded(3 / 8, 3 / 8),
    "interpolated_inverted_cdf": _bounded(0.0, 1.0),
    "lower": lambda n, q: _xp(n).floor((n - 1) * q),
    "higher": lambda n, q: _xp(n).ceil((n - 1) * q),
    "nearest": lambda n, q: _xp(n).round((n - 1) * q),
    "midpoint": lambda n, q: 0.5 * (_xp(n).floor((n - 1) * q) + _xp(n).ceil((n - 1) * q)),
}
"""Where each method places the quantile q among n sorted values, from 0 (the formulas of R. J. Hyndman and Y. Fan,
"Sample Quantiles in Statistical Packages", The American Statistician 50 (1996) 361)."""


def _xp(x: object) -> Any:
    return np if isinstance(x, (int, np.ndarray, np.generic)) else jnp


def _quantiles(scale: float, skip_nan: bool) -> Callable[..., Any]:
    def lower(
        *,
        a: Array,
        q: np.generic | float | list[Any],
        mask: Array | None = None,
        axis: int | None = None,
        method: str = "linear",
        keepdims: bool = False,
    ) -> Any:
        if method not in VIRTUAL:
            raise Unsupported("rule.parameter", f"method={method!r}")
        weak = type(q) in (int, float)
        if getattr(q, "dtype", np.dtype(float)) in (np.float16, np.float32):
            raise Unsupported("rule.parameter", "quantiles in single precision, in which NumPy computes positions")
        asked = np.true_divide(q, scale)
        flat, shape = _flat(a, axis, keepdims)
        whole = scale == 1 and method == "linear" and np.asarray(q).dtype.kind in "biu"
        exact = whole or method in ("lower", "higher", "nearest")
        dtype = flat.dtype if exact else _quantile_dtype(flat.dtype, weak)
        if flat.dtype.kind == "f" and dtype != flat.dtype and (skip_nan or not asked.shape + shape):
            raise Unsupported("rule.parameter", "a dtype that depends on whether values are NaN")
        if a.size == 0:
            raise Unsupported("rule.parameter", "a quantile of no values")
        keys, count, bad = _counted(flat, _selected(mask, a, axis), skip_nan)
        size = count if mask is not None or (skip_nan and flat.dtype.kind == "f") else flat.shape[0]
        position = _positions(method, asked.reshape(-1), size, flat.ndim)
        last = count - 1
        previous = jnp.clip(jnp.floor(position), 0, jnp.maximum(last, 0).astype(float))
        low, high = _two_of(flat, keys, previous.astype(np.int32))
        beyond = position >= last
        # a position before the first or after the last value takes that value, whatever comes behind it
        high = where((position >= 0) & ~beyond, high, low)
        if method != "midpoint":  # NumPy counts from -1 beyond the last value: only a zero's sign shows it
            previous = where(beyond, number(-1, previous), previous)
        result = low if exact else _lerp(low, high, position - previous, dtype)
        result = where(bad, number(np.nan, result), result) if dtype.kind == "f" else result
        return result.reshape(asked.shape + shape)

    return lower


def _positions(method: str, q: NDArray[Any], size: Array | int, ndim: int) -> Any:
    """Positions of the quantiles among the sorted values. size: number of values; an array for a selection."""
    wide = (len(q),) + (1,) * (ndim - 1)
    if not isinstance(size, int):
        return VIRTUAL[method](size.astype(float)[None], jnp.asarray(q).reshape(wide))
    return jnp.asarray(VIRTUAL[method](size, q), float).reshape(wide)


def _quantile_dtype(dtype: np.dtype[Any], weak: bool) -> Any:
    if dtype.kind != "f":
        return np.dtype(float)
    return dtype if weak else np.result_type(dtype, float)


def _lerp(low: Array, high: Array, t: Array, dtype: Any) -> Any:
    """NumPy's own: from the nearer end, so that both ends are exact; the step is taken in the data's dtype.

    t: in double precision, in which NumPy takes it from 1. dtype: of the result.
    """
    step = cast(low != high if low.dtype.kind == "b" else high - low, dtype)
    low, high = cast(low, dtype), cast(high, dtype)
    return where(t >= 0.5, high - step * cast(1 - t, dtype), low + step * cast(t, dtype))


for _function, _scale in ((np.percentile, 100), (np.quantile, 1)):
    _lower = _quantiles(_scale, False)
    add_rule(_function, _lower, "a | q axis method keepdims", masked=_lower, needs_elements=True, work=20.0)
for _function, _scale in ((np.nanpercentile, 100), (np.nanquantile, 1)):
    add_rule(_function, _quantiles(_scale, True), "a | q axis method keepdims", work=20.0)
