"""`scipy.ndimage`'s filters of the smallest and the largest entry of each window.

Every function takes a real `input` of any shape (complex raises TypeError) and returns the same shape in the dtype of
`output`, or the input's. A box runs one axis after the other; another footprint
combines shifted copies.

Known difference: a NaN in a window makes that point NaN, where SciPy's result depends on the order of its comparisons.
Differentiable almost everywhere.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.lib.array_utils import normalize_axis_index

from accel.ndimage import arguments, casting, kernels
from accel.ndimage.boundary import FILTER_RULES, rule_of
from accel.ndimage.filters import windows

Combine = Callable[[Array, Array], Array]


def _extreme_filter1d(
    input: Array, size: int, axis: int, output: Any, mode: str, cval: object, origin: int, combine: Combine
) -> Array:
    windows.require_real(input)
    axis = normalize_axis_index(axis, input.ndim)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    dtype = casting.result_dtype(output, input.dtype)
    reach = arguments.check_window(operator.index(size), origin)
    rule, cval = rule_of(mode, FILTER_RULES), arguments.fill_value(cval)
    casting.require_storable(input.dtype, dtype)
    if input.size == 0:
        return jnp.zeros(input.shape, dtype)
    x = windows.comparable(input, rule, cval)
    return windows.stored(kernels.reduce_window_1d(x, size, axis, reach, rule, cval, combine), dtype)


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
    windows.require_real(input)
    dtype = casting.result_dtype(output, input.dtype)
    axes = arguments.check_axes(axes, input.ndim)
    if footprint is None:
        return _separable_extreme(input, size, axes, dtype, mode, cval, origin, combine)
    footprint = windows.fit_footprint(footprint, axes, input.ndim)
    origins = arguments.spread(arguments.per_axis(origin, len(axes)), axes, input.ndim, 0)
    for o, n in zip(origins, footprint.shape, strict=True):
        arguments.check_window(n, o)
    if arguments.is_sequence_of_modes(mode):
        raise RuntimeError("A sequence of modes is not supported for non-separable footprints")
    casting.require_storable(input.dtype, dtype)
    if input.size == 0:
        return jnp.zeros(input.shape, dtype)
    pieces = windows.shifted_copies(input, footprint, origins, mode, windows.element_cval(input, cval))
    total = pieces[0]
    for piece in pieces[1:]:
        total = combine(total, piece)
    return windows.stored(total, dtype)


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
    return windows.stored(x, dtype)


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
