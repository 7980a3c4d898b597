"""Reductions that leave NaN out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules.columns import Reads
from accel.rules.lowering import Array, axis_within, jnp, number, where
from accel.rules.lowering import where as choose
from accel.rules.rule import Unsupported, add_rule, rule
from accel.rules.tables.statistics.reductions import (
    SUMS,
    VARIANCES,
    count_of,
    mean_of,
    real_only,
    reduction,
    running,
    var_of,
)


def _is_nan(a: object) -> Any:
    return a != a


def _nan_as(value: float) -> Callable[[Any], Any]:
    return lambda a: where(_is_nan(a), number(value, a), a) if a.dtype.kind in "fc" else a


def _no_nan(*, a: Any, where: Any = None, **others: Any) -> tuple[Any, ...]:
    return (~_is_nan(a) if where is None else ~_is_nan(a) & where,)


NO_NAN = Reads(("a",), _no_nan)

add_rule(np.nancumsum, running("cumsum", _nan_as(0)), "a | axis dtype", out_decides=True)
add_rule(np.nancumprod, running("cumprod", _nan_as(1)), "a | axis dtype", out_decides=True)
add_rule(np.nansum, reduction("sum", _nan_as(0)), SUMS, out_decides=True, reads=NO_NAN)
add_rule(np.nanprod, reduction("prod", _nan_as(1)), SUMS, out_decides=True, reads=NO_NAN)


def _nan_extreme(name: str, fill: float) -> Callable[..., Any]:
    """NaN only where all are."""
    reduce = reduction(name, _nan_as(fill))

    def lower(*, a: Array, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
        axis = axis_within(axis, real_only(a).ndim)
        result = reduce(a=a, axis=axis, keepdims=keepdims)
        if a.dtype.kind != "f":
            return result
        return where(_is_nan(a).all(axis=axis, keepdims=keepdims), number(np.nan, a), result)

    return lower


add_rule(np.nanmax, _nan_extreme("max", -np.inf), "a | axis keepdims", reads=NO_NAN)
add_rule(np.nanmin, _nan_extreme("min", np.inf), "a | axis keepdims", reads=NO_NAN)


def _some(*, a: Array | NDArray[Any], shape: tuple[int, ...], axis: int | None = None, keepdims: bool = False) -> Any:
    """NumPy raises where a slice is all NaN."""
    return (~_is_nan(a).all(axis=axis_within(axis, a.ndim))).all()


def _nan_place(name: str, fill: float) -> Callable[..., Any]:
    find = reduction(name, real_only)

    def lower(*, a: Array, **bound: object) -> Any:
        return find(a=where(_is_nan(a), number(fill, a), a) if a.dtype.kind == "f" else a, **bound)

    return lower


add_rule(np.nanargmax, _nan_place("argmax", -np.inf), "a | axis keepdims", holds=_some)
add_rule(np.nanargmin, _nan_place("argmin", np.inf), "a | axis keepdims", holds=_some)


@rule(np.nanmean, "a where | axis dtype keepdims", reads=NO_NAN)
def nanmean(*, a: object, where: Any = None, **bound: Any) -> Any:
    return mean_of(a=a, where=_seen(a, where), **bound)


def _seen(a: Any, chosen: Any) -> Any:
    """The mask of what counts: chosen, and no NaN."""
    if a.dtype.kind not in "fc":
        return chosen
    return ~_is_nan(a) if chosen is None else ~_is_nan(a) & chosen


def _nanvar(*, a: Any, where: Any = None, ddof: Any = 0, correction: Any = None, **bound: Any) -> Any:
    """NaN where no degree of freedom is left."""
    ddof = ddof if correction is None else correction
    if a.dtype.kind in "fc" and bound.get("dtype", a.dtype) != a.dtype:
        raise Unsupported("rule.parameter", "a nan-variance in another dtype than the array's")
    seen = _seen(a, where)
    result = var_of(a=a, where=seen, ddof=ddof, **bound)
    if seen is None or a.dtype.kind not in "fc":
        return result
    left = count_of(a, seen, axis_within(bound.get("axis"), a.ndim), bound.get("keepdims", False)) - ddof
    return choose(left <= 0, number(np.nan, result), result)


def _nanstd(**bound: object) -> Any:
    return jnp.sqrt(_nanvar(**bound))


add_rule(np.nanvar, _nanvar, VARIANCES, reads=NO_NAN)
add_rule(np.nanstd, _nanstd, VARIANCES, reads=NO_NAN)
