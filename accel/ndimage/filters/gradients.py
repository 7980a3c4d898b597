"""The filters of `scipy.ndimage` for smoothing and derivatives: Gaussians, differences, Laplacians, gradients.

All are correlations along one axis after the other. What `accel.ndimage.filters.linear` says of dtypes, precision and
differences from SciPy holds for them too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import NDArray

from accel.ndimage import arguments, casting
from accel.ndimage.filters.linear import correlate1d


def _copied(x: Array, dtype: np.dtype) -> Array:
    """`x` unfiltered, as `output[...] = input` converts it."""
    return casting.store(x, dtype) if x.dtype.kind == "f" and dtype.kind in "iu" else x.astype(dtype)


def _gaussian_kernel(sigma: float, order: int, radius: int) -> NDArray[np.float64]:
    """The order-th derivative of a normalised Gaussian at -radius .. radius; shape (2 * radius + 1,).

    With g the Gaussian, its derivatives are q * g for polynomials q that obey q' - x/sigma**2 * q (product rule).
    """
    if order < 0:
        raise ValueError("order must be non-negative")
    x = np.arange(-radius, radius + 1)
    g = np.exp(-0.5 / (sigma * sigma) * x**2)
    g = g / g.sum()
    q = np.polynomial.Polynomial([1.0])
    step = np.polynomial.Polynomial([0.0, -1.0 / (sigma * sigma)])
    for _ in range(order):
        q = q.deriv() + q * step
    return q(x) * g


def gaussian_filter1d(
    input: Array,
    sigma: float,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
) -> Array:
    """Gaussian filter, or its `order`-th derivative, along one axis. See `scipy.ndimage.gaussian_filter1d`.

    sigma: in grid cells, greater than 0. The kernel reaches `radius` cells to each side, by default
    int(truncate * sigma + 0.5).
    Raises ValueError for a negative order and for a radius that is negative or not whole.
    """
    reach = int(truncate * float(sigma) + 0.5) if radius is None else radius
    if not isinstance(reach, Integral) or reach < 0:
        raise ValueError("Radius must be a nonnegative integer.")
    weights = _gaussian_kernel(float(sigma), order, int(reach))[::-1]  # turned: a convolution; odd orders have a sign
    return correlate1d(input, weights, axis, output, mode, cval, 0)


def gaussian_filter(
    input: Array,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Array:
    """Gaussian filter over `axes`, one axis after the other. See `scipy.ndimage.gaussian_filter`.

    sigma, order, mode, radius: one value, or one for each of `axes` (RuntimeError for another number of them). sigma is
    in grid cells; axes where it is at most 1e-15 stay as they are.
    """
    dtype = casting.result_dtype(output, input.dtype)
    axes = arguments.check_axes(axes, input.ndim)
    columns = [arguments.per_axis(value, len(axes)) for value in (sigma, order, mode, radius)]
    passes = [row for row in zip(axes, *columns, strict=True) if row[1] > 1e-15]
    if not passes:
        return _copied(input, dtype)
    x, between = input, casting.between_passes(dtype)
    for axis, one_sigma, one_order, one_mode, one_radius in passes:
        x = gaussian_filter1d(x, one_sigma, axis, one_order, between, one_mode, cval, truncate, radius=one_radius)
    return x.astype(dtype)


def _differences(
    input: Array, axis: int, output: object, mode: str | Sequence[str], cval: float, smooth: list[int]
) -> Array:
    """Central difference along `axis`, smoothed by `smooth` along the others."""
    axis = normalize_axis_index(axis, input.ndim)
    dtype = casting.result_dtype(output, input.dtype)
    modes = arguments.per_axis(mode, input.ndim)
    between = casting.between_passes(dtype)
    x = correlate1d(input, [-1, 0, 1], axis, between, modes[axis], cval, 0)
    for other in range(input.ndim):
        if other != axis:
            x = correlate1d(x, smooth, other, between, modes[other], cval, 0)
    return x.astype(dtype)


def prewitt(
    input: Array, axis: int = -1, output: object = None, mode: str | Sequence[str] = "reflect", cval: float = 0.0
) -> Array:
    """Central difference along one axis, smoothed by 1, 1, 1 along the others. See `scipy.ndimage.prewitt`."""
    return _differences(input, axis, output, mode, cval, [1, 1, 1])


def sobel(
    input: Array, axis: int = -1, output: object = None, mode: str | Sequence[str] = "reflect", cval: float = 0.0
) -> Array:
    """Central difference along one axis, smoothed by 1, 2, 1 along the others. See `scipy.ndimage.sobel`."""
    return _differences(input, axis, output, mode, cval, [1, 2, 1])


def _summed(input: Array, term: Callable[..., Array], output: Any, mode: object, cval: object, axes: Any) -> Array:
    """Sum over `axes` of term(input, axis, dtype, mode, cval)."""
    dtype = casting.result_dtype(output, input.dtype)
    axes = arguments.check_axes(axes, input.ndim)
    if not axes:
        return _copied(input, dtype)
    total = None
    for axis, one_mode in zip(axes, arguments.per_axis(mode, len(axes)), strict=True):
        found = term(input, axis, dtype, one_mode, cval)
        total = found if total is None else total + found
    return jnp.asarray(total, dtype)


def laplace(
    input: Array,
    output: object = None,
    mode: str | Sequence[str] = "reflect",
    cval: float = 0.0,
    *,
    axes: object = None,
) -> Array:
    """Sum over `axes` of the second differences, by the kernel 1, -2, 1. See `scipy.ndimage.laplace`."""

    def second_difference(x: Array, axis: int, dtype: np.dtype[Any], one_mode: str, c: float) -> Array:
        return correlate1d(x, [1, -2, 1], axis, dtype, one_mode, c, 0)

    return _summed(input, second_difference, output, mode, cval, axes)


def gaussian_laplace(
    input: Array,
    sigma: float | Sequence[float],
    output: object = None,
    mode: str | Sequence[str] = "reflect",
    cval: complex = 0.0,
    *,
    axes: int | Sequence[int] | None = None,
    **kwargs: Any,
) -> Array:
    """Sum over `axes` of the second derivatives of a Gaussian filter. See `scipy.ndimage.gaussian_laplace`.

    sigma: in grid cells, one value or one for each of `axes`. kwargs: as for `gaussian_filter`.
    """
    axes = arguments.check_axes(axes, input.ndim)
    sigmas = arguments.spread(arguments.per_axis(sigma, len(axes)), axes, input.ndim, 0)  # 0: the axis stays as it is

    def second_derivative(x: Array, axis: int, dtype: object, one_mode: str, c: object) -> Array:
        return gaussian_filter(x, sigmas, _derivative_orders(x.ndim, axis, 2), dtype, one_mode, c, **kwargs)

    return _summed(input, second_derivative, output, mode, cval, axes)


def _derivative_orders(ndim: int, axis: int, order: int) -> list[int]:
    return [order if a == axis else 0 for a in range(ndim)]


def gaussian_gradient_magnitude(
    input: Array,
    sigma: object,
    output: object = None,
    mode: str | Sequence[str] = "reflect",
    cval: complex = 0.0,
    *,
    axes: int | Sequence[int] | None = None,
    **kwargs: Any,
) -> Array:
    """Root of the sum over `axes` of the first derivatives of a Gaussian filter, squared.

    sigma: in grid cells, one value or one per axis. kwargs: as for `gaussian_filter`. See
    `scipy.ndimage.gaussian_gradient_magnitude`.
    """

    def squared(x: Array, axis: int, dtype: object, one_mode: str, c: object) -> Array:
        slope = gaussian_filter(x, sigma, _derivative_orders(x.ndim, axis, 1), dtype, one_mode, c, **kwargs)
        return slope * slope

    dtype = casting.result_dtype(output, input.dtype)
    if not arguments.check_axes(axes, input.ndim):
        return _copied(input, dtype)
    total = _summed(input, squared, output, mode, cval, axes)
    # Whole numbers are squared and added in their own dtype, as in SciPy; the root is taken in double and truncated.
    return casting.store(jnp.sqrt(total if dtype.kind == "f" else casting.to_working(total)), dtype)
