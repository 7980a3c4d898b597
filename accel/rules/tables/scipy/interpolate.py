"""scipy.interpolate: evaluation of interpolators that the program holds.

What the rows stand for are the functions of this module: SciPy's own evaluation, of an interpolator with these arrays.
`accel.record.objects.library.scientific` calls them where recorded code calls an interpolator.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy import interpolate

from accel.ir.tape import Node
from accel.rules.core import cast
from accel.rules.hosted import on_host
from accel.rules.lowering import Array, jnp, number, where
from accel.rules.rule import Unsupported, rule
from accel.rules.tables.statistics.sorting import find_places

_DOUBLE = np.dtype(float)


def _points(x: Any) -> Array:
    """The points to evaluate at; SciPy drops imaginary parts, with a warning."""
    found = jnp.asarray(x)
    if found.dtype.kind == "c":
        raise Unsupported("rule.parameter", "an interpolator at complex numbers")
    return cast(found, _DOUBLE)  # type: ignore[no-any-return]


def _rises(points: Any) -> Any:
    return (points[:-1] < points[1:]).all()


def _left_of(grid: Array, x: Array) -> Any:
    """The interval that each number is in; the first and the last one reach to infinity."""
    return jnp.clip(find_places(grid, x, "right") - 1, 0, grid.shape[0] - 2)


# -- piecewise polynomials --------------------------------------------------------------------------------------------


def piecewise_polynomial(c: Any, x: Any, xp: Any, nu: int = 0, extrapolate: Any = True, axis: int = 0) -> Any:
    """CubicSpline, PchipInterpolator, Akima1DInterpolator and PPoly: coefficients, breakpoints, and where."""
    return interpolate.PPoly.construct_fast(c, x, extrapolate, axis)(xp, nu)


def _ends_in_nothing(node: Node) -> bool | None:
    """Whether a number's last place decides between two polynomials' derivatives, or a number and none."""
    return True if node.kwargs.get("nu") or node.kwargs.get("extrapolate") is not True else None


@rule(
    piecewise_polynomial,
    "c x xp | nu extrapolate axis",
    holds=lambda x, **rest: _rises(x),
    jumps=_ends_in_nothing,
    work=10.0,
)
def _piecewise_polynomial(*, c: Array, x: Array, xp: Any, nu: int = 0, extrapolate: Any = True, axis: int = 0) -> Any:
    """The sum of the powers, the lowest first, as SciPy adds them up."""
    if nu < 0 or extrapolate not in (True, False, "periodic") or c.dtype not in (np.float64, np.complex128):
        raise Unsupported("rule.parameter", f"scipy.interpolate.PPoly: nu={nu!r}, extrapolate={extrapolate!r}")
    at = _points(xp)
    x = cast(x, _DOUBLE)
    if extrapolate == "periodic":
        at = x[0] + jnp.mod(at - x[0], x[-1] - x[0])
    place = _left_of(x, at)
    rest = [1] * (c.ndim - 2)
    s = (at - x[place]).reshape(*at.shape, *rest)
    power, total = jnp.ones_like(s), jnp.zeros((*at.shape, *c.shape[2:]), c.dtype)
    for k in range(nu, c.shape[0]):
        factor = float(np.prod(np.arange(k - nu + 1, k + 1), dtype=float)) if nu else 1.0
        total = total + c[c.shape[0] - 1 - k][place] * power * factor
        power = power * s
    outside = jnp.isnan(at) if extrapolate is True else ~((at >= x[0]) & (at <= x[-1]))
    total = jnp.where(outside.reshape(*at.shape, *rest), number(np.nan, total), total)
    return total if not axis else _axis_moved(total, at.ndim, axis)


def _axis_moved(values: Array, count: int, axis: int) -> Any:
    """The first `count` axes, those of the points, in the place of the axis that was interpolated along."""
    axes = list(range(values.ndim))
    return values.transpose([*axes[count : count + axis], *axes[:count], *axes[count + axis :]])


# -- linear ones ------------------------------------------------------------------------------------------------------

_WEIGHS_BOTH_ENDS = bool(interpolate.interp1d([0.0, 1.0], [1e16, 1.0], fill_value="extrapolate")(1.0) == 1.0)
"""Whether an interp1d that extrapolates adds up both values, each with its weight: it does from SciPy 1.18 on.

Before, it went along the slope from the lower one, as NumPy's `interp` does, which all others call. The results differ
by rounding, and where one of the values is infinite.
"""


def linear_on_line(
    x: Any, y: Any, xp: Any, below: Any = np.nan, above: Any = np.nan, axis: int = -1, bounds: str = "fill"
) -> Any:
    """interp1d of kind "linear". bounds: what is done beyond the ends: "fill", "error" or "extrapolate"."""
    fill: Any = "extrapolate" if bounds == "extrapolate" else (below, above)
    about = {"bounds_error": bounds == "error", "fill_value": np.nan if bounds == "error" else fill}
    return interpolate.interp1d(x, y, axis=axis, copy=False, assume_sorted=True, **about)(xp)


def _on_line(x: Any, xp: Any, bounds: str = "fill", **rest: Any) -> Any:
    inside = bounds != "error" or ~((xp < x[0]) | (xp > x[-1])).any()
    return _rises(x) & inside


@rule(
    linear_on_line,
    "x y xp below above | axis bounds",
    holds=_on_line,
    jumps=lambda node: True if node.kwargs.get("bounds", "fill") == "fill" else None,
)
def _linear_on_line(
    *, x: Array, y: Array, xp: Any, below: Any = np.nan, above: Any = np.nan, axis: int = -1, bounds: str = "fill"
) -> Any:
    if y.dtype != np.float64 or y.ndim != 1:
        raise Unsupported("rule.parameter", "scipy.interpolate.interp1d of several columns, or of other than doubles")
    at, x = _points(xp), cast(x, _DOUBLE)
    high = jnp.clip(find_places(x, at, "left"), 1, x.shape[0] - 1)
    low = high - 1
    step = x[high] - x[low]
    if bounds == "extrapolate" and _WEIGHS_BOTH_ENDS:
        return (at - x[low]) / step * y[high] + (x[high] - at) / step * y[low]
    found = (y[high] - y[low]) / step * (at - x[low]) + y[low]
    if bounds == "extrapolate":
        return found
    found = jnp.where(at < x[0], cast(jnp.asarray(below), _DOUBLE), found)
    return jnp.where(at > x[-1], cast(jnp.asarray(above), _DOUBLE), found)


def on_grid(
    grid: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Any:
    """RegularGridInterpolator, "linear" or "nearest"."""
    return interpolate.RegularGridInterpolator(grid, values, method, bounds_error, fill_value)(xi)


def _on_grid_holds(grid: Any, xi: Any, bounds_error: bool = True, **rest: Any) -> Any:
    found: Any = True
    for axis, points in enumerate(grid):
        found = found & _rises(points)
        if bounds_error:
            at = xi[..., axis]
            found = found & ((at >= points[0]) & (at <= points[-1])).all()
    return found


@rule(
    on_grid,
    "*grid values xi | method bounds_error fill_value",
    holds=_on_grid_holds,
    jumps=lambda node: (
        True if node.kwargs.get("method") == "nearest" or not node.kwargs.get("bounds_error", True) else None
    ),
    work=10.0,
)
def _on_grid(
    *, grid: Any, values: Array, xi: Array, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Any:
    """The sum over the corners of a point's cell, in SciPy's order."""
    count = len(grid)
    if method not in ("linear", "nearest") or values.dtype != np.float64 or any(p.shape[0] < 2 for p in grid):
        raise Unsupported("rule.parameter", f"scipy.interpolate.RegularGridInterpolator: method={method!r}")
    shape = xi.shape if xi.ndim > 1 else (xi.size // count, count)
    at = _points(xi).reshape(-1, count).T
    grid = [cast(points, _DOUBLE) for points in grid]
    places = [_left_of(points, one) for points, one in zip(grid, at, strict=True)]
    shares = [
        (one - points[place]) / (points[place + 1] - points[place])
        for points, one, place in zip(grid, at, places, strict=True)
    ]
    rest = [1] * (values.ndim - count)
    if method == "nearest":
        nearest = [where(share <= 0.5, place, place + 1) for place, share in zip(places, shares, strict=True)]
        found = values[tuple(nearest)]
    else:
        found = jnp.zeros((at.shape[1], *values.shape[count:]))
        sides = [((place, 1 - share), (place + 1, share)) for place, share in zip(places, shares, strict=True)]
        for corner in itertools.product(*sides):
            weight = jnp.ones(at.shape[1])
            for _, share in corner:
                weight = weight * share
            found = found + values[tuple(place for place, _ in corner)] * weight.reshape(-1, *rest)
    if not bounds_error and fill_value is not None:
        outside = jnp.zeros(at.shape[1], bool)
        for points, one in zip(grid, at, strict=True):
            outside = outside | (one < points[0]) | (one > points[-1])
        found = jnp.where(outside.reshape(-1, *rest), cast(jnp.asarray(fill_value), _DOUBLE), found)
    found = jnp.where(jnp.isnan(at).any(axis=0).reshape(-1, *rest), np.nan, found)
    return found.reshape(*shape[:-1], *values.shape[count:])


on_host(
    interpolate,
    """
    griddata: *points values *xi
    interpn: *points values *xi
    pchip_interpolate: xi yi x
    splev: x *tck
    splrep: x y w
    """,
)
