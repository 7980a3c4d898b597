"""scipy.integrate: sums over samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate

from accel.rules.hosted import on_host
from accel.rules.rule import rewritten


@rewritten(integrate.trapezoid, "y x dx | axis")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Summed in the precision of the values, whatever that of the places is."""
    kind = y.dtype if y.dtype.kind in "fc" else np.dtype(float)
    terms = _steps(x, dx, y.ndim, axis) * (_part(y, axis, 1, None) + _part(y, axis, None, -1)) / 2.0
    return np.sum(terms, axis=axis, dtype=kind)


def _steps(x: Any, dx: Any, ndim: int, axis: int) -> Any:
    """The distances between samples: a number, or an array that broadcasts against differences along the axis."""
    if x is None:
        return dx
    if x.ndim != 1:
        return np.diff(x, axis=axis)
    shape = [1] * ndim
    shape[axis] = x.shape[0] - 1
    return np.reshape(np.diff(x), tuple(shape))


def _part(a: Any, axis: int, start: int | None, stop: int | None) -> Any:
    index = [slice(None)] * a.ndim
    index[axis] = slice(start, stop)
    return a[tuple(index)]


@rewritten(integrate.cumulative_trapezoid, "y x dx | axis initial")
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: float | None = None) -> Any:
    steps = _steps(x, dx, y.ndim, axis)
    found = np.cumsum(steps * (_part(y, axis, 1, None) + _part(y, axis, None, -1)) / 2.0, axis=axis)
    if initial is None:
        return found
    shape = list(found.shape)
    shape[axis] = 1
    return np.concatenate([np.full(tuple(shape), initial, dtype=found.dtype), found], axis=axis)


on_host(
    integrate,
    """
    cumulative_simpson: y x dx
    romb: y dx
    simpson: y x dx
    """,
)
