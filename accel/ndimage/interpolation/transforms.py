"""The interpolation half of `scipy.ndimage`: splines of order 0 to 5 at mapped coordinates.

Every function takes `input` of any shape of at least one axis and of a bool, integer, float32 or float64 dtype.
Coordinates are in grid cells, 0 at the centre of the first cell. Results have the dtype of `output`, or the input's;
integers round half away from zero and clip. Coordinates outside are treated by SciPy's rules (see `boundary`): its
"wrap" has period n - 1. A NaN coordinate gives `cval`, except under "nearest" and "grid-constant". No coordinate,
however large, makes anything outside the array be read.

Where coordinates are known while tracing (`zoom`, `rotate`, a constant matrix) they are computed in NumPy, as SciPy
does. Coordinates computed in XLA may differ in the last place, which shows at the edge of mode "constant" only.

Known differences: values of splines (orders 2 to 5) may differ from SciPy's in the last places. Results of integers
show that at exact halves, and those of bools, which SciPy truncates, at 1. An infinity in the input of a spline may
leave infinities where SciPy has NaN. A double beyond about 1e15 does not tell the place between cells: where a folding
mode meets such a coordinate, the value is as arbitrary as SciPy's, and another one of the input's magnitude.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from accel.ndimage import arguments, casting, kernels
from accel.ndimage.errors import NotCovered
from accel.ndimage.interpolation import sampling, spline


def map_coordinates(
    input: Array,
    coordinates: Array | NDArray[Any],
    output: object = None,
    order: int = 3,
    mode: str = "constant",
    cval: complex = 0.0,
    prefilter: bool = True,
) -> Array:
    """`input` at `coordinates`, shape (input.ndim, *points); returns shape (*points).

    Raises RuntimeError for coordinates of another shape or dtype, TypeError for complex ones. See
    `scipy.ndimage.map_coordinates`.
    """
    spline.check_order(order)
    coordinates = coordinates if isinstance(coordinates, Array) else np.asarray(coordinates)
    if jnp.iscomplexobj(coordinates):
        raise TypeError("Complex type not supported")
    shape = coordinates.shape[1:]
    if input.ndim < 1 or len(shape) < 1:
        raise RuntimeError("input and output rank must be > 0")
    if coordinates.shape[0] != input.ndim:
        raise RuntimeError("invalid shape for coordinate array")
    if np.dtype(coordinates.dtype).char not in "?bBhHiIlLqQfd":
        raise RuntimeError("coordinate array data type not supported")
    return sampling.interpolate(sampling.at_points, input, coordinates, shape, output, order, mode, cval, prefilter)


def affine_transform(
    input: Array,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Sequence[int] | None = None,
    output: object = None,
    order: int = 3,
    mode: str = "constant",
    cval: complex = 0.0,
    prefilter: bool = True,
) -> Array:
    """`input` at matrix @ (output coordinates) + offset, with shape `output_shape` (default: the input's).

    matrix: for an input of n axes, shape (n, n), or (n,) for the diagonal, or homogeneous: (n, n + 1), (n + 1, n + 1).
    offset: one number, or one per axis, in grid cells. Raises RuntimeError for other shapes, ValueError for a
    homogeneous matrix whose last row is not 0, ..., 0, 1. See `scipy.ndimage.affine_transform`.
    """
    spline.check_order(order)
    ndim = input.ndim
    shape = tuple(int(n) for n in (input.shape if output_shape is None else output_shape))
    if ndim < 1 or len(shape) < 1:
        raise RuntimeError("input and output rank must be > 0")
    matrix, offset = _affine_parts(matrix, offset, input.shape)
    if matrix.shape[0] != ndim:
        raise RuntimeError("affine matrix has wrong number of rows")
    if matrix.ndim == 2 and matrix.shape[1] != len(shape):
        raise RuntimeError("affine matrix has wrong number of columns")
    xp: Any = np if isinstance(matrix, np.ndarray) and isinstance(offset, np.ndarray) else jnp
    if matrix.ndim == 1:  # rounded as SciPy rounds: it passes offset / matrix to a function that multiplies by matrix
        with np.errstate(divide="ignore", invalid="ignore"):
            vectors = [(xp.arange(n) + offset[a] / matrix[a]) * matrix[a] for a, n in enumerate(shape)]
        return sampling.interpolate(sampling.on_axes, input, vectors, shape, output, order, mode, cval, prefilter)
    points = _affine_points(matrix, offset, shape, xp)
    return sampling.interpolate(sampling.at_points, input, points, shape, output, order, mode, cval, prefilter)


def _affine_points(matrix: Any, offset: Any, shape: Sequence[int], xp: Any) -> list[Any]:
    """matrix @ (output coordinates) + offset: one array (*shape) per row, summed in SciPy's order."""
    points = []
    for row in range(matrix.shape[0]):
        position = offset[row]
        for column, n in enumerate(shape):
            along = xp.arange(n, dtype=casting.working_dtype()) * matrix[row, column]
            position = position + along.reshape([-1 if a == column else 1 for a in range(len(shape))])
        points.append(position)
    return points


def _affine_parts(matrix: Any, offset: object, input_shape: Sequence[int]) -> tuple[Any, Any]:
    """Matrix (d,) or (d, d) and offset (d,), from SciPy's several forms. NumPy arrays where values are known."""
    ndim = len(input_shape)
    matrix = kernels.as_weights(matrix)
    if matrix.ndim not in (1, 2) or matrix.shape[0] < 1:
        raise RuntimeError("no proper affine matrix provided")
    if matrix.ndim == 2 and matrix.shape[1] == ndim + 1 and matrix.shape[0] in (ndim, ndim + 1):
        bottom = [0] * ndim + [1]
        if matrix.shape[0] == ndim + 1 and isinstance(matrix, np.ndarray) and not np.all(matrix[ndim] == bottom):
            raise ValueError(
                f"Expected homogeneous transformation matrix with shape {matrix.shape} for image shape "
                f"{tuple(input_shape)}, but bottom row was not equal to {bottom}"
            )
        offset, matrix = matrix[:ndim, ndim], matrix[:ndim, :ndim]
    return matrix, _vector(offset, ndim)


def _vector(values: object, ndim: int) -> Any:
    """One float per axis: a NumPy array where the values are known."""
    if isinstance(values, jax.core.Tracer):
        if values.ndim and values.shape != (ndim,):
            raise RuntimeError("sequence argument must have length equal to input rank")
        return jnp.broadcast_to(values, (ndim,)).astype(casting.working_dtype())
    listed = arguments.per_axis(values, ndim)
    if any(isinstance(v, jax.core.Tracer) for v in listed):
        return jnp.stack([jnp.asarray(v, casting.working_dtype()) for v in listed])
    return np.asarray(listed, dtype=np.float64)


def shift(
    input: Array,
    shift: Array | float | Sequence[float],
    output: object = None,
    order: int = 3,
    mode: str = "constant",
    cval: complex = 0.0,
    prefilter: bool = True,
) -> Array:
    """`input` moved by `shift` cells, one number or one per axis; same shape. See `scipy.ndimage.shift`."""
    spline.check_order(order)
    if input.ndim < 1:
        raise RuntimeError("input and output rank must be > 0")
    moved = _vector(shift, input.ndim)
    shape = input.shape
    vectors = [np.arange(n, dtype=np.float64) - moved[axis] for axis, n in enumerate(shape)]
    return sampling.interpolate(sampling.on_axes, input, vectors, shape, output, order, mode, cval, prefilter)


def zoom(
    input: Array,
    zoom: Array | float | Sequence[float],
    output: object = None,
    order: int = 3,
    mode: str = "constant",
    cval: complex = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Array:
    """`input` resampled: an axis of n cells has round(n * zoom) in the result. See `scipy.ndimage.zoom`.

    zoom: one number, or one per axis. It decides the shape, so a traced value raises `NotCovered`.
    """
    spline.check_order(order)
    if input.ndim < 1:
        raise RuntimeError("input and output rank must be > 0")
    factors = arguments.per_axis(zoom, input.ndim)
    if any(isinstance(f, jax.core.Tracer) for f in [zoom, *factors]):
        raise NotCovered("zoom: the zoom factor decides the output's shape and cannot be a traced value")
    shape = tuple(round(n * factor) for n, factor in zip(input.shape, factors, strict=True))
    if prefilter and all(factor == 1 for factor in factors):
        return input.astype(casting.result_dtype(output, input.dtype))
    if grid_mode and mode in ("constant", "wrap"):
        warnings.warn(
            f"It is recommended to use mode = grid-{mode} instead of {mode} when grid_mode is True.", stacklevel=2
        )
    vectors = []
    for n, m in zip(input.shape, shape, strict=True):
        cells = (n, m) if grid_mode else (n - 1, m - 1)
        step = cells[0] / cells[1] if cells[1] else 1.0
        k = np.arange(m, dtype=np.float64)
        vectors.append((k + 0.5) * step - 0.5 if grid_mode else k * step)
    return sampling.interpolate(sampling.on_axes, input, vectors, shape, output, order, mode, cval, prefilter)


def rotate(
    input: Array,
    angle: Array | float,
    axes: Any = (1, 0),
    reshape: bool = True,
    output: object = None,
    order: int = 3,
    mode: str = "constant",
    cval: complex = 0.0,
    prefilter: bool = True,
) -> Array:
    """`input` rotated by `angle` degrees in the plane of two axes. See `scipy.ndimage.rotate`.

    reshape: the result is large enough for all of the rotated input; else it has the input's shape. So the angle may
    decide the shape, and a traced one raises `NotCovered`. Raises ValueError for fewer than two axes, or no plane.
    """
    ndim = input.ndim
    if ndim < 2:
        raise ValueError("input array should be at least 2D")
    plane = list(axes)
    if len(plane) != 2:
        raise ValueError("axes should contain exactly two values")
    if not all(float(axis).is_integer() for axis in plane):
        raise ValueError("axes should contain only integer values")
    plane = sorted(int(axis) + ndim if axis < 0 else int(axis) for axis in plane)
    if not 0 <= plane[0] <= plane[1] < ndim:
        raise ValueError("invalid rotation plane specified")
    if isinstance(angle, jax.core.Tracer):
        raise NotCovered("rotate: the angle decides the output's shape and cannot be a traced value")
    matrix = _rotation(float(angle))
    in_plane = np.asarray([input.shape[axis] for axis in plane])
    out_plane = in_plane
    if reshape:
        corners = matrix @ np.array([[0, 0, in_plane[0], in_plane[0]], [0, in_plane[1], 0, in_plane[1]]])
        out_plane = (np.ptp(corners, axis=1) + 0.5).astype(int)
    offset = (in_plane - 1) / 2 - matrix @ ((out_plane - 1) / 2)

    if ndim == 2:
        return affine_transform(input, matrix, offset, tuple(out_plane), output, order, mode, cval, prefilter)
    spline.check_order(order)
    stacked = jnp.moveaxis(input, plane, (-2, -1)) if isinstance(input, Array) else np.moveaxis(input, plane, (-2, -1))
    flat = stacked.reshape((-1, *stacked.shape[-2:]))
    points = _affine_points(matrix, offset, out_plane.tolist(), np)
    shape = (flat.shape[0], *(int(n) for n in out_plane))
    turned = sampling.interpolate(
        sampling.at_points_of_planes, flat, points, shape, output, order, mode, cval, prefilter
    )
    return jnp.moveaxis(turned.reshape(stacked.shape[:-2] + shape[1:]), (-2, -1), plane)


def _rotation(angle: float) -> np.ndarray:
    """Rotation matrix (2, 2) for degrees, exact at multiples of 90."""
    from scipy.special import cosdg, sindg

    c, s = float(cosdg(angle)), float(sindg(angle))
    return np.array([[c, s], [-s, c]])
