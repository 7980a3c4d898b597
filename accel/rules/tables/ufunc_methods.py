"""Methods of ufuncs: reduce, accumulate, reduceat, outer and at, a row for each ufunc and method."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules.core import cast, in_bounds, leaves
from accel.rules.lowering import Array, jnp, lax, nonzero
from accel.rules.rule import Unsupported, add_rule, rewritten
from accel.rules.special import WritesInto
from accel.rules.tables import ufuncs
from accel.rules.tables.statistics.reductions import extremes, reduction, running

UNROLLED = 64
"""Maximum elements along an axis of reductions that XLA lacks, which are written out. Guess."""

REDUCE = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}
"""Reductions that jax.numpy has under another name."""

ASSOCIATIVE = (
    np.maximum,
    np.minimum,
    np.fmax,
    np.fmin,
    np.logical_and,
    np.logical_or,
    np.logical_xor,
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
)
"""Exact, and the same however the elements are bracketed: these may be folded in pairs, over any number of elements."""

UNFOLDED = (np.power, np.arctan2)
"""With AVX-512 NumPy's loops combine the first and the last element alone. Integers raise for negative powers."""

ABSOLUTE = (np.hypot, np.gcd)
"""Their reductions start at 0, which makes one element alone positive."""

ACCUMULATE = {np.add: "cumsum", np.multiply: "cumprod"}

RUNNING = {np.maximum: "cummax", np.minimum: "cummin"}
"""Accumulations of real numbers that JAX has by a name, by which kernels take them."""

AT: dict[Any, str] = {
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.maximum: "max",
    np.minimum: "min",
}
"""In-place operations through indices, by the name of JAX's scatter."""


def _reduce_by_name(name: str) -> Callable[..., Any]:
    def lower(*, array: Array, axis: int | None = 0, dtype: np.dtype[Any] | None = None, **bound: object) -> Any:
        if dtype is not None and name not in ("sum", "prod"):
            raise Unsupported("rule.parameter", f"{name} with dtype")
        if dtype is not None:
            bound["dtype"] = dtype
        if name in ("max", "min"):
            return extremes(name)(a=array, axis=axis, **bound)
        return reduction(name, {"all": nonzero, "any": nonzero}.get(name))(a=array, axis=axis, **bound)

    return lower


def _loop(ufunc: np.ufunc, array: Any, dtype: Any) -> tuple[Any, ...]:
    if dtype is not None:
        raise Unsupported("rule.parameter", f"{ufunc.__name__} with dtype")
    return ufunc.resolve_dtypes((None, array.dtype, None), reduction=True)


def _fold(ufunc: np.ufunc, array: Any, axis: Any, dtype: Any) -> list[Any]:
    """Every partial result along an axis."""
    if ufunc in UNFOLDED:
        raise Unsupported("rule.parameter", f"a reduction by {ufunc.__name__}")
    if not array.ndim or not isinstance(axis, int) or not 0 < array.shape[axis] <= UNROLLED:
        raise Unsupported("rule.parameter", f"a reduction by {ufunc.__name__} over many elements")
    loop, step = _loop(ufunc, array, dtype), ufuncs.rule_for(ufunc).lower
    assert step is not None
    rows = [lax.index_in_dim(array, i, axis % array.ndim, keepdims=False) for i in range(array.shape[axis])]
    partial = [cast(rows[0], loop[-1])]
    for row in rows[1:]:
        partial.append(step(partial[-1], row, loop=loop))
    return partial


def _step_in_pairs(ufunc: np.ufunc, array: Any, axis: Any, dtype: Any) -> Callable[[Any, Any], Any] | None:
    """The function of neighbours that folds an array of many elements, where the order of brackets is free."""
    if ufunc not in ASSOCIATIVE or not array.ndim or not isinstance(axis, int) or array.shape[axis] <= UNROLLED:
        return None
    loop, step = _loop(ufunc, array, dtype), ufuncs.rule_for(ufunc).lower
    if step is None or any(each != array.dtype for each in loop):
        return None
    return functools.partial(step, loop=loop)


def _total_in_pairs(step: Callable[[Any, Any], Any], lines: Any) -> Any:
    """The lines of the first axis folded into one, each with its neighbour, as often as it takes."""
    while (count := len(lines)) > 1:
        even = count - count % 2
        lines = jnp.concatenate([step(lines[0:even:2], lines[1:even:2]), lines[even:]])
    return lines[0]


def _reduce_by_folding(ufunc: np.ufunc) -> Callable[..., Any]:
    def lower(*, array: Array, axis: int | None = 0, dtype: np.dtype[Any] | None = None, keepdims: bool = False) -> Any:
        step = _step_in_pairs(ufunc, array, axis, dtype)
        if step is None:
            total = _fold(ufunc, array, axis, dtype)[-1]
            total = jnp.abs(total) if ufunc in ABSOLUTE else total
        else:
            total = _total_in_pairs(step, jnp.moveaxis(array, axis, 0))
        return jnp.expand_dims(total, axis) if keepdims else total

    return lower


def _accumulate_by_folding(ufunc: np.ufunc) -> Callable[..., Any]:
    def lower(*, array: Array, axis: int | None = 0, dtype: np.dtype[Any] | None = None) -> Any:
        step = _step_in_pairs(ufunc, array, axis, dtype)
        if step is None:
            return jnp.stack(_fold(ufunc, array, axis, dtype), axis)
        axis = (axis or 0) % array.ndim
        if ufunc in RUNNING and array.dtype.kind in "fiu":
            return getattr(lax, RUNNING[ufunc])(array, axis)
        return lax.associative_scan(step, array, axis=axis)

    return lower


def _outer(ufunc: np.ufunc) -> Callable[..., Any]:
    def rewrite(A: Any, B: Any) -> Any:
        if not (hasattr(A, "dtype") and hasattr(B, "dtype")):  # here a number does not follow the other's dtype
            raise Unsupported("rule.parameter", f"{ufunc.__name__}.outer of a number")
        return ufunc(np.reshape(A, np.shape(A) + (1,) * np.ndim(B)), B)

    return rewrite


def _reduceat(ufunc: np.ufunc) -> Callable[..., Any]:
    def rewrite(array: Any, indices: object, axis: int = 0) -> Any:
        if not isinstance(indices, (list, tuple)):
            raise Unsupported("rule.parameter", f"{ufunc.__name__}.reduceat with indices that are no list")
        lines = np.moveaxis(array, axis, 0)
        # from each index up to the next; where the next is not larger, the one element at the index, which is copied
        stops = [*indices[1:], len(lines)]
        parts = [
            ufunc.reduce(lines[start:stop], axis=0)
            if start + 1 < stop
            else ufunc.accumulate(lines[start:][:1], axis=0)[0]
            for start, stop in zip(indices, stops, strict=True)
        ]
        return np.stack(parts, axis=axis)

    return rewrite


def _at(ufunc: np.ufunc) -> Callable[..., Any]:
    def lower(*, a: Array, indices: object, b: Array | float) -> Any:
        _check_at(ufunc, a.dtype, b)
        return getattr(a.at[_indices(indices)], AT[ufunc])(cast(jnp.asarray(b), a.dtype))

    return lower


def _check_at(ufunc: np.ufunc, dtype: np.dtype[Any], b: Array | float) -> None:
    """NumPy casts each result to the array's dtype, not the operand: the same where they compute in that dtype.

    And where whole numbers wrap, or a number of the program's text is one of the dtype.
    """
    given = np.asarray(b).dtype if isinstance(b, (bool, int, float, complex)) else b.dtype
    order = AT[ufunc] in ("max", "min")
    if dtype.kind == "b" or (order and dtype.kind == "c"):
        raise Unsupported("rule.parameter", f"{ufunc.__name__}.at on {dtype}")
    if np.promote_types(dtype, given) == dtype:
        return
    wraps = not order and dtype.kind in "iu" and np.promote_types(dtype, given).kind in "iu"
    if not wraps and not _is_number_of(b, dtype):
        raise Unsupported("rule.parameter", f"{ufunc.__name__}.at on {dtype} with {given}")


def _is_number_of(b: Array | float, dtype: np.dtype[Any]) -> bool:
    """Whether a number is one of the dtype; of floats only single precision is as good as what it is computed in."""
    if isinstance(b, int) and dtype.kind in "iu" and dtype != np.uint64:
        return bool(np.iinfo(dtype).min <= b <= np.iinfo(dtype).max)
    return isinstance(b, (int, float)) and dtype == np.float32 and abs(b) <= np.finfo(dtype).max


def _indices(indices: object) -> tuple[Any, ...]:
    """An index array for each axis. Small dtypes cannot hold every size that JAX compares with."""
    entries = indices if isinstance(indices, tuple) else (indices,)
    return tuple(_index_array(entry).astype(np.int64) for entry in entries)


def _index_array(entry: object) -> Any:
    if hasattr(entry, "dtype"):
        return entry
    return np.asarray(entry) if all(map(np.isscalar, leaves(entry))) else jnp.asarray(entry)


def _at_holds(
    *, a: Array | NDArray[Any], indices: object, shape: tuple[Any, ...], b: Array | NDArray[Any] | float | None = None
) -> Any:
    """Index arrays within bounds; no masks, slices or new axes."""
    entries = indices if isinstance(indices, tuple) else (indices,)
    if any(entry is None or entry is Ellipsis or isinstance(entry, slice) for entry in entries):
        return False
    arrays = [_index_array(entry) for entry in entries]
    if not 0 < len(arrays) <= a.ndim or any(array.dtype.kind not in "iu" for array in arrays):
        return False
    return functools.reduce(operator.and_, map(in_bounds, arrays, a.shape))


_REDUCE = inspect.signature(lambda array, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=True: None)
_ACCUMULATE = inspect.signature(lambda array, axis=0, dtype=None, out=None: None)
_REDUCEAT = inspect.signature(lambda array, indices, axis=0, dtype=None, out=None: None)
_OUTER = inspect.signature(lambda A, B, dtype=None, out=None: None)
_AT = inspect.signature(lambda a, indices, b=None: None)
# of a ufunc's methods, which are written in C


def _binary() -> list[np.ufunc]:
    return [
        value
        for value in dict.fromkeys(value for value in vars(np).values() if isinstance(value, np.ufunc))
        if value.nin == 2 and value.nout == 1 and not value.signature
    ]


for _ufunc in _binary():
    add_rule(
        _ufunc.reduce,
        _reduce_by_name(REDUCE[_ufunc]) if _ufunc in REDUCE else _reduce_by_folding(_ufunc),
        "array initial where | axis dtype keepdims" if _ufunc in REDUCE else "array | axis dtype keepdims",
        out_decides=_ufunc in ACCUMULATE,
        signature=_REDUCE,
    )
    add_rule(
        _ufunc.accumulate,
        running(ACCUMULATE[_ufunc], along=0) if _ufunc in ACCUMULATE else _accumulate_by_folding(_ufunc),
        "array | axis dtype",
        out_decides=_ufunc in ACCUMULATE,
        signature=_ACCUMULATE,
    )
    rewritten(_ufunc.outer, "A B", signature=_OUTER)(_outer(_ufunc))
    rewritten(_ufunc.reduceat, "array indices | axis", signature=_REDUCEAT, or_on_host=True)(_reduceat(_ufunc))
    if _ufunc in AT:
        add_rule(
            _ufunc.at,
            _at(_ufunc),
            "a *indices b",
            signature=_AT,
            special=WritesInto(),
            holds=_at_holds,
        )
