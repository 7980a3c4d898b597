"""Correlation with a kernel, the work behind every linear filter, as XLA:CPU runs it best.

Small kernels are sums of shifted slices of a padded array, in SciPy's order of summation; very large ones are one
convolution. Measured on 121x240: 65 taps along an axis 0.19 ms against 0.2 to 1.0, 9x9 0.33 against 0.62.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from accel.ndimage import boundary
from accel.ndimage.casting import truncated_quotient, unfused_product, working_dtype
from accel.ndimage.errors import NotCovered

Weights = NDArray[np.float64] | Array

LONGEST_SUM = 256  # taps; sums ran faster than lax.conv throughout, beyond this compiling them takes too long
# Entries; longer uniform windows are built by doubling, which pays later for sums: 15x15 on 121x240 0.16 ms, not 0.22.
LONGEST_DIRECT_WINDOW = 8
LONGEST_DIRECT_MEAN = 32


def known(weights: object) -> bool:
    """Whether the values can be read while tracing."""
    return not isinstance(weights, jax.core.Tracer)


def as_weights(weights: object) -> Weights:
    """`weights` in double precision: a NumPy array where the values are known, else a traced one."""
    array: Any = np.asarray(weights) if known(weights) else jnp.asarray(weights)
    if array.dtype.kind == "c":
        raise NotCovered("complex numbers")
    return array.astype(np.float64) if known(weights) else array.astype(working_dtype())


def _product(x: Array, weight: object, exact: bool) -> Array:
    scalar = jnp.asarray(weight, x.dtype)
    return unfused_product(x, scalar) if exact else x * scalar


def _symmetry(weights: Weights) -> int:
    """1 for a symmetric kernel of odd length, -1 for an antisymmetric one, else 0. NaN is equal, as to SciPy."""
    if not known(weights) or len(weights) % 2 == 0:
        return 0
    half = len(weights) // 2
    left, right = weights[:half], weights[:half:-1]
    eps = np.finfo(np.float64).eps
    if not np.any(np.abs(left - right) > eps):
        return 1
    return 0 if np.any(np.abs(left + right) > eps) else -1


def _sum_1d(padded: Array, weights: Weights, axis: int, n: int, exact: bool) -> Array:
    half, size = len(weights) // 2, len(weights)
    sign = _symmetry(weights)
    tap = [boundary.window(padded, axis, j, n) for j in range(size)]
    if size % 2 and not known(weights):
        return _sum_of_traced(tap, jnp.asarray(weights), exact)
    if sign:  # the middle first, then pairs from the outside in: SciPy's order
        total = _product(tap[half], weights[half], exact)
        for j in range(half):
            other = tap[size - 1 - j]
            total = total + _product(tap[j] + other if sign > 0 else tap[j] - other, weights[j], exact)
        return total
    total = _product(tap[-1], weights[-1], exact)  # the last first: SciPy's order here
    for j in range(size - 1):
        total = total + _product(tap[j], weights[j], exact)
    return total


def _sum_of_traced(tap: Sequence[Array], weights: Array, exact: bool) -> Array:
    """As `_sum_1d`, where a run tells whether the kernel is symmetric: in SciPy's order, which depends on it."""
    half, eps = len(tap) // 2, np.finfo(np.float64).eps
    left, right = weights[:half], weights[:half:-1]
    is_even = ~jnp.any(jnp.abs(left - right) > eps)
    is_odd = ~is_even & ~jnp.any(jnp.abs(left + right) > eps)
    in_pairs = is_even | is_odd
    total = _product(jnp.where(in_pairs, tap[half], tap[-1]), jnp.where(in_pairs, weights[half], weights[-1]), exact)
    for j in range(len(tap) - 1):
        other = tap[-1 - j]
        one = jnp.where(is_even, tap[j] + other, jnp.where(is_odd, tap[j] - other, tap[j])) if j < half else tap[j]
        term = _product(one, weights[j], exact)
        total = total + (term if j < half else jnp.where(in_pairs, -0.0, term))  # adding -0.0 changes nothing
    return total


def _convolution(padded: Array, weights: Weights) -> Array:
    """Correlation without padding, over all axes of `padded`."""
    kernel = jnp.asarray(weights, padded.dtype)
    ones = (1,) * padded.ndim
    return lax.conv_general_dilated(padded[None, None], kernel[None, None], ones, "VALID")[0, 0]


def _convolution_1d(padded: Array, weights: Weights, axis: int) -> Array:
    """As `_convolution`, along one axis. The axes before it become the batch, those after it one more spatial axis."""
    shape = padded.shape
    before, after = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
    kernel = jnp.asarray(weights, padded.dtype)
    if after == 1:
        out = lax.conv_general_dilated(padded.reshape(before, 1, -1), kernel[None, None], (1,), "VALID")
    else:
        out = lax.conv_general_dilated(
            padded.reshape(before, -1, after, 1),
            kernel[:, None, None, None],
            (1, 1),
            "VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
    return out.reshape(shape[:axis] + (-1,) + shape[axis + 1 :])


def correlate_1d(
    x: Array, weights: Weights, axis: int, rule: str, cval: object, origin: int = 0, exact: bool = False
) -> Array:
    """sum over j of weights[j] * x[i + j - len(weights) // 2 - origin] along `axis`.

    x: any shape, working dtype. weights: shape (k,), k >= 1. `exact` keeps the rounding of every product, for results
    that are truncated to integers.
    """
    size = len(weights)
    reach = size // 2 + origin
    padded = boundary.pad(x, axis, reach, size - 1 - reach, rule, cval)
    if size > LONGEST_SUM and not exact:
        return _convolution_1d(padded, weights, axis)
    return _sum_1d(padded, weights, axis, x.shape[axis], exact)


def pad_all(x: Array, reach: Sequence[int], shape: Sequence[int], rule: str, cval: object) -> Array:
    """`x` extended on every axis so that a window of `shape` that starts `reach` before each point fits."""
    for axis, (before, size) in enumerate(zip(reach, shape, strict=True)):
        x = boundary.pad(x, axis, before, size - 1 - before, rule, cval)
    return x


def shifted(padded: Array, offset: Sequence[int], shape: Sequence[int]) -> Array:
    """The slice of `padded` that starts at `offset` and has `shape`."""
    return lax.slice(padded, offset, [o + n for o, n in zip(offset, shape, strict=True)])


def _factors(weights: NDArray[np.float64]) -> list[NDArray[np.float64]] | None:
    """One kernel per axis whose outer product is `weights` to rounding, or None."""
    peak = np.unravel_index(np.argmax(np.abs(weights)), weights.shape)
    lines = []
    for axis in range(weights.ndim):
        line = weights[tuple(slice(None) if a == axis else peak[a] for a in range(weights.ndim))]
        lines.append(line if axis == 0 else line / weights[peak])
    product = lines[0]
    for line in lines[1:]:
        product = np.multiply.outer(product, line)
    return lines if np.allclose(product, weights, rtol=1e-15, atol=0) else None


def correlate_nd(
    x: Array, weights: Weights, rule: str, cval: object, origins: Sequence[int], exact: bool = False
) -> Array:
    """As `correlate_1d`, over all axes. weights: as many axes as `x`.

    Weights of at most 2.2e-16 are left out, as in SciPy, so that 0 * NaN adds nothing. A kernel that is the outer
    product of one vector per axis runs axis by axis: 2 * k multiplications for each result instead of k * k.
    """
    reach = [size // 2 + origin for size, origin in zip(weights.shape, origins, strict=True)]
    eps = np.finfo(np.float64).eps
    if not known(weights):
        return _correlate_traced(x, jnp.asarray(weights), rule, cval, reach)
    values = np.asarray(weights)
    taps = [index for index in np.ndindex(values.shape) if abs(values[index]) > eps]
    # Axis by axis, the second pass would extend by `cval` what the first made of the input and its own extension: other
    # than "constant", the rules extend both alike. And roundings in between are not those of one sum.
    if len(taps) == values.size > 9 and rule != "constant" and not exact:
        lines = _factors(values)
        if lines is not None:
            for axis, line in enumerate(lines):
                x = correlate_1d(x, line, axis, rule, cval, origins[axis])
            return x
    padded = pad_all(x, reach, values.shape, rule, cval)
    if len(taps) > LONGEST_SUM and not exact and values.ndim <= 3:
        return _convolution(padded, np.where(np.abs(values) > eps, values, 0.0))
    total = None
    for index in taps:
        term = _product(shifted(padded, index, x.shape), values[index], exact)
        total = term if total is None else total + term
    return jnp.zeros(x.shape, x.dtype) if total is None else total


def _correlate_traced(x: Array, weights: Array, rule: str, cval: object, reach: Sequence[int]) -> Array:
    padded = pad_all(x, reach, weights.shape, rule, cval)
    if weights.size > LONGEST_SUM and weights.ndim <= 3:
        return _convolution(padded, weights)
    total = jnp.zeros(x.shape, x.dtype)
    # Which weights SciPy would leave out is not known here: all are computed, and the small ones' terms dropped.
    for index in np.ndindex(weights.shape):
        weight, piece = weights[index], shifted(padded, index, x.shape)
        total = total + jnp.where(jnp.abs(weight) > np.finfo(np.float64).eps, piece * weight, 0.0)
    return total


def reduce_window_1d(
    x: Array,
    size: int,
    axis: int,
    reach: int,
    rule: str,
    cval: object,
    combine: Callable[[Array, Array], Array],
    longest_direct: int = LONGEST_DIRECT_WINDOW,
) -> Array:
    """combine over j < size of x[i + j - reach] along `axis`, for an associative `combine` of two arrays.

    Long windows are built from windows of 1, 2, 4, ... entries: about 2 log2(size) operations instead of size.
    """
    n = x.shape[axis]
    padded = boundary.pad(x, axis, reach, size - 1 - reach, rule, cval)
    if size <= longest_direct:
        return reduce(combine, (boundary.window(padded, axis, j, n) for j in range(size)))
    pieces: list[Array] = []
    done, block, width = 0, padded, 1  # block[i] covers padded[i : i + width]
    while True:
        if size & width:
            pieces.append(boundary.window(block, axis, done, n))
            done += width
        if 2 * width > size:
            return reduce(combine, pieces)
        length = block.shape[axis] - width
        block = combine(boundary.window(block, axis, 0, length), boundary.window(block, axis, width, length))
        width *= 2


def mean_1d(x: Array, size: int, axis: int, reach: int, rule: str, cval: complex, exact: bool) -> Array:
    """The mean over a window of `size`, truncated toward zero if `exact`."""
    total = reduce_window_1d(x, size, axis, reach, rule, cval, jnp.add, LONGEST_DIRECT_MEAN)
    return truncated_quotient(total, size) if exact else total / jnp.asarray(size, working_dtype())
