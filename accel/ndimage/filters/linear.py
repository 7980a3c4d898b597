"""Correlation, convolution and means: the linear filters of `scipy.ndimage`, as functions of JAX arrays.

Every function takes `input` of any shape and of a bool, integer, float32 or float64 dtype. Float16 and wider floats
raise RuntimeError, as in SciPy, complex numbers NotCovered. The result has the same shape; its dtype is `output` if
given, else the input's. Arithmetic runs in float64 (float32 where the caller's JAX has 64-bit types disabled).
Parameters mean what they mean in SciPy, except that `output` is None or a dtype here: output arrays are the caller's
business.

Derivatives and Gaussians, made of these, stand in `gradients`.

Known differences: sums may differ from SciPy's in the last place (fused multiply-adds); `uniform_filter` has no running
sum, so a NaN does not spread to the rest of its line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import NDArray

from accel.ndimage import arguments, casting, kernels
from accel.ndimage.boundary import FILTER_RULES, rule_of


def _finish(x: Array, dtype: np.dtype) -> Array:
    return casting.store(x, dtype) if x.dtype != dtype else x


def _needs_exact_sums(x: Array, weights: object, dtype: np.dtype) -> bool:
    """Whether the last bit of a sum can decide a stored integer: not where all terms are whole, and sums exact."""
    if dtype.kind not in "iub":
        return False
    integral = kernels.known(weights) and bool(np.all(np.asarray(weights) == np.round(np.asarray(weights))))
    return not (integral and x.dtype.kind in "iub")


def correlate1d(
    input: Array,
    weights: Array | NDArray[Any] | list[Any],
    axis: int = -1,
    output: object = None,
    mode: str = "reflect",
    cval: complex = 0.0,
    origin: int = 0,
) -> Array:
    """Correlate along one axis: sum over j of weights[j] * input[i + j - k // 2 - origin].

    weights: shape (k,), k > 0 (RuntimeError otherwise). See `scipy.ndimage.correlate1d`.
    """
    dtype = casting.result_dtype(output, input.dtype)
    weights = kernels.as_weights(weights)
    if weights.ndim != 1 or weights.shape[0] < 1:
        raise RuntimeError("no filter weights given")
    axis = normalize_axis_index(axis, input.ndim)
    if not -(len(weights) // 2) <= origin <= (len(weights) - 1) // 2:
        raise ValueError("Invalid origin; origin must satisfy -(len(weights) // 2) <= origin <= (len(weights)-1) // 2")
    arguments.check_window(len(weights), origin)
    rule, cval = rule_of(mode, FILTER_RULES), arguments.fill_value(cval)
    casting.require_storable(input.dtype, dtype)
    if input.size == 0:
        return jnp.zeros(input.shape, dtype)
    exact = _needs_exact_sums(input, weights, dtype)
    return _finish(kernels.correlate_1d(casting.to_working(input), weights, axis, rule, cval, origin, exact), dtype)


def convolve1d(
    input: Array,
    weights: Array | NDArray[Any] | list[Any],
    axis: int = -1,
    output: object = None,
    mode: str = "reflect",
    cval: complex = 0.0,
    origin: int = 0,
) -> Array:
    """Convolve along one axis with `weights`, shape (k,), k > 0. See `scipy.ndimage.convolve1d`."""
    weights = kernels.as_weights(weights)[::-1]
    # Turned round, a kernel of even length has its centre one cell further on.
    origin = -origin - (1 - weights.shape[0] % 2)
    return correlate1d(input, weights, axis, output, mode, cval, origin)


def _correlate_or_convolve(
    input: Array, weights: Any, output: Any, mode: Any, cval: object, origin: object, convolution: bool, axes: Any
) -> Array:
    ndim = input.ndim
    axes = arguments.check_axes(axes, ndim)
    weights = arguments.expand_kernel(kernels.as_weights(weights), axes, ndim, "weights")
    origins = arguments.spread(arguments.per_axis(origin, len(axes)), axes, ndim, 0)
    shape = [size for size in weights.shape if size > 0]  # SciPy's check, and its message for a kernel without entries
    if len(shape) != ndim:
        raise RuntimeError(f"weights.ndim ({len(shape)}) must match len(axes) ({len(axes)})")
    if convolution:
        weights = weights[(slice(None, None, -1),) * ndim]
        origins = [-o - (1 - size % 2) for o, size in zip(origins, shape, strict=True)]
    for o, size in zip(origins, shape, strict=True):
        if not -(size // 2) <= o <= (size - 1) // 2:
            raise ValueError(
                "Invalid origin; origin must satisfy -(weights.shape[k] // 2) <= origin[k] <= (weights.shape[k]-1) // 2"
            )
    dtype = casting.result_dtype(output, input.dtype)
    if arguments.is_sequence_of_modes(mode):
        raise RuntimeError("A sequence of modes is not supported")
    rule, cval = rule_of(mode, FILTER_RULES), arguments.fill_value(cval)
    casting.require_storable(input.dtype, dtype)
    if input.size == 0:
        return jnp.zeros(input.shape, dtype)
    exact = _needs_exact_sums(input, weights, dtype)
    return _finish(kernels.correlate_nd(casting.to_working(input), weights, rule, cval, origins, exact), dtype)


def correlate(
    input: Array,
    weights: Array | NDArray[Any],
    output: object = None,
    mode: str = "reflect",
    cval: complex = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """Correlate over `axes` with a kernel of as many axes (RuntimeError otherwise). See `scipy.ndimage.correlate`.

    Weights of at most 2.2e-16 are left out, as in SciPy, so that 0 * NaN adds nothing.
    """
    return _correlate_or_convolve(input, weights, output, mode, cval, origin, False, axes)


def convolve(
    input: Array,
    weights: Array | NDArray[Any],
    output: object = None,
    mode: str = "reflect",
    cval: complex = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """Convolve over `axes` with a kernel of as many axes (RuntimeError otherwise). See `scipy.ndimage.convolve`."""
    return _correlate_or_convolve(input, weights, output, mode, cval, origin, True, axes)


def uniform_filter1d(
    input: Array,
    size: int,
    axis: int = -1,
    output: object = None,
    mode: str = "reflect",
    cval: complex = 0.0,
    origin: int = 0,
) -> Array:
    """Mean over a window of `size` cells, at least 1, along one axis. See `scipy.ndimage.uniform_filter1d`.

    Results of an integer dtype are truncated toward zero. A NaN reaches the windows that hold it; SciPy's running sum
    spreads it to the rest of the line.
    """
    axis = normalize_axis_index(axis, input.ndim)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    dtype = casting.result_dtype(output, input.dtype)
    reach = arguments.check_window(size, origin)
    rule, cval = rule_of(mode, FILTER_RULES), arguments.fill_value(cval)
    casting.require_storable(input.dtype, dtype)
    if input.size == 0:
        return jnp.zeros(input.shape, dtype)
    exact = dtype.kind in "iub"  # truncated to whole numbers: the last bit of a quotient counts
    return _finish(kernels.mean_1d(casting.to_working(input), int(size), axis, reach, rule, cval, exact), dtype)


def uniform_filter(
    input: Array,
    size: int | Sequence[int] | None = 3,
    output: object = None,
    mode: str | Sequence[str] = "reflect",
    cval: complex = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """Mean over a box, one axis after the other: `size`, `origin`, `mode` as one value or one for each of `axes`.

    See `uniform_filter1d` and `scipy.ndimage.uniform_filter`.
    """
    dtype = casting.result_dtype(output, input.dtype)
    axes = arguments.check_axes(axes, input.ndim)
    columns = [arguments.per_axis(value, len(axes)) for value in (size, origin, mode)]
    passes = [row for row in zip(axes, *columns, strict=True) if row[1] > 1]
    x, between = input, casting.between_passes(dtype)
    for axis, one_size, one_origin, one_mode in passes:
        x = uniform_filter1d(x, int(one_size), axis, between, one_mode, cval, one_origin)
    return x.astype(dtype)
