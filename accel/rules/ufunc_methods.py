"""Methods of ufuncs: reduce, accumulate, reduceat, outer and at, a row for each ufunc and method."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from accel.rules import ufuncs
from accel.rules.core import cast, in_bounds
from accel.rules.lowering import jnp, lax, nonzero
from accel.rules.reductions import OUT_DTYPE, OUT_SAME, real_only, reduction, running
from accel.rules.rule import Unsupported, add_rule, rewritten

UNROLLED = 64
"""Reductions that XLA has not are written out, up to so many elements along the axis."""

REDUCE = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}
"""Reductions that jax.numpy has under another name."""

ACCUMULATE = {np.add: "cumsum", np.multiply: "cumprod"}
AT = {np.add: "add", np.subtract: "subtract", np.multiply: "multiply", np.maximum: "max", np.minimum: "min"}
"""In-place operations through indices, by the name of JAX's scatter."""


def _reduce_signature(
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> None: ...


def _accumulate_signature(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> None: ...


def _reduceat_signature(array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> None: ...


def _outer_signature(A: Any, B: Any, dtype: Any = None, out: Any = None) -> None: ...


def _at_signature(a: Any, indices: Any, b: Any = None) -> None: ...


def _reduce_by_name(name: str) -> Callable[..., Any]:
    def lower(*, array: Any, axis: Any = 0, dtype: Any = None, **bound: Any) -> Any:
        if dtype is not None and name not in ("sum", "prod"):
            raise Unsupported("rule.parameter", f"{name} with dtype")
        if name in ("sum", "prod"):
            bound["dtype"] = dtype
        prepare = {"max": real_only, "min": real_only, "all": nonzero, "any": nonzero}.get(name)
        return reduction(name, prepare)(a=array, axis=axis, **bound)

    return lower


def _loop(ufunc: np.ufunc, array: Any, dtype: Any) -> tuple[Any, ...]:
    if dtype is not None:
        raise Unsupported("rule.parameter", f"{ufunc.__name__} with dtype")
    return ufunc.resolve_dtypes((None, array.dtype, None), reduction=True)


def _fold(ufunc: np.ufunc, array: Any, axis: Any, dtype: Any) -> list[Any]:
    """Every partial result along an axis."""
    if not array.ndim or not isinstance(axis, int) or not 0 < array.shape[axis] <= UNROLLED:
        raise Unsupported("rule.parameter", f"a reduction by {ufunc.__name__} over many elements")
    loop, step = _loop(ufunc, array, dtype), ufuncs.rule_for(ufunc).lower
    assert step is not None
    rows = [lax.index_in_dim(array, i, axis % array.ndim, keepdims=False) for i in range(array.shape[axis])]
    partial = [cast(rows[0], loop[-1])]
    for row in rows[1:]:
        partial.append(step(partial[-1], row, loop=loop))
    return partial


def _reduce_by_folding(ufunc: np.ufunc) -> Callable[..., Any]:
    def lower(*, array: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False) -> Any:
        total = _fold(ufunc, array, axis, dtype)[-1]
        return jnp.expand_dims(total, axis) if keepdims else total

    return lower


def _accumulate_by_folding(ufunc: np.ufunc) -> Callable[..., Any]:
    def lower(*, array: Any, axis: Any = 0, dtype: Any = None) -> Any:
        return jnp.stack(_fold(ufunc, array, axis, dtype), axis)

    return lower


def _outer(ufunc: np.ufunc) -> Callable[..., Any]:
    def rewrite(A: Any, B: Any) -> Any:
        return ufunc(np.reshape(A, np.shape(A) + (1,) * np.ndim(B)), B)

    return rewrite


def _reduceat(ufunc: np.ufunc) -> Callable[..., Any]:
    def rewrite(array: Any, indices: Any, axis: int = 0) -> Any:
        if not isinstance(indices, (list, tuple)):
            raise Unsupported("rule.parameter", f"{ufunc.__name__}.reduceat with indices that are no list")
        lines = np.moveaxis(array, axis, 0)
        stops = [*indices[1:], len(lines)]
        parts = [
            ufunc.reduce(lines[start:stop], axis=0) if start < stop else ufunc.reduce(lines[start : start + 1], axis=0)
            for start, stop in zip(indices, stops, strict=True)
        ]
        return np.stack(parts, axis=axis)

    return rewrite


def _at(name: str) -> Callable[..., Any]:
    def lower(*, a: Any, indices: Any, b: Any) -> Any:
        if a.dtype.kind == "b":
            raise Unsupported("rule.parameter", "ufunc.at on booleans")
        return getattr(a.at[indices], name)(cast(b, a.dtype))

    return lower


def _at_holds(*, a: Any, indices: Any, shape: Any, b: Any = None) -> Any:
    indices = np.asarray(indices) if isinstance(indices, (int, list)) else indices
    return indices.dtype.kind in "iu" and in_bounds(indices, a.shape[0])


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


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
        notes=OUT_DTYPE if _ufunc in ACCUMULATE else OUT_SAME,
        signature=_signature(_reduce_signature),
    )
    add_rule(
        _ufunc.accumulate,
        running(ACCUMULATE[_ufunc], along=0) if _ufunc in ACCUMULATE else _accumulate_by_folding(_ufunc),
        "array | axis dtype",
        notes=OUT_DTYPE if _ufunc in ACCUMULATE else OUT_SAME,
        signature=_signature(_accumulate_signature),
    )
    rewritten(_ufunc.outer, "A B", signature=_signature(_outer_signature))(_outer(_ufunc))
    rewritten(_ufunc.reduceat, "array | indices axis", signature=_signature(_reduceat_signature))(_reduceat(_ufunc))
    if _ufunc in AT:
        add_rule(
            _ufunc.at,
            _at(AT[_ufunc]),
            "a indices b",
            signature=_signature(_at_signature),
            special="write",
            holds=_at_holds,
        )
