"""`scipy.ndimage`'s filters of the entry with a given rank in each window: median, rank, percentile.

Every function takes a real `input` of any shape (complex raises TypeError) and returns the same shape in the dtype of
`output`, or the input's. The entry comes from a selection network of minima and maxima, which vectorises, up to
`LARGEST_NETWORK` entries, and from a sort beyond.

Known differences: a NaN in a window makes that point NaN, where SciPy's result depends on the order of its comparisons;
on a line shorter than its window SciPy's one-dimensional rank filter reads outside its memory, this one does not.
Differentiable almost everywhere.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray

from accel.ndimage import arguments, casting
from accel.ndimage.filters import windows
from accel.ndimage.filters.extremes import maximum_filter, minimum_filter

LARGEST_NETWORK = 100  # entries; 9x9 compiles in 0.6 s and runs 6 times faster than SciPy, a sort 6 times slower


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
    windows.require_real(input)
    ndim = input.ndim
    axes = arguments.check_axes(axes, ndim)
    if footprint is None:
        if size is None:
            raise RuntimeError("no footprint or filter size provided")
        footprint = np.ones(arguments.per_axis(size, len(axes)), dtype=bool)
    footprint = windows.fit_footprint(arguments.as_footprint(footprint), axes, ndim)
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
    is_whole = False
    if _uses_line_algorithm(input, footprint, origins):
        footprint, cval = np.ones_like(footprint), _line_cval(input, cval)
        if input.dtype == np.float16:  # in this algorithm alone SciPy takes it, as float32
            return _rank_filter(
                input.astype(np.float32), lambda _: rank, None, footprint, dtype, mode, cval, origins, None
            )
        is_whole = input.dtype in (np.int64, np.uint64)  # which SciPy casts to int64 there, and compares as such
        input = input.astype(np.int64) if is_whole else input
    else:
        cval = windows.element_cval(input, cval)
    casting.require_storable(input.dtype, dtype)
    pieces = windows.shifted_copies(input, footprint, origins, mode, cval, is_whole)
    return windows.stored(_select(pieces, rank), dtype)


def _uses_line_algorithm(input: Array, footprint: NDArray[np.bool_], origins: Sequence[int]) -> bool:
    """Whether SciPy takes its one-dimensional algorithm, which ignores holes in the footprint."""
    return input.ndim == 1 and (input.size - ((footprint.size - 1) // 2 - origins[0]) >= 0 or input.size == 1)


def _line_cval(input: Array, cval: Any) -> Any:
    """Cast `cval` to the type that SciPy's rank algorithm runs in."""
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
