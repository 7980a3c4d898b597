"""Along an axis: differences, gradients, trapezoidal sums, interpolation."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from accel.rules.columns import Rounding
from accel.rules.core import cast, in_common_dtype, namespace_of
from accel.rules.derivatives import derived_from
from accel.rules.lowering import Array, jnp, join, lax, number, where
from accel.rules.quotients import remainder
from accel.rules.rule import Unsupported, rule
from accel.rules.tables.statistics.sorting import find_places
from accel.rules.tracing import current

# -- differences ------------------------------------------------------------------------------------------------------


@rule(np.diff, "a prepend append | n axis", rounding=Rounding.ROUNDED)
def diff(
    *, a: Array, n: int = 1, axis: int = -1, prepend: Array | float | None = None, append: Array | float | None = None
) -> Any:
    axis %= a.ndim
    parts = [_edge(given, a, axis) for given in (prepend, append)]
    if any(part is not None for part in parts):
        pieces = [part for part in (parts[0], a, parts[1]) if part is not None]
        a = join(in_common_dtype(*pieces), axis)
    for _ in range(n):
        upper, lower = (_but_one(a, start, axis) for start in (1, 0))
        # NumPy has no subtraction of truths, and takes whether they differ
        a = upper != lower if a.dtype.kind == "b" else upper - lower
    return a


def _but_one(a: Array, start: int, axis: int) -> Any:
    """All but one element along an axis, from `start` on."""
    size = a.shape[axis]
    start = min(start, size)
    return lax.slice_in_dim(a, start, start + max(0, size - 1), axis=axis)


def _edge(given: Any, a: Any, axis: int) -> Any:
    if given is None:
        return None
    given = jnp.asarray(given)
    return given if given.ndim else jnp.broadcast_to(given, (*a.shape[:axis], 1, *a.shape[axis + 1 :]))


@rule(np.trapezoid, "y x dx | axis")
def trapezoid(*, y: Array, x: Array | None = None, dx: Array | float = 1.0, axis: int = -1) -> Any:
    """The width of each interval times the mean of its ends, summed."""
    axis %= y.ndim
    upper, lower = (_but_one(y, start, axis) for start in (1, 0))
    if x is None:
        width = dx
    else:
        width = diff(a=x, axis=-1 if x.ndim == 1 else axis)
        width = width.reshape((-1,) + (1,) * (y.ndim - axis - 1)) if x.ndim == 1 else width
    # NumPy's sum of truths is their `or`
    height = cast(upper | lower, jnp.result_type(width, float)) if y.dtype.kind == "b" else upper + lower
    area = (cast(width, height.dtype) if getattr(width, "dtype", None) == np.bool_ else width) * height
    return ((area if area.dtype.kind in "fc" else cast(area, np.dtype(float))) / 2.0).sum(axis=axis)


@rule(np.unwrap, "p discont | axis period")
def unwrap(*, p: Array, **bound: object) -> Any:
    if p.dtype.kind != "f":
        raise Unsupported("rule.parameter", "numpy.unwrap of numbers that are no floats")
    return derived_from(jnp.unwrap(p, **bound), p)  # what it adds are whole periods


# -- gradients --------------------------------------------------------------------------------------------------------


def _is_finite_slope(*, varargs: tuple[Any, ...] = (), edge_order: int = 1, **_: Any) -> Any:
    """Python's numbers raise where NumPy divides by them at the edges."""
    numbers = [step != 0 for step in varargs if not getattr(step, "ndim", 0)] if edge_order == 2 else []
    return functools.reduce(operator.and_, numbers) if numbers else None


@rule(np.gradient, "f *varargs | axis edge_order", work=9.0, holds=_is_finite_slope)
def gradient(*, f: Array, varargs: tuple[Any, ...] = (), axis: int | None = None, edge_order: int = 1) -> Any:
    """Second-order differences inside, of first or second order at the edges, by NumPy's formulas.

    numpy.gradient's documentation derives them, also for uneven distances.
    """
    axes = tuple(range(f.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    steps = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    if any(_kind(step) in ("b", "c") or (f.dtype == np.float16 and _kind(step) == "f") for step in steps):
        raise Unsupported("rule.parameter", "numpy.gradient: distances that are truths, complex, or wider than halves")
    f = f if f.dtype.kind in "fc" else f.astype(float)
    parts = [_slope(f, jnp.asarray(step), ax % f.ndim, edge_order) for step, ax in zip(steps, axes, strict=True)]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _kind(x: Any) -> str:
    """The kind of an array's dtype; of Python's numbers that follow the array's, none."""
    return "c" if type(x) is complex else "number" if type(x) in (int, float) else x.dtype.kind


def _slope(f: Array, step: Array, axis: int, edge_order: int) -> Any:
    size = f.shape[axis]

    def part(start: int, count: int = 1) -> Any:
        start = start % size
        return lax.slice_in_dim(f, start, start + count, axis=axis)

    if step.ndim:
        step = step if step.dtype.kind == "f" else cast(step, np.dtype(float))
        steps = step[1:] - step[:-1]  # NumPy computes in the wider dtype of both, and stores in f's
        at = (1,) * axis + (-1,) + (1,) * (f.ndim - axis - 1)
        before, after = steps[:-1].reshape(at), steps[1:].reshape(at)
        # two points have one step
        first, second, penult, last = steps[0], steps[min(1, size - 2)], steps[max(-2, 1 - size)], steps[-1]
        total = before + after
        uneven = (
            -after / (before * total) * part(0, size - 2)
            + (after - before) / (before * after) * part(1, size - 2)
            + before / (after * total) * part(2, size - 2)
        )
        # NumPy takes the formula for even distances where all are equal. That depends on values: both are computed
        even = (steps == first).all()
        inner = where(even, _even_slope(part(0, size - 2), part(2, size - 2), first), uneven)
    else:
        even = jnp.asarray(True)
        first = second = penult = last = cast(step, f.real.dtype)
        inner = _even_slope(part(0, size - 2), part(2, size - 2), first)
    if edge_order == 1:
        begin, end = (part(1) - part(0)) / first, (part(-1) - part(-2)) / last
    else:
        begin = _edge_slope((part(0), part(1), part(2)), first, second, even)
        end = _edge_slope((part(-1), part(-2), part(-3)), last, penult, even, -1)
    return join([cast(each, f.dtype) for each in (begin, inner, end)], axis)


def _even_slope(before: Array, after: Array, step: Array) -> Any:
    """At the middle of three points with equal distances: its own value does not enter."""
    return (after - before) / (number(2, step) * step)


def _edge_slope(points: tuple[Any, ...], near: Array, far: Array, even: Any, way: int = 1) -> Any:
    """The slope at the first of three points, by the parabola through them. way: -1 adds from the last one on."""
    total, steps = near + far, number(2, near) * near + far
    uneven = -steps / (near * total), total / (near * far), -near / (far * total)
    plain = [number(each, near) / near for each in (-1.5, 2.0, -0.5)]
    weights = [where(even, each, other) for each, other in zip(plain, uneven, strict=True)]
    terms = [number(way, weight) * weight * point for weight, point in zip(weights, points, strict=True)]
    return functools.reduce(operator.add, terms[::way])


# -- interpolation ----------------------------------------------------------------------------------------------------


def _points_rise(*, xp: Any, period: Any = None, **rest: Any) -> Any:
    """Whether points rise, or, with a period, all differ within it (NumPy's sort leaves the order of equals open)."""
    if period is None:
        return (xp[:-1] <= xp[1:]).all()
    if xp.dtype.kind == "c":
        return False
    space = namespace_of(xp)
    xp = space.sort(space.remainder(xp.astype(float), abs(period)))
    return (xp[:-1] < xp[1:]).all() & (period != 0)


def _interpolates_rows(bound: Mapping[str, Any], is_rows: Callable[[object], bool]) -> bool:
    """Whether only the places are selected, and not the points."""
    return not any(is_rows(value) for name, value in bound.items() if name != "x")


@rule(np.interp, "x xp fp left right period", holds=_points_rise, rowwise=_interpolates_rows)
def interp(*, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """By NumPy's own formula: the slope times the distance from the left point, for points that rise."""
    dtype = np.dtype(complex) if fp.dtype.kind == "c" else np.dtype(float)
    x, xp, fp = cast(x, np.dtype(float)), cast(xp, np.dtype(float)), cast(fp, dtype)
    if period is not None:
        left = right = None
        period = jnp.abs(cast(period, np.dtype(float)))
        x, xp = remainder(x, period), remainder(xp, period)
        order = jnp.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp, fp = join([xp[-1:] - period, xp, xp[:1] + period], 0), join([fp[-1:], fp, fp[:1]], 0)
    last = xp.shape[0] - 1
    left, right = (cast(fp[at] if given is None else given, dtype) for given, at in ((left, 0), (right, last)))
    if last == 0:
        return where(x < xp[0], left, where(x > xp[0], right, jnp.broadcast_to(fp[0], x.shape)))
    if dtype.kind == "c":
        raise Unsupported("rule.parameter", "numpy.interp of complex numbers")
    found = find_places(xp, x, "right") - 1
    at = jnp.clip(found, 0, last - 1)
    x0, x1, f0, f1, inner = xp[at], xp[at + 1], fp[at], fp[at + 1], x
    if current().has_derivatives:  # beyond the ends nothing of this is read: a NaN would get into derivatives
        outside = (found < 0) | (found >= last)
        x0, f0, f1, inner = (where(outside, number(0, x), each) for each in (x0, f0, f1, x))
        x1 = where(outside, number(1, x), x1)
    slope = (f1 - f0) / (x1 - x0)
    result = slope * (inner - x0) + f0
    again = slope * (inner - x1) + f1  # where that is NaN, NumPy goes from the right point
    result = where(result == result, result, where(again == again, again, where(f0 == f1, f0, result)))
    result = derived_from(where(inner == x0, f0, result), result)
    result = where(found < 0, left, where(found >= last, where(x > xp[last], right, fp[last]), result))
    return where(x != x, x, result)
