"""Reading an array between its cells: at points, and on the outer product of one coordinate vector per axis.

The functions of `accel.ndimage.interpolation.transforms` compute coordinates, and end here.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from accel.ndimage import arguments, boundary, casting, dispatch, kernels
from accel.ndimage.interpolation import spline

_UNFOLDED = ("nearest", "grid-constant")  # modes whose coordinates are not folded
_ENDLESS = ("wrap", "grid-wrap")  # modes in which infinity gives NaN, but minus infinity lies outside
# Order -> modes in which a tap outside has weight 0, or reads the nearest cell: there the first tap is clipped.
_CLIPPED = {0: ("constant", "wrap", "nearest", "reflect", "grid-mirror"), 1: ("constant", "wrap")}
PREPAD = 12  # cells; SciPy extends the input by this much where its prefilter has no exact start value

# -- the parts ---------------------------------------------------------------------------------------------------------


def _index_dtype() -> np.dtype:
    return np.dtype(jax.dtypes.canonicalize_dtype(np.int64))  # measured: no slower than 32 bits


def _total(terms: Iterable[Any]) -> Any:
    return functools.reduce(operator.add, terms)


def _prepared(input: Array, order: int, mode: str, cval: complex, prefilter: bool) -> tuple[Array, int]:
    """The array to interpolate, spline-filtered if asked, and the cells it was extended by."""
    if not prefilter or order < 2:
        return input, 0
    x, reach = casting.to_working(input), 0
    if mode in _UNFOLDED:
        reach, rule = PREPAD, boundary.TAP_RULES[mode]
        if isinstance(cval, float):  # SciPy extends before it converts to double
            with np.errstate(all="ignore"):
                cval = float(np.pad(np.zeros(1, input.dtype), 1, constant_values=cval)[0])
        x = kernels.pad_all(x, [reach] * x.ndim, [2 * reach + 1] * x.ndim, rule, cval)
    return spline.prefilter(x, order, mode), reach


def _first_tap(c: Any, order: int, xp: Any) -> Any:
    """The first tap of coordinates `c`, as a float; the middle one is order // 2 further on."""
    return xp.floor(c if order % 2 else c + 0.5) - order // 2


def _as_index(cell: Array, size: int) -> Array:
    """Whole numbers, to compute indices below `size` with: floats where these are exact, for one conversion in all."""
    return cell if size < 1 / np.finfo(cell.dtype).eps else cell.astype(_index_dtype())


def _gather_flat(flat: Array, index: Array) -> Array:
    """flat[index], whose indices are known to be within bounds: XLA does not clamp them."""
    dims = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    return lax.gather(flat, index[..., None], dims, (1,), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def _strides(shape: Sequence[int]) -> list[int]:
    """Elements from one cell to the next along each axis, in row-major order."""
    return [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))]


def _extended_for_taps(x: Array, order: int, mode: str, cval: complex) -> tuple[Array, int]:
    """`x` with the cells that taps beyond its edges read, so that no tap needs mapping; and how many on each side."""
    if mode in _CLIPPED.get(order, ()) and min(x.shape) > order:
        return x, 0
    reach = order + 1
    size = [2 * reach + 1] * x.ndim
    return kernels.pad_all(casting.to_working(x), [reach] * x.ndim, size, boundary.TAP_RULES[mode], cval), reach


def _sample(x: Array, coordinates: Sequence[Array], order: int, mode: str, cval: complex, prepad: int) -> Array:
    """`x` at points. coordinates: one array (*points) per axis. Returns (*points), working dtype.

    All taps of a point share one index: each reads its own slice of the cells, a constant distance further on. An index
    of its own for every tap, which XLA also clamps, took longer than the reading.
    """
    cells, reach = _extended_for_taps(x, order, mode, cval)
    strides, folded, all_weights = _strides(cells.shape), [], []
    base: Any = 0
    for c, n, stride in zip(coordinates, x.shape, strides, strict=True):
        c = boundary.fold(c + float(prepad) if prepad else c, n, mode)
        near = jnp.clip(c, float(order // 2 - order - 1), float(n + order // 2))  # beyond, taps read the same
        # SciPy's weights at infinity are NaN
        c = jnp.where(jnp.isfinite(c), near, np.nan) if order and mode in _UNFOLDED else near
        start = _first_tap(c, order, jnp)
        if not reach:  # nothing beyond the edges: see _CLIPPED
            start = jnp.clip(start, 0.0, float(n - order - 1))
        base = base + _as_index(start + float(reach), cells.size) * stride
        folded.append(c)
        all_weights.append(spline.weights(c - (start + order // 2), order) if order else [1.0])
    base = base.astype(_index_dtype())
    # The slice of each tap begins its own distance into the cells, and is as long as the last tap's can be: so `base`
    # is within the bounds of each.
    flat, span = cells.reshape(-1), cells.size - order * sum(strides)

    def tapped(offset: int) -> Array:
        return casting.to_working(_gather_flat(lax.slice_in_dim(flat, offset, offset + span), base))

    def along(axis: int, offset: int) -> Array:
        if axis == cells.ndim:
            return tapped(offset)
        terms = (along(axis + 1, offset + tap * strides[axis]) for tap in range(order + 1))
        return _total(term * w if order else term for term, w in zip(terms, all_weights[axis], strict=True))

    value = _linear(tapped, strides, all_weights) if order == 1 else along(0, 0)
    if mode in _UNFOLDED:
        return value
    if mode in _ENDLESS:
        inside = _total(c if n > 1 else f for c, f, n in zip(coordinates, folded, x.shape, strict=True)) > -np.inf
    else:
        inside = _inside(folded, mode)
    return jnp.where(inside, value, cval)


def _linear(tapped: Callable[[int], Array], strides: Sequence[int], all_weights: Sequence[Sequence[Any]]) -> Any:
    """The weighted sum of a point's neighbours with SciPy's rounding: one after the other, weighted axis by axis.

    tapped: a neighbour by its distance in the cells. Higher orders are added up along one axis after the other: with
    four taps, two axes take 20 products in place of 32.
    """
    total: Any = 0.0
    for taps in itertools.product(range(2), repeat=len(strides)):
        term = tapped(sum(map(operator.mul, taps, strides)))
        for tap, weights in zip(taps, all_weights, strict=True):
            term = term * weights[tap]
        total = total + term
    return total


def _inside(folded: Sequence[Array], mode: str) -> Array:
    """A mask of points without NaN coordinates and, under "constant", without outside ones."""
    if mode == "constant":
        return functools.reduce(operator.and_, (c > -1.0 for c in folded))
    total = _total(folded)
    return total == total  # only a NaN, or infinities, make it differ


def _resample_axis(x: Array, c: Array | NDArray[Any], axis: int, order: int, mode: str, cval: complex) -> Array:
    """`x` interpolated along one axis at coordinates c (m,), NumPy or JAX; the axis becomes m long.

    Coordinates in mode "constant" that lie outside must be masked by the caller.
    """
    xp: Any = np if isinstance(c, np.ndarray) else jnp
    n, rule, reach = x.shape[axis], boundary.TAP_RULES[mode], order + 1
    first = _first_tap(c, order, xp)
    fraction = c - (first + order // 2)
    first = xp.where(xp.isnan(first), 0.0, first)  # an index has to be some number; the weights stay NaN
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


def _resample(x: Array, coordinates: Sequence[Any], order: int, mode: str, cval: complex, prepad: int) -> Array:
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


# -- compiled ----------------------------------------------------------------------------------------------------------


def interpolate(
    kernel: Callable[..., Array],
    input: Array,
    coordinates: Any,
    shape: Sequence[int],
    output: Any,
    order: int,
    mode: str,
    cval: object,
    prefilter: bool,
) -> Array:
    """kernel(input, coordinates, dtype, order, mode, cval, prefilter), compiled unless a trace is under way.

    `shape` is the result's. What decides the program is static; coordinates are not.
    """
    dtype = casting.result_dtype(output, input.dtype)
    boundary.rule_of(mode, boundary.TAP_RULES)
    if input.ndim < 1 or len(shape) < 1:
        raise RuntimeError("input and output rank must be > 0")
    casting.require_storable(input.dtype, dtype)
    cval = arguments.fill_value(cval)
    if input.size == 0 or 0 in shape:
        return jnp.zeros(shape, dtype)
    static = {"dtype": dtype, "order": int(order), "mode": mode, "cval": cval, "prefilter": bool(prefilter)}
    if dispatch.is_traced(input, coordinates, cval):
        return kernel(input, coordinates, **static)
    return dispatch.compiled(kernel, static)(input, coordinates)


def at_points(
    input: Array,
    points: Array | NDArray[Any] | list[Any],
    dtype: np.dtype,
    order: int,
    mode: str,
    cval: complex,
    prefilter: bool,
) -> Array:
    """`input` at points[axis], arrays of one shape."""
    coordinates = [casting.to_working(jnp.asarray(points[axis])) for axis in range(input.ndim)]
    x, prepad = _prepared(input, order, mode, cval, prefilter)
    return casting.store_rounded(_sample(x, coordinates, order, mode, cval, prepad), dtype)


def at_points_of_planes(
    input: Array, points: list[Any], dtype: np.dtype, order: int, mode: str, cval: complex, prefilter: bool
) -> Array:
    """As `at_points`, for each input[k]."""
    return jax.vmap(lambda plane: at_points(plane, points, dtype, order, mode, cval, prefilter))(input)


def on_axes(
    input: Array, vectors: list[Any], dtype: np.dtype, order: int, mode: str, cval: complex, prefilter: bool
) -> Array:
    """`input` on the outer product of vectors[axis], one-dimensional."""
    x, prepad = _prepared(input, order, mode, cval, prefilter)
    return casting.store_rounded(_resample(x, vectors, order, mode, cval, prepad), dtype)
