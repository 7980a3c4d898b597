"""scipy.integrate: sums over samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate

from accel.rules.hosted import on_host
from accel.rules.rule import Unsupported, rewritten


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


def _part(a: Any, axis: int, start: int | None, stop: int | None, step: int | None = None) -> Any:
    index = [slice(None)] * a.ndim
    index[axis] = slice(start, stop, step)
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


@rewritten(integrate.simpson, "y x dx | axis")
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Simpson's rule; for an even number of samples, the last interval by the parabola through the last three.

    Source: Cartwright, "Simpson's Rule Cumulative Integration with MS Excel and Irregularly-spaced Data", J. Math. Sci.
    Math. Educ. 12 (2017), as SciPy.
    """
    count = y.shape[axis]
    if count < 3:
        raise Unsupported("rule.parameter", "scipy.integrate.simpson of fewer than three samples")
    if (x is None and not isinstance(dx, (int, float))) or (x is not None and x.dtype.kind == "c"):
        raise Unsupported("rule.parameter", "scipy.integrate.simpson: dx as an array, or complex x")
    last = count - 1 if count % 2 else count - 2
    steps = dx if x is None else _steps(x, dx, y.ndim, axis).astype(float)
    found = _parabolas(y, steps, axis, last)
    if count % 2:
        return found
    total = found + _last_interval(y, steps, axis)
    return total.astype(found.dtype) if total.ndim else total  # SciPy adds to an array in place


def _parabolas(y: Any, steps: Any, axis: int, last: int) -> Any:
    """The integral up to sample `last`, an even one."""
    first, middle, end = (_part(y, axis, at, last - 1 + at, 2) for at in range(3))
    if isinstance(steps, (int, float)):
        return np.sum(first + 4.0 * middle + end, axis=axis) * (steps / 3.0)
    h0, h1 = _part(steps, axis, 0, last, 2), _part(steps, axis, 1, last, 2)
    both = h0 + h1
    ends = first * (2.0 - _ratio(1.0, _ratio(h0, h1))) + end * (2.0 - _ratio(h0, h1))
    return np.sum(both / 6.0 * (ends + middle * (both * _ratio(both, h0 * h1))), axis=axis)


def _last_interval(y: Any, steps: Any, axis: int) -> Any:
    y = y.astype(np.result_type(y.dtype, float))  # SciPy's factors are float64, whatever the samples are
    before, at, end = (np.squeeze(_part(y, axis, -3 + i, -2 + i or None), axis=axis) for i in range(3))
    if isinstance(steps, (int, float)):
        h0 = h1 = 1.0 * steps
    else:
        h0, h1 = (np.squeeze(_part(steps, axis, -2 + i, -1 + i or None), axis=axis) for i in range(2))
    alpha = _ratio(2 * h1 * h1 + 3 * h0 * h1, 6 * (h1 + h0))
    beta = _ratio(h1 * h1 + 3.0 * h0 * h1, 6 * h0)
    eta = _ratio(h1**3, 6 * h0 * (h0 + h1))
    return alpha * end + beta * at - eta * before


def _ratio(a: Any, b: Any) -> Any:
    """The quotient, 0 where the divisor is, as SciPy has it."""
    if isinstance(b, float):
        return a / b if b else 0.0
    none = np.equal(b, 0)
    return np.where(none, 0.0, a / np.where(none, 1.0, b))


on_host(
    integrate,
    """
    cumulative_simpson: y x dx
    romb: y dx
    """,
)
