"""Shape: views where NumPy makes views, joins, and repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.ir.views import Broadcast, Diagonal, Reshape, Step, StridedElements, Transpose
from accel.rules.columns import Rounding
from accel.rules.core import cast
from accel.rules.lowering import Array, jnp, join, lax, same, spread, where
from accel.rules.rule import Unsupported, add_rule, rewritten, rule
from accel.rules.special import BroadcastArrays, OfArray

_function: Any


def _reshaped(source: NDArray[Any], result: NDArray[Any], bound: dict[str, Any]) -> Step:
    return Reshape(result.shape, source.shape)


def _permuted(source: NDArray[Any], result: NDArray[Any], bound: dict[str, Any]) -> Step:
    axes = bound.get("axes")
    return Transpose(tuple(axis % source.ndim for axis in axes) if axes else tuple(range(source.ndim))[::-1])


def _permuted_last(source: NDArray[Any], result: NDArray[Any], bound: dict[str, Any]) -> Step:
    axes = tuple(range(source.ndim))
    return Transpose((*axes[:-2], axes[-1], axes[-2]))


def _moved(function: Any) -> Any:
    """The permutation that a function makes, from what it does to axis numbers."""

    def view(source: NDArray[Any], result: NDArray[Any], bound: dict[str, Any]) -> Step:
        probe = np.empty(tuple(range(1, source.ndim + 1)))
        others = {name: value for name, value in bound.items() if value is not source and name not in ("a", "m")}
        return Transpose(tuple(length - 1 for length in function(probe, **others).shape))

    return view


rewritten(np.reshape, "a | shape order", kind=OfArray)(lambda a, shape, order="C": a.reshape(shape, order=order))
rewritten(np.ravel, "a | order", kind=OfArray)(lambda a, order="C": a.ravel(order))
add_rule(np.squeeze, same("squeeze"), "a | axis", view=_reshaped)
add_rule(np.expand_dims, same("expand_dims"), "a | axis", view=_reshaped)
add_rule(np.transpose, same("transpose"), "a | axes", view=_permuted, rounding=Rounding.EXACT)
add_rule(np.swapaxes, same("swapaxes"), "a | axis1 axis2", view=_moved(np.swapaxes))
add_rule(np.moveaxis, same("moveaxis"), "a | source destination", view=_moved(np.moveaxis))
add_rule(np.rollaxis, same("rollaxis"), "a | axis start", view=_moved(np.rollaxis))


def _at_least(least: int) -> Any:
    def rewrite(arys: tuple[Any, ...]) -> Any:
        made = [_raised(least, array) for array in arys]
        return made[0] if len(made) == 1 else tuple(made)

    return rewrite


def _raised(least: int, array: Any) -> Any:
    """By NumPy's own steps, so that a view is the view that NumPy makes."""
    if isinstance(array, (list, tuple)):
        if any(isinstance(part, (list, tuple)) for part in array) or not array:
            raise Unsupported("rule.parameter", "numpy.atleast of nested lists")
        array = np.stack(array)
    ndim = np.ndim(array)
    if ndim >= least:
        return array
    if ndim == 0:
        return np.reshape(array, (1,) * least)
    if ndim == 1:
        return array[None, :] if least == 2 else array[None, :, None]
    return array[:, :, None]


for _least, _function in enumerate((np.atleast_1d, np.atleast_2d, np.atleast_3d), 1):
    rewritten(_function, "*arys")(_at_least(_least))
add_rule(
    np.broadcast_to, same("broadcast_to"), "array | shape", view=lambda source, result, bound: Broadcast(result.shape)
)
add_rule(
    np.diagonal,
    same("diagonal"),
    "a | offset axis1 axis2",
    view=lambda source, result, bound: Diagonal(bound.get("offset", 0), bound.get("axis1", 0), bound.get("axis2", 1)),
)


@rewritten(np.broadcast_arrays, "*args", kind=BroadcastArrays)
def broadcast_arrays(args: tuple[Any, ...]) -> Any:
    shape = np.broadcast_shapes(*(np.shape(array) for array in args))
    return tuple(array if np.shape(array) == shape and shape else np.broadcast_to(array, shape) for array in args)


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Slices of the array, each a view."""
    parts = []
    # Plain numbers: with recorded ones, array_split would be recorded by this function again.
    is_list = type(indices_or_sections) in (list, tuple) or np.ndim(indices_or_sections)
    given: Any = [int(each) for each in indices_or_sections] if is_list else int(indices_or_sections)
    for positions in np.array_split(np.arange(ary.shape[axis]), given):  # need not follow one another
        start = int(positions[0]) if positions.size else 0
        key = [slice(None)] * ary.ndim
        key[axis] = slice(start, start + positions.size)
        parts.append(ary[tuple(key)])
    return parts


for _function in (np.split, np.array_split):
    rewritten(_function, "ary | indices_or_sections axis")(_split)
for _function, _axis_of in (
    (np.vsplit, lambda ary: 0),
    (np.hsplit, lambda ary: 1 if ary.ndim > 1 else 0),
    (np.dsplit, lambda ary: 2),
):
    rewritten(_function, "ary | indices_or_sections")(
        lambda ary, indices_or_sections, axis_of=_axis_of: np.split(ary, indices_or_sections, axis_of(ary))
    )


@rewritten(np.unstack, "x | axis")
def unstack(x: Any, axis: int = 0) -> Any:
    lines = np.moveaxis(x, axis, 0)
    return tuple(lines[i] for i in range(len(lines)))


@rewritten(np.flip, "m | axis")
def flip(m: Any, axis: Any = None) -> Any:
    axes = range(m.ndim) if axis is None else [each % m.ndim for each in (axis if type(axis) is tuple else (axis,))]
    return m[tuple(slice(None, None, -1) if each in axes else slice(None) for each in range(m.ndim))]


rewritten(np.fliplr, "m")(lambda m: m[:, ::-1])
rewritten(np.flipud, "m")(lambda m: m[::-1])


@rule(np.roll, "a | shift axis", rounding=Rounding.EXACT, work=9.0)
def roll(*, a: Array, shift: int | tuple[int, ...], axis: int | tuple[int, ...] | None = None) -> Any:
    """Two slices joined, axis by axis."""
    if axis is None:
        return _rolled(a.reshape(-1), int(np.sum(shift)), 0).reshape(a.shape)
    for by, along in np.broadcast(shift, axis):
        a = _rolled(a, int(by), int(along) % a.ndim)
    return a


def _rolled(a: Array, shift: int, axis: int) -> Any:
    size = a.shape[axis]
    start = -shift % size if size else 0
    if start == 0:
        return a
    parts = (lax.slice_in_dim(a, *bounds, axis=axis) for bounds in ((start, size), (0, start)))
    return join(list(parts), axis)


@rewritten(np.rot90, "m | k axes")
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Reversals and a transposition, all of them views."""
    first, second = (axis % m.ndim for axis in axes)
    k %= 4
    if k == 0:
        return m[:]
    if k == 2:
        return np.flip(np.flip(m, first), second)
    if k == 1:
        return np.swapaxes(np.flip(m, second), first, second)
    return np.flip(np.swapaxes(m, first, second), second)


# -- joins ------------------------------------------------------------------------------------------------------------


def _joined(name: str) -> Any:
    """jax.numpy's join; the parts have the result's dtype already."""

    def lower(*, dtype: type[Any] | None = None, **bound: object) -> Any:
        return getattr(jnp, name)(**bound)

    return lower


@rule(np.concatenate, "*arrays | axis dtype", cast="arrays", rounding=Rounding.EXACT, work=9.0)
def concatenate(
    *, arrays: tuple[Any, ...] | list[Any], axis: int | None = 0, dtype: np.dtype[Any] | type[Any] | None = None
) -> Any:
    """The parts have the result's dtype already."""
    if axis is None:
        return jnp.concatenate([array.reshape(-1) for array in arrays])
    return join(arrays, axis % arrays[0].ndim)


add_rule(
    np.stack,
    _joined("stack"),
    "*arrays | axis dtype",
    cast="arrays",
    rowwise=lambda bound, is_rows: bound.get("axis", 0) != 0 and all(map(is_rows, bound["arrays"])),
    rounding=Rounding.EXACT,
    work=9.0,
)
add_rule(np.vstack, _joined("vstack"), "*tup | dtype", cast="tup")
add_rule(np.hstack, _joined("hstack"), "*tup | dtype", cast="tup")
add_rule(np.dstack, _joined("dstack"), "*tup", cast="tup")
add_rule(
    np.column_stack,
    _joined("column_stack"),
    "*tup",
    cast="tup",
    rowwise=lambda bound, is_rows: all(map(is_rows, bound["tup"])),
)
add_rule(np.append, same("append"), "arr values | axis", cast="arr values")
add_rule(np.block, same("block"), "*arrays", cast="arrays", nested=True)
add_rule(np.tile, same("tile"), "A | reps")


def _is_plainly_padded(*, pad_width: Any, mode: Any = "constant", reflect_type: str = "even", **_: Any) -> bool | None:
    """None where jax.numpy does as NumPy, of one width for each side; False for other modes."""
    is_copied = mode in ("constant", "edge", "wrap", "reflect", "symmetric", "empty") and reflect_type == "even"
    return None if is_copied and not isinstance(pad_width, dict) else False


def _pad(*, array: Any, constant_values: Any = 0, mode: Any = "constant", **bound: Any) -> Any:
    """As jax.numpy's, whose negative floats become the 0 of unsigned numbers, where C's wrap."""
    if mode == "constant":
        constants = cast(constant_values, array.dtype)
        if array.dtype.kind == "u" and (given := jnp.asarray(constant_values)).dtype.kind == "f":
            constants = where(given < 0.0, cast(cast(given, np.dtype(np.int64)), array.dtype), constants)
        bound["constant_values"] = constants
    return jnp.pad(array, mode=mode, **bound)


add_rule(
    np.pad,
    _pad,
    "array constant_values | pad_width mode stat_length reflect_type end_values",
    careful=True,
    holds=_is_plainly_padded,
    otherwise="a mode that computes what it pads with",
    or_on_host=True,
)


@rule(np.repeat, "a | repeats axis", rounding=Rounding.EXACT)
def repeat(*, a: Array, repeats: int | list[Any], axis: int | None = None) -> Any:
    """The positions that each result comes from are known while recording."""
    a, axis = (a.reshape(-1), 0) if axis is None or not a.ndim else (a, axis % a.ndim)
    return jnp.take(a, np.repeat(np.arange(a.shape[axis]), repeats), axis=axis, mode="clip")


@rule(np.delete, "arr | obj axis")
def delete(*, arr: Array, obj: slice | int | list[Any], axis: int | None = None) -> Any:
    arr, axis = (arr.reshape(-1), 0) if axis is None else (arr, axis % arr.ndim)
    return jnp.take(arr, np.delete(np.arange(arr.shape[axis]), obj), axis=axis, mode="clip")


@rule(np.insert, "arr values | obj axis")
def insert(*, arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """NumPy inserts into the numbers of positions, which tells where a result comes from; values count from -1 down."""
    arr, axis = (arr.reshape(-1), 0) if axis is None else (arr, axis % arr.ndim)
    values, single = cast(values, arr.dtype), isinstance(obj, int)
    if not single and (not isinstance(obj, (list, tuple)) or len(obj) < 2 or isinstance(obj[0], bool)):
        raise Unsupported("rule.parameter", "numpy.insert at other than one position or a list of several")
    if single and values.ndim:
        values = jnp.moveaxis(values.reshape((1,) * (arr.ndim - values.ndim) + values.shape), 0, axis)
    count = (values.shape[axis] if values.ndim == arr.ndim else 1) if single else len(obj)
    positions = np.insert(np.arange(arr.shape[axis]), obj, -1 - np.arange(count))
    wide = jnp.broadcast_to(values, (*arr.shape[:axis], count, *arr.shape[axis + 1 :]))
    both = lax.concatenate([arr, wide], axis)
    return jnp.take(both, np.where(positions < 0, arr.shape[axis] - 1 - positions, positions), axis=axis, mode="clip")


def _triangle(name: str) -> Any:
    def lower(*, m: Array, k: int = 0) -> Any:
        return getattr(jnp, name)(jnp.broadcast_to(m, (m.shape[0], m.shape[0])) if m.ndim == 1 else m, k)

    return lower


add_rule(np.tril, _triangle("tril"), "m | k")
add_rule(np.triu, _triangle("triu"), "m | k")
add_rule(np.diag, same("diag"), "v | k", view=lambda source, result, bound: Diagonal(bound.get("k", 0), 0, 1))
add_rule(np.diagflat, same("diagflat"), "v | k")
add_rule(np.resize, same("resize"), "a | new_shape")
add_rule(np.matrix_transpose, spread("matrix_transpose", "x"), "x", view=_permuted_last)


# -- windows ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Windows:
    """The read-only view of all windows along some axes: as numpy's sliding_window_view."""

    sizes: tuple[int, ...]
    axes: tuple[int, ...]

    def read(self, base: Any) -> Any:
        if isinstance(base, np.ndarray):
            return np.lib.stride_tricks.sliding_window_view(base, self.sizes, self.axes)
        for size, axis in zip(self.sizes, self.axes, strict=True):
            count = base.shape[axis] - size + 1
            parts = [lax.slice_in_dim(base, i, i + count, axis=axis) for i in range(size)]
            base = jnp.stack(parts, axis=-1)
        return base

    def write(self, base: Any, value: Any) -> Any:
        raise TypeError("a view of windows is read-only")


def _windows(source: Any, result: Any, bound: Any) -> Windows:
    sizes, axis = bound["window_shape"], bound.get("axis")
    if bound.get("writeable") or bound.get("subok"):
        raise Unsupported("rule.parameter", "writeable windows")
    sizes = tuple(sizes) if isinstance(sizes, (list, tuple)) else (sizes,)
    axes = tuple(range(source.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return Windows(sizes, tuple(one % source.ndim for one in axes))


add_rule(np.lib.stride_tricks.sliding_window_view, None, "x | window_shape axis", view=_windows)


def placed(source: NDArray[Any], result: NDArray[Any], bound: object) -> StridedElements:
    """The step to a view of the operand's elements at regular distances from its first.

    Raises Unsupported where the operand's elements are not in C order, or the view leaves them.
    """
    step = StridedElements(result.shape, tuple(stride // source.itemsize for stride in result.strides))
    aligned = all(stride >= 0 and not stride % source.itemsize for stride in result.strides)
    starts = result.__array_interface__["data"][0] == source.__array_interface__["data"][0]
    if not (source.flags.c_contiguous and aligned and starts and step.shape and step.last < source.size):
        raise Unsupported("rule.parameter", "strides that leave the operand, or one whose elements are not in C order")
    return step


@rule(np.lib.stride_tricks.as_strided, "x | shape strides writeable", view=placed)
def as_strided(*, x: Array, shape: tuple[int, ...] | None = None, **bound: object) -> Any:
    """A copy that shares no memory with the operand, for arrays without elements."""
    return jnp.zeros(x.shape if shape is None else shape, x.dtype)
