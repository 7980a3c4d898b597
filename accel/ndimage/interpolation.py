"""The interpolation half of `scipy.ndimage`: splines of order 0 to 5 at mapped coordinates.

Every function takes `input` of any shape of at least one axis and of a bool, integer, float32, float64 or complex
dtype. Coordinates are in grid cells, 0 at the centre of the first cell. Results have the dtype of `output`, or the
input's; integers round half away from zero and clip. Coordinates outside are treated by SciPy's rules (see `boundary`):
its "wrap" has period n - 1. A NaN coordinate gives `cval`, except under "nearest" and "grid-constant". No coordinate,
however large, makes anything outside the array be read.

Where coordinates are known while tracing (`zoom`, `rotate`, a constant matrix) they are computed in NumPy, as SciPy
does. Coordinates computed in XLA may differ in the last place, which shows at the edge of mode "constant" only.

Known differences: values of splines (orders 2 to 5) may differ from SciPy's in the last places, which a result of
integers shows at exact halves and a result of bools, which SciPy truncates, at 1; an infinity in the input of a spline
may leave infinities where SciPy has NaN. Where a folding mode meets a coordinate beyond about 1e15, whose place between
cells a double no longer tells, the value is as arbitrary as SciPy's and a different one, of the input's magnitude.
"""

import functools
import itertools
import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from accel.ndimage import arguments, boundary, casting, dispatch, kernels, spline
from accel.ndimage.errors import NotCovered

_UNFOLDED = ("nearest", "grid-constant")  # modes whose coordinates are not folded
# Order -> modes in which a tap outside has weight 0, or reads the nearest cell: there the first tap is clipped.
_CLIPPED = {0: ("constant", "wrap", "nearest", "reflect", "grid-mirror"), 1: ("constant", "wrap")}
PREPAD = 12  # cells; SciPy extends the input by this much where its prefilter has no exact start value

# -- the parts ---------------------------------------------------------------------------------------------------------


def _index_dtype() -> np.dtype:
    return np.dtype(jax.dtypes.canonicalize_dtype(np.int64))  # measured: no slower than 32 bits


def _total(terms: Iterable[Any]) -> Any:
    return functools.reduce(operator.add, terms)


def _prepared(input: Array, order: int, mode: str, cval: Any, prefilter: bool) -> tuple[Array, int]:
    """The array to interpolate, spline-filtered if asked, and the cells it was extended by."""
    if not prefilter or order < 2:
        return input, 0
    x, reach = casting.to_working(input), 0
    if mode in _UNFOLDED:
        reach, rule = PREPAD, boundary.TAP_RULES[mode]
        x = kernels.pad_all(x, [reach] * x.ndim, [2 * reach + 1] * x.ndim, rule, cval)
    return spline.prefilter(x, order, mode), reach


def _first_tap(c: Any, order: int, xp: Any) -> Any:
    """The first tap of coordinates `c`, as a float; the middle one is order // 2 further on."""
    return xp.floor(c if order % 2 else c + 0.5) - order // 2


def _as_index(cell: Array, size: int) -> Array:
    """Whole numbers, to compute indices below `size` with: floats where these are exact, for one conversion in all."""
    return cell if size < 1 / np.finfo(cell.dtype).eps else cell.astype(_index_dtype())


def _gather_flat(flat: Array, index: Array) -> Array:
    dims = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    return lax.gather(flat, index[..., None], dims, (1,), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def _strides(shape: Sequence[int]) -> list[int]:
    return [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))]


def _extended_for_taps(x: Array, order: int, mode: str, cval: Any) -> tuple[Array, int]:
    """`x` with the cells that taps beyond its edges read, so that these need no mapping; and how many on each side."""
    if mode in _CLIPPED.get(order, ()) and min(x.shape) > order:
        return x, 0
    reach = order + 1
    size = [2 * reach + 1] * x.ndim
    return kernels.pad_all(casting.to_working(x), [reach] * x.ndim, size, boundary.TAP_RULES[mode], cval), reach


def _sample(x: Array, coordinates: Sequence[Array], order: int, mode: str, cval: Any, prepad: int) -> Array:
    """`x` at points. coordinates: one array (*points) per axis. Returns (*points), working dtype.

    All taps of a point share one index: each reads its own slice of the cells, a constant distance further on. An index
    of its own for every tap, which XLA also clamps, took longer than the reading.
    """
    cells, reach = _extended_for_taps(x, order, mode, cval)
    strides, folded, all_weights = _strides(cells.shape), [], []
    base: Any = 0
    for c, n, stride in zip(coordinates, x.shape, strides, strict=True):
        c = boundary.fold(c + float(prepad) if prepad else c, n, mode)
        c = jnp.clip(c, float(order // 2 - order - 1), float(n + order // 2))  # beyond, taps read the same
        start = _first_tap(c, order, jnp)
        if not reach:
            start = jnp.clip(start, 0.0, float(n - order - 1))
        base = base + _as_index(start + float(reach), cells.size) * stride
        folded.append(c)
        all_weights.append(spline.weights(c - (start + order // 2), order) if order else [1.0])
    base = base.astype(_index_dtype())
    flat, span = cells.reshape(-1), cells.size - order * sum(strides)

    def along(axis: int, offset: int) -> Array:
        if axis == cells.ndim:
            return casting.to_working(_gather_flat(lax.slice_in_dim(flat, offset, offset + span), base))
        terms = (along(axis + 1, offset + tap * strides[axis]) for tap in range(order + 1))
        return _total(term * w if order else term for term, w in zip(terms, all_weights[axis], strict=True))

    value = along(0, 0)
    return value if mode in _UNFOLDED else jnp.where(_inside(folded, mode), value, cval)


def _inside(folded: Sequence[Array], mode: str) -> Array:
    """Where no coordinate is NaN nor, under "constant", outside."""
    if mode == "constant":
        return functools.reduce(operator.and_, (c > -1.0 for c in folded))
    total = _total(folded)
    return total == total  # only a NaN, or infinities, make it differ


def _resample_axis(x: Array, c: Any, axis: int, order: int, mode: str, cval: Any) -> Array:
    """`x` interpolated along one axis at coordinates c (m,), NumPy or JAX; the axis becomes m long.

    Coordinates in mode "constant" that lie outside must be masked by the caller.
    """
    xp: Any = np if isinstance(c, np.ndarray) else jnp
    n, rule, reach = x.shape[axis], boundary.TAP_RULES[mode], order + 1
    first = _first_tap(c, order, xp)
    fraction = c - (first + order // 2)
    first = xp.where(xp.isnan(first), 0.0, first)
    start = xp.clip(first, float(-reach), float(n + reach - order - 1)).astype(np.int32) + reach
    table = boundary.extended(n, reach, reach, rule)
    shape = [-1 if a == axis else 1 for a in range(x.ndim)]
    weights = [w.reshape(shape) for w in spline.weights(fraction, order)] if order else [1.0]

    def tap(step: int) -> Array:
        source = table[start + step] if xp is np else jnp.asarray(table, jnp.int32)[start + step]
        term = boundary.take(x, xp.maximum(source, 0), axis)
        if rule == "constant":
            term = jnp.where((source < 0).reshape(shape), cval, term)
        return term * weights[step] if order else term

    return _total(tap(step) for step in range(order + 1))


def _resample(x: Array, coordinates: Sequence[Any], order: int, mode: str, cval: Any, prepad: int) -> Array:
    """`x` on the outer product of one coordinate vector per axis: separable, so one axis at a time."""
    x = casting.to_working(x)
    lengths, inside = x.shape, None
    for axis, c in enumerate(coordinates):
        xp: Any = np if isinstance(c, np.ndarray) else jnp
        folded = boundary.fold(c + float(prepad) if prepad else c, lengths[axis], mode, xp)
        x = _resample_axis(x, folded, axis, order, mode, cval)
        if mode not in _UNFOLDED:
            here = (folded > -1.0).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
            inside = here if inside is None else inside & here
    if inside is None or (isinstance(inside, np.ndarray) and inside.all()):
        return x
    return jnp.where(inside, x, cval)


# -- the functions -----------------------------------------------------------------------------------------------------


def map_coordinates(
    input: Array,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Array:
    """`input` at `coordinates` (input.ndim, *points); returns shape (*points). See `scipy.ndimage.map_coordinates`."""
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
    return _interpolate(_at_points, input, coordinates, shape, output, order, mode, cval, prefilter)


def _interpolate(
    kernel: Callable[..., Array],
    input: Array,
    coordinates: Any,
    shape: Sequence[int],
    output: Any,
    order: int,
    mode: str,
    cval: Any,
    prefilter: bool,
) -> Array:
    """kernel(input, coordinates, dtype, order, mode, cval, prefilter), compiled unless a trace is under way.

    `shape` is the result's. What decides the program is static; coordinates are not.
    """
    dtype = casting.result_dtype(output, input.dtype, complex_output=jnp.iscomplexobj(input))
    boundary.rule_of(mode, boundary.TAP_RULES)
    if input.ndim < 1 or len(shape) < 1:
        raise RuntimeError("input and output rank must be > 0")
    casting.require_storable(input.dtype)
    casting.require_storable(dtype)
    cval = cval if jnp.iscomplexobj(input) else arguments.fill_value(cval)
    if input.size == 0 or 0 in shape:
        return jnp.zeros(shape, dtype)
    static = {"dtype": dtype, "order": int(order), "mode": mode, "cval": cval, "prefilter": bool(prefilter)}
    if dispatch.is_traced(input, coordinates, cval):
        return kernel(input, coordinates, **static)
    return dispatch.compiled(kernel, static)(input, coordinates)


def _parts_of(kernel: Callable[..., Array]) -> Callable[..., Array]:
    """`kernel`, written for real input, for complex input too: each part sees its own part of `cval`."""

    @functools.wraps(kernel)
    def both(
        input: Array, coordinates: Any, dtype: np.dtype, order: int, mode: str, cval: Any, prefilter: bool
    ) -> Array:
        if not jnp.iscomplexobj(input):
            return kernel(input, coordinates, dtype, order, mode, cval, prefilter)
        real, imag = (
            kernel(part, coordinates, casting.working_dtype(), order, mode, arguments.fill_value(c), prefilter)
            for part, c in ((input.real, np.real(cval)), (input.imag, np.imag(cval)))
        )
        return lax.complex(real, imag).astype(dtype)

    return both


@_parts_of
def _at_points(input: Array, points: Any, dtype: np.dtype, order: int, mode: str, cval: Any, prefilter: bool) -> Array:
    """`input` at points[axis], arrays of one shape."""
    coordinates = [casting.to_working(jnp.asarray(points[axis])) for axis in range(input.ndim)]
    x, prepad = _prepared(input, order, mode, cval, prefilter)
    return casting.store_rounded(_sample(x, coordinates, order, mode, cval, prepad), dtype)


@_parts_of
def _at_points_of_planes(
    input: Array, points: Any, dtype: np.dtype, order: int, mode: str, cval: Any, prefilter: bool
) -> Array:
    """The same for each input[k]."""
    return jax.vmap(lambda plane: _at_points(plane, points, dtype, order, mode, cval, prefilter))(input)


@_parts_of
def _on_axes(input: Array, vectors: Any, dtype: np.dtype, order: int, mode: str, cval: Any, prefilter: bool) -> Array:
    """`input` on the outer product of vectors[axis], one-dimensional."""
    x, prepad = _prepared(input, order, mode, cval, prefilter)
    return casting.store_rounded(_resample(x, vectors, order, mode, cval, prepad), dtype)


def geometric_transform(
    input: Array,
    mapping: Callable[..., Any],
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: dict[str, Any] | None = None,
) -> Array:
    """`input` at mapping(output coordinates). See `scipy.ndimage.geometric_transform`.

    The mapping is called while tracing: once with a tuple of coordinate arrays of the output's shape, or, if it cannot
    take arrays, once per point as in SciPy. It must not have effects. A low-level callable raises `NotCovered`.
    """
    spline.check_order(order)
    shape = tuple(input.shape if output_shape is None else output_shape)
    if input.ndim < 1 or len(shape) < 1:
        raise RuntimeError("input and output rank must be > 0")
    if not callable(mapping):
        raise NotCovered("geometric_transform: mapping is a low-level callable, which only SciPy can call")
    points = _mapped_points(mapping, shape, input.ndim, extra_arguments, extra_keywords or {})
    return _interpolate(_at_points, input, points, shape, output, order, mode, cval, prefilter)


def _mapped_points(
    mapping: Callable[..., Any], shape: Sequence[int], rank: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Array]:
    """mapping(point) for all points of the output: one array (*shape) per input axis, working dtype."""
    sizes = tuple(int(n) for n in shape)
    grid = tuple(np.indices(sizes))
    try:
        mapped = mapping(grid, *args, **kwargs)
        whole = [_broadcast(m, sizes) for m in mapped]
    except (TypeError, ValueError, IndexError, jax.errors.JAXTypeError):
        whole = None
    if whole is not None and len(whole) == rank and _agrees(mapping, sizes, whole, args, kwargs):
        return whole
    table = np.empty((rank, *sizes))
    for point in np.ndindex(sizes):
        mapped = mapping(point, *args, **kwargs)
        if len(mapped) != rank:
            raise RuntimeError("mapping must return one coordinate per input axis")
        table[(slice(None), *point)] = mapped
    return list(table)


def _broadcast(m: Any, sizes: tuple[int, ...]) -> Any:
    if isinstance(m, Array):
        return jnp.broadcast_to(m, sizes)
    return np.array(np.broadcast_to(np.asarray(m, np.float64), sizes))


def _agrees(
    mapping: Callable[..., Any], sizes: tuple[int, ...], whole: list[Array], args: Any, kwargs: dict[str, Any]
) -> bool:
    """Whether the mapping of arrays equals the mapping of single points, at the corners and the middle."""
    if 0 in sizes or any(isinstance(w, jax.core.Tracer) for w in whole):
        return True
    probes = {*itertools.product(*((0, n - 1) for n in sizes)), tuple(n // 2 for n in sizes)}
    return all(
        np.array_equal([w[p] for w in whole], np.asarray(mapping(p, *args, **kwargs), float), equal_nan=True)
        for p in probes
    )


def affine_transform(
    input: Array,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Array:
    """`input` at matrix @ (output coordinates) + offset; a matrix of one axis is a diagonal.

    See `scipy.ndimage.affine_transform`.
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
    if matrix.ndim == 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            vectors = [(xp.arange(n) + offset[a] / matrix[a]) * matrix[a] for a, n in enumerate(shape)]
        return _interpolate(_on_axes, input, vectors, shape, output, order, mode, cval, prefilter)
    points = _affine_points(matrix, offset, shape, xp)
    return _interpolate(_at_points, input, points, shape, output, order, mode, cval, prefilter)


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


def _affine_parts(matrix: Any, offset: Any, input_shape: Sequence[int]) -> tuple[Any, Any]:
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


def _vector(values: Any, ndim: int) -> Any:
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
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Array:
    """`input` moved by `shift` cells (one number, or one per axis). See `scipy.ndimage.shift`."""
    spline.check_order(order)
    if input.ndim < 1:
        raise RuntimeError("input and output rank must be > 0")
    moved = _vector(shift, input.ndim)
    shape = input.shape
    vectors = [np.arange(n, dtype=np.float64) - moved[axis] for axis, n in enumerate(shape)]
    return _interpolate(_on_axes, input, vectors, shape, output, order, mode, cval, prefilter)


def zoom(
    input: Array,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Array:
    """`input` resampled to round(n * zoom) cells per axis; `zoom` must be known while tracing.

    See `scipy.ndimage.zoom`.
    """
    spline.check_order(order)
    if input.ndim < 1:
        raise RuntimeError("input and output rank must be > 0")
    factors = arguments.per_axis(zoom, input.ndim)
    if any(isinstance(f, jax.core.Tracer) for f in [zoom, *factors]):
        raise NotCovered("zoom: the zoom factor decides the output's shape and cannot be a traced value")
    shape = tuple(round(n * factor) for n, factor in zip(input.shape, factors, strict=True))
    if prefilter and all(factor == 1 for factor in factors):
        return input.astype(casting.result_dtype(output, input.dtype, complex_output=jnp.iscomplexobj(input)))
    grid_mode = grid_mode and not jnp.iscomplexobj(input)  # SciPy forgets it on the way to the parts
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
    return _interpolate(_on_axes, input, vectors, shape, output, order, mode, cval, prefilter)


def rotate(
    input: Array,
    angle: Any,
    axes: Any = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Array:
    """`input` rotated by `angle` degrees in the plane of `axes`; `angle` must be known while tracing.

    See `scipy.ndimage.rotate`.
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
    turned = _interpolate(_at_points_of_planes, flat, points, shape, output, order, mode, cval, prefilter)
    return jnp.moveaxis(turned.reshape(stacked.shape[:-2] + shape[1:]), (-2, -1), plane)


def _rotation(angle: float) -> np.ndarray:
    """Rotation matrix (2, 2) for degrees, exact at multiples of 90."""
    from scipy.special import cosdg, sindg

    c, s = float(cosdg(angle)), float(sindg(angle))
    return np.array([[c, s], [-s, c]])
