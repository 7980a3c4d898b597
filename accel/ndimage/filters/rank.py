"""The order-statistic filters of `scipy.ndimage`: minimum, maximum, median, rank, percentile.

Every function takes a real `input` of any shape (complex raises TypeError) and returns the same shape in the dtype of
`output`, or the input's. Boxes run separably for minimum and maximum; a rank goes through a selection network of
minima and maxima, which vectorises, up to `LARGEST_NETWORK` entries, and through a sort beyond.

Known differences: a NaN in a window makes that point NaN, where SciPy's result depends on the order of its comparisons;
on a line shorter than its window SciPy's one-dimensional rank filter reads outside its memory, this one does not.
Differentiable almost everywhere.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import ArrayLike, NDArray

from accel.ndimage import arguments, casting, kernels
from accel.ndimage.boundary import FILTER_RULES, rule_of

LARGEST_NETWORK = 100  # entries; 9x9 compiles in 0.6 s and runs 6 times faster than SciPy, a sort 6 times slower
Combine = Callable[[Array, Array], Array]


def _require_real(input: Array) -> None:
    if jnp.iscomplexobj(input):
        raise TypeError("Complex type not supported")


def _comparable(input: Array, rule: str, cval: object) -> Array:
    """`input` in a dtype whose comparisons give SciPy's result, which compares doubles.

    Floats up to double are compared as they are (rounding is monotone); so are small integers, unless a `cval` that is
    no such integer enters.
    """
    dtype = np.dtype(input.dtype)
    if dtype.kind == "f":
        return input
    small = dtype.itemsize <= 4 and dtype.kind in "iu"
    if small and (rule != "constant" or (isinstance(cval, float) and cval == np.clip(round(cval), *_range(dtype)))):
        return input
    return casting.to_working(input)


def _range(dtype: np.dtype) -> tuple[int, int]:
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _stored(x: Array, dtype: np.dtype) -> Array:
    if x.dtype == dtype:
        return x
    return casting.store(x, dtype) if x.dtype.kind == "f" else x.astype(dtype)


def _checked(input: Array, dtype: np.dtype) -> None:
    casting.require_storable(input.dtype)
    casting.require_storable(dtype)


def _extreme_filter1d(
    input: Array, size: int, axis: int, output: Any, mode: str, cval: object, origin: int, combine: Combine
) -> Array:
    _require_real(input)
    axis = normalize_axis_index(axis, input.ndim)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    dtype = casting.result_dtype(output, input.dtype)
    reach = arguments.check_window(operator.index(size), origin)
    rule, cval = rule_of(mode, FILTER_RULES), arguments.fill_value(cval)
    _checked(input, dtype)
    if input.size == 0:
        return jnp.zeros(input.shape, dtype)
    x = _comparable(input, rule, cval)
    return _stored(kernels.reduce_window_1d(x, size, axis, reach, rule, cval, combine), dtype)


def minimum_filter1d(
    input: Array,
    size: int,
    axis: int = -1,
    output: object = None,
    mode: str = "reflect",
    cval: complex = 0.0,
    origin: int = 0,
) -> Array:
    """Minimum over a window of `size` cells, at least 1, along one axis. See `scipy.ndimage.minimum_filter1d`."""
    return _extreme_filter1d(input, size, axis, output, mode, cval, origin, jnp.minimum)


def maximum_filter1d(
    input: Array,
    size: int,
    axis: int = -1,
    output: object = None,
    mode: str = "reflect",
    cval: complex = 0.0,
    origin: int = 0,
) -> Array:
    """Maximum over a window of `size` cells, at least 1, along one axis. See `scipy.ndimage.maximum_filter1d`."""
    return _extreme_filter1d(input, size, axis, output, mode, cval, origin, jnp.maximum)


def _windows(
    input: Array, footprint: NDArray[np.bool_], origins: Sequence[int], mode: Any, cval: object
) -> list[Array]:
    """One shifted copy of `input` per true cell of the footprint (same number of axes)."""
    reach = [arguments.check_window(n, o) for n, o in zip(footprint.shape, origins, strict=True)]
    rule, cval = rule_of(mode, FILTER_RULES), arguments.fill_value(cval)
    padded = kernels.pad_all(_comparable(input, rule, cval), reach, footprint.shape, rule, cval)
    return [kernels.shifted(padded, index, input.shape) for index in zip(*np.nonzero(footprint), strict=True)]


def _fit_footprint(footprint: NDArray[np.bool_], axes: tuple[int, ...], ndim: int) -> NDArray[np.bool_]:
    footprint = arguments.expand_kernel(footprint, axes, ndim, "footprint")
    if sum(n > 0 for n in footprint.shape) != ndim:
        raise RuntimeError(f"footprint.ndim ({footprint.ndim}) must match len(axes) ({len(axes)})")
    return footprint


def _extreme_filter(
    input: Array,
    size: Any,
    footprint: Any,
    output: Any,
    mode: object,
    cval: object,
    origin: object,
    axes: Any,
    combine: Combine,
) -> Array:
    if size is not None and footprint is not None:
        warnings.warn("ignoring size because footprint is set", UserWarning, stacklevel=3)
    if footprint is None and size is None:
        raise RuntimeError("no footprint provided")
    if footprint is not None:
        footprint = arguments.as_footprint(footprint)
        if not footprint.any():
            raise ValueError("All-zero footprint is not supported.")
        if footprint.all():  # a box: one axis after the other
            size, footprint = footprint.shape, None
    _require_real(input)
    dtype = casting.result_dtype(output, input.dtype)
    axes = arguments.check_axes(axes, input.ndim)
    if footprint is None:
        return _separable_extreme(input, size, axes, dtype, mode, cval, origin, combine)
    footprint = _fit_footprint(footprint, axes, input.ndim)
    origins = arguments.spread(arguments.per_axis(origin, len(axes)), axes, input.ndim, 0)
    for o, n in zip(origins, footprint.shape, strict=True):
        arguments.check_window(n, o)
    if arguments.is_sequence_of_modes(mode):
        raise RuntimeError("A sequence of modes is not supported for non-separable footprints")
    _checked(input, dtype)
    if input.size == 0:
        return jnp.zeros(input.shape, dtype)
    pieces = _windows(input, footprint, origins, mode, _element_cval(input, cval))
    total = pieces[0]
    for piece in pieces[1:]:
        total = combine(total, piece)
    return _stored(total, dtype)


def _separable_extreme(
    input: Array,
    size: Any,
    axes: Sequence[int],
    dtype: np.dtype,
    mode: object,
    cval: object,
    origin: object,
    combine: Combine,
) -> Array:
    columns = [arguments.per_axis(value, len(axes)) for value in (size, origin, mode)]
    x, between = input, casting.between_passes(dtype)
    for axis, one_size, one_origin, one_mode in zip(axes, *columns, strict=True):
        if one_size > 1:
            x = _extreme_filter1d(x, int(one_size), axis, between, one_mode, cval, one_origin, combine)
    return _stored(x, dtype)


def minimum_filter(
    input: Array,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
    *,
    axes: Any = None,
) -> Array:
    """Minimum over a box of `size`, or over the true cells of `footprint`. See `scipy.ndimage.minimum_filter`.

    Raises RuntimeError where neither is given, ValueError for a footprint without true cells.
    """
    return _extreme_filter(input, size, footprint, output, mode, cval, origin, axes, jnp.minimum)


def maximum_filter(
    input: Array,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
    *,
    axes: Any = None,
) -> Array:
    """Maximum over a box of `size`, or over the true cells of `footprint`. See `scipy.ndimage.maximum_filter`.

    Raises RuntimeError where neither is given, ValueError for a footprint without true cells.
    """
    return _extreme_filter(input, size, footprint, output, mode, cval, origin, axes, jnp.maximum)


# -- ranks -------------------------------------------------------------------------------------------------------------


def _merge_sort_pairs(n: int) -> list[tuple[int, int]]:
    """Comparators that sort n entries: Batcher's merge exchange (Knuth, TAOCP 3, section 5.2.2, algorithm M)."""
    pairs: list[tuple[int, int]] = []
    if n < 2:
        return pairs
    top = 1 << ((n - 1).bit_length() - 1)
    p = top
    while p:
        q, r, d = top, 0, p
        while True:
            pairs += [(i, i + d) for i in range(n - d) if i & p == r]
            if q == p:
                break
            q, r, d = q >> 1, p, q - p
        p >>= 1
    return pairs


@lru_cache(maxsize=256)
def selection_network(n: int, rank: int) -> tuple[tuple[int, int, bool, bool], ...]:
    """Steps (i, j, keep_min, keep_max) after which entry `rank` of n is the rank-th smallest.

    The sorting network, without the halves of comparators that this entry does not depend on.
    """
    needed, steps = {rank}, []
    for i, j in reversed(_merge_sort_pairs(n)):  # backwards: what comes later says which entries are needed
        if i in needed or j in needed:
            steps.append((i, j, i in needed, j in needed))
            needed |= {i, j}
    return tuple(reversed(steps))


def _select(pieces: list[Array], rank: int) -> Array:
    if len(pieces) > LARGEST_NETWORK:
        return jnp.sort(jnp.stack(pieces), axis=0)[rank]
    values = list(pieces)
    for i, j, keep_min, keep_max in selection_network(len(values), rank):
        a, b = values[i], values[j]
        if keep_min:
            values[i] = jnp.minimum(a, b)
        if keep_max:
            values[j] = jnp.maximum(a, b)
    return values[rank]


def _rank_filter(
    input: Array,
    rank_of: Callable[[int], int],
    size: Any,
    footprint: Any,
    output: Any,
    mode: Any,
    cval: object,
    origin: object,
    axes: Any,
) -> Array:
    """rank_of(number of entries) gives the rank to select; a negative one counts from the largest."""
    if size is not None and footprint is not None:
        warnings.warn("ignoring size because footprint is set", UserWarning, stacklevel=3)
    _require_real(input)
    ndim = input.ndim
    axes = arguments.check_axes(axes, ndim)
    if footprint is None:
        if size is None:
            raise RuntimeError("no footprint or filter size provided")
        footprint = np.ones(arguments.per_axis(size, len(axes)), dtype=bool)
    footprint = _fit_footprint(arguments.as_footprint(footprint), axes, ndim)
    origins = arguments.spread(arguments.per_axis(origin, len(axes)), axes, ndim, 0)
    if arguments.is_sequence_of_modes(mode):
        mode = arguments.spread(arguments.per_axis(mode, len(axes)), axes, ndim, "constant")
    for o, n in zip(origins, footprint.shape, strict=True):
        arguments.check_window(n, o)
    count = int(footprint.sum())
    rank = rank_of(count)
    rank += count if rank < 0 else 0
    if not 0 <= rank < count:
        raise RuntimeError("rank not within filter footprint size")
    # As in SciPy: modes and `cval` are then treated as those filters treat them.
    if rank == 0:
        return minimum_filter(input, None, footprint, output, mode, cval, origins)
    if rank == count - 1:
        return maximum_filter(input, None, footprint, output, mode, cval, origins)
    if arguments.is_sequence_of_modes(mode):
        raise RuntimeError("A sequence of modes is not supported by non-separable rank filters")
    dtype = casting.result_dtype(output, input.dtype)
    if input.size == 0:
        return jnp.zeros(input.shape, dtype)
    if _uses_line_algorithm(input, footprint, origins):
        footprint, cval = np.ones_like(footprint), _line_cval(input, cval)
        if input.dtype == np.float16:  # in this algorithm alone SciPy takes it, as float32
            return _rank_filter(
                input.astype(np.float32), lambda _: rank, None, footprint, dtype, mode, cval, origins, None
            )
    else:
        cval = _element_cval(input, cval)
    _checked(input, dtype)
    return _stored(_select(_windows(input, footprint, origins, mode, cval), rank), dtype)


def _uses_line_algorithm(input: Array, footprint: NDArray[np.bool_], origins: Sequence[int]) -> bool:
    """Whether SciPy takes its one-dimensional algorithm, which ignores holes in the footprint."""
    return input.ndim == 1 and (input.size - ((footprint.size - 1) // 2 - origins[0]) >= 0 or input.size == 1)


def _element_cval(input: Array, cval: object) -> Any:
    """With a footprint SciPy wraps `cval` round to the input's own type; bools have a byte: -3.0 is 253, and true."""
    if input.dtype.kind not in "biu" or not isinstance(cval, int | float) or not math.isfinite(cval):
        return cval
    lowest, highest = (0, 255) if input.dtype == np.bool_ else _range(input.dtype)
    return float((int(cval) - lowest) % (highest - lowest + 1) + lowest)


def _line_cval(input: Array, cval: Any) -> Any:
    """That algorithm fills with `cval` cast to the type it runs in."""
    return float(int(cval)) if input.dtype.kind in "iub" else cval


def rank_filter(
    input: Array,
    rank: int,
    size: int | Sequence[int] | None = None,
    footprint: ArrayLike | None = None,
    output: object = None,
    mode: str | Sequence[str] = "reflect",
    cval: complex = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """The rank-th smallest entry of each window, from 0; negative ranks count from the largest.

    The window is a box of `size`, or the true cells of `footprint`. Raises RuntimeError where neither is given, and for
    a rank beyond the window. See `scipy.ndimage.rank_filter`.
    """
    index = operator.index(rank)
    return _rank_filter(input, lambda _: index, size, footprint, output, mode, cval, origin, axes)


def median_filter(
    input: Array,
    size: int | Sequence[int] | None = None,
    footprint: ArrayLike | None = None,
    output: object = None,
    mode: str | Sequence[str] = "reflect",
    cval: complex = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """The middle entry of each window, the upper of two. See `rank_filter` and `scipy.ndimage.median_filter`."""
    return _rank_filter(input, lambda count: count // 2, size, footprint, output, mode, cval, origin, axes)


def percentile_filter(
    input: Array,
    percentile: float,
    size: int | Sequence[int] | None = None,
    footprint: ArrayLike | None = None,
    output: object = None,
    mode: str | Sequence[str] = "reflect",
    cval: complex = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """The entry of each window at `percentile`, 0 to 100; -20 is 80. RuntimeError for others.

    See `rank_filter` and `scipy.ndimage.percentile_filter`.
    """
    share = percentile + 100.0 if percentile < 0 else percentile

    def rank_of(count: int) -> int:
        if not 0 <= share <= 100:
            raise RuntimeError("invalid percentile")
        return count - 1 if share == 100.0 else int(float(count) * share / 100.0)

    return _rank_filter(input, rank_of, size, footprint, output, mode, cval, origin, axes)
