"""Elementwise functions that are no ufuncs, choices, interpolation, differences, and functions along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.rules import rounding
from accel.rules.columns import Rounding
from accel.rules.core import cast, every, in_bounds, in_common_dtype
from accel.rules.lowering import from_start, jnp, join, lax, nonzero, number, same, spread, where
from accel.rules.rule import RULES, Unsupported, add_rule, rewritten, rule
from accel.rules.special import Indices, NanToNum, Shaped, Where
from accel.rules.tables.order import find_places

# -- elementwise ------------------------------------------------------------------------------------------------------


def _close(name: str) -> Callable[..., Any]:
    def lower(*, b: Any, **bound: Any) -> Any:
        if getattr(b, "dtype", None) == np.float16:
            raise Unsupported("rule.parameter", f"numpy.{name} to halves, in which NumPy computes the tolerance")
        return getattr(jnp, name)(b=b, **bound)

    return lower


add_rule(np.isclose, _close("isclose"), "a b rtol atol | equal_nan", elementwise=True)
add_rule(np.allclose, _close("allclose"), "a b rtol atol | equal_nan")
add_rule(np.array_equal, same("array_equal"), "a1 a2 | equal_nan")
add_rule(np.array_equiv, same("array_equiv"), "a1 a2")


@rule(np.angle, "z | deg", elementwise=True)
def angle(*, z: Any, deg: bool = False) -> Any:
    if z.dtype.kind not in "fc":
        raise Unsupported("rule.parameter", "numpy.angle of whole numbers")
    return cast(jnp.angle(z, deg), z.real.dtype)


def _floating(x: Any) -> Any:
    return x if x.dtype.kind in "fc" else cast(x, np.dtype(float))


@rule(np.sinc, "x", elementwise=True)
def sinc(*, x: Any) -> Any:
    """By NumPy's formula: jax.numpy's is 0 at whole numbers and at infinity since JAX 0.12."""
    x = _floating(x)
    zero, one = x == number(0, x), number(1, x)
    angle = number(np.pi, x) * where(zero, one, x)
    return where(zero, one, jnp.sin(angle) / angle)


@rule(np.i0, "x", elementwise=True)
def i0(*, x: Any) -> Any:
    return jnp.i0(_floating(x))


def _round(*, a: Any, decimals: int = 0) -> Any:
    if a.dtype.kind == "b" or (a.dtype.kind in "iu" and decimals < 0):
        raise Unsupported("rule.parameter", "rounding truths, or whole numbers to tens")
    if decimals and (a.dtype == np.float16 or abs(decimals) > 30):
        raise Unsupported("rule.parameter", "rounding to decimals whose power of ten is no such number")
    if a.dtype.kind in "iu":
        return a
    return _to_decimals(a, decimals) if decimals and a.dtype.kind == "f" else jnp.round(a, decimals)


def _to_decimals(a: Any, decimals: int) -> Any:
    """As NumPy: by the power of ten itself, which is no number for negative exponents."""
    power = number(10.0 ** abs(decimals), a)
    if decimals < 0:
        return rounding.rounded(jnp.round(a / rounding.divisor(power, a)) * power)
    whole = jnp.round(rounding.rounded(a * power))
    return rounding.rounded(whole / rounding.divisor(power, whole))


for _function in (np.round, np.around):
    add_rule(_function, _round, "a | decimals", elementwise=True, rounding=Rounding.EXACT, jumps=True)
add_rule(np.isneginf, spread("isneginf", "x"), "x", elementwise=True)
add_rule(np.isposinf, spread("isposinf", "x"), "x", elementwise=True)


@rule(np.unwrap, "p discont | axis period")
def unwrap(*, p: Any, **bound: Any) -> Any:
    if p.dtype.kind != "f":
        raise Unsupported("rule.parameter", "numpy.unwrap of numbers that are no floats")
    return jnp.unwrap(p, **bound)


@rewritten(np.real, "val")
def real(val: Any) -> Any:
    return val.real


@rewritten(np.imag, "val")
def imag(val: Any) -> Any:
    return val.imag


@rewritten(np.isreal, "x")
def isreal(x: Any) -> Any:
    return np.equal(np.imag(x), 0)


@rewritten(np.iscomplex, "x")
def iscomplex(x: Any) -> Any:
    return np.not_equal(np.imag(x), 0)


@rule(np.fix, "x", elementwise=True)
def fix(*, x: Any) -> Any:
    return jnp.trunc(x)


@rewritten(np.real_if_close, "a | tol")
def real_if_close(a: Any, tol: Any = 100) -> Any:
    if a.dtype.kind == "c":
        raise Unsupported("rule.parameter", "numpy.real_if_close: its dtype depends on values")
    return a


@rule(
    np.where,
    "condition x y",
    cast="x y",
    elementwise=True,
    special=Where(),
    rounding=Rounding.EXACT,
    arithmetic=True,
)
def where_(*, condition: Any, x: Any, y: Any) -> Any:
    return where(nonzero(jnp.asarray(condition)), x, y)


@rule(
    np.clip,
    "a a_min a_max min max",
    cast="a",
    elementwise=True,
    rounding=Rounding.EXACT,
    arithmetic=True,
)
def clip(*, a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None) -> Any:
    """minimum(maximum(a, a_min), a_max), as NumPy computes it: NaN stays NaN."""
    if a.dtype.kind == "c":
        raise Unsupported("rule.parameter", "the order of complex numbers")
    low, high = (_bound(one, a.dtype) for one in (a_min if min is None else min, a_max if max is None else max))
    a = a if low is None else jnp.maximum(a, low)
    return a if high is None else jnp.minimum(a, high)


def _bound(value: Any, dtype: Any) -> Any:
    """A bound in the array's dtype; an integer beyond what that can hold bounds nothing."""
    if type(value) is int and dtype.kind in "iu":
        value = dtype.type(sorted((int(np.iinfo(dtype).min), value, int(np.iinfo(dtype).max)))[1])
    return None if value is None else cast(value, dtype)


@rule(np.nan_to_num, "x nan posinf neginf", elementwise=True, special=NanToNum(), rounding=Rounding.EXACT)
def nan_to_num(*, x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if x.dtype.kind == "c":
        return lax.complex(*(nan_to_num(x=part, nan=nan, posinf=posinf, neginf=neginf) for part in (x.real, x.imag)))
    if x.dtype.kind != "f":
        return x
    info = np.finfo(x.dtype)
    high = cast(info.max if posinf is None else posinf, x.dtype)
    low = cast(info.min if neginf is None else neginf, x.dtype)
    infinity = number(np.inf, x)
    limited = where(x == infinity, high, where(x == -infinity, low, x))
    return where(x != x, cast(nan, x.dtype), limited)


@rule(
    np.select,
    "*condlist *choicelist default",
    cast="choicelist default",
    rounding=Rounding.EXACT,
    arithmetic=True,
)
def select(*, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = cast(default, jnp.result_type(*choicelist))
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(jnp.asarray(condition), choice, result)
    return result


def _within(*, a: Any, choices: Any, shape: Any, mode: str = "raise") -> Any:
    return mode != "raise" or every((a >= 0) & (a < len(choices)))


@rule(np.choose, "a *choices | mode", cast="choices", holds=_within)
def choose(*, a: Any, choices: Any, mode: str = "raise") -> Any:
    """The i-th choice where `a` is i; outside, by mode."""
    choices = list(choices)
    a = cast(a, np.dtype(np.int64))
    a = a % len(choices) if mode == "wrap" else jnp.clip(a, 0, len(choices) - 1)
    result = choices[0]
    for i, choice in enumerate(choices[1:], 1):
        result = where(a == i, choice, result)
    return jnp.broadcast_to(result, np.broadcast_shapes(a.shape, *(choice.shape for choice in choices)))


@rule(np.piecewise, "x *condlist *funclist")
def piecewise(*, x: Any, condlist: Any, funclist: Any) -> Any:
    """For values; functions are the program's own."""
    values = list(funclist) if isinstance(funclist, (list, tuple)) else [funclist]
    if any(map(callable, values)):
        raise Unsupported("call.opaque", "numpy.piecewise of functions")
    single = np.ndim(condlist) == 1 if hasattr(condlist, "ndim") else x.ndim > 0 and np.ndim(condlist[0]) == 0
    conditions = list(map(jnp.asarray, [condlist] if single else condlist))
    result = jnp.zeros(x.shape, x.dtype)
    if len(values) == len(conditions) + 1:
        result = jnp.full(x.shape, cast(values.pop(), x.dtype))
    for condition, value in zip(conditions, values, strict=True):
        result = where(jnp.broadcast_to(condition, x.shape), cast(value, x.dtype), result)
    return result


@rewritten(np.isin, "element test_elements | invert assume_unique")
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """By comparing each with each."""
    tests = test_elements
    if isinstance(tests, (list, tuple)):
        found = [np.equal(element, value) for value in tests]
        result = np.any(np.stack(found), axis=0) if found else np.zeros_like(element, dtype=bool)
    else:
        result = np.any(np.equal(np.expand_dims(element, -1), np.ravel(tests)), axis=-1)
    return np.logical_not(result) if invert else result


# -- indices of true elements -----------------------------------------------------------------------------------------

add_rule(np.nonzero, None, "a", special=Indices())


@rewritten(np.flatnonzero, "a")
def flatnonzero(a: Any) -> Any:
    return np.nonzero(np.ravel(a))[0]


@rewritten(np.extract, "condition arr")
def extract(condition: Any, arr: Any) -> Any:
    """By the mask; selections that depend on values stay selections."""
    return np.ravel(arr)[np.ravel(np.not_equal(condition, False))]


@rewritten(np.compress, "condition a | axis")
def compress(condition: Any, a: Any, axis: Any = None) -> Any:
    """By indices where the text gives the condition, else by the mask."""
    source, axis = (np.ravel(a), 0) if axis is None else (a, axis % a.ndim)
    key = (slice(None),) * axis
    if isinstance(condition, (list, tuple)):
        return source[(*key, [i for i, chosen in enumerate(condition) if chosen])]
    if len(condition) != source.shape[axis]:
        source = source[(*key, slice(0, len(condition)))]
    return source[(*key, np.not_equal(condition, False))]


# -- interpolation, counting ------------------------------------------------------------------------------------------


@rule(np.interp, "x xp fp left right", holds=lambda xp, **rest: (xp[:-1] <= xp[1:]).all())
def interp(*, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    """By NumPy's own formula: the slope times the distance from the left point, for points that rise."""
    dtype = np.dtype(complex) if fp.dtype.kind == "c" else np.dtype(float)
    x, xp, fp = cast(x, np.dtype(float)), cast(xp, np.dtype(float)), cast(fp, dtype)
    last = xp.shape[0] - 1
    left, right = (cast(fp[at] if given is None else given, dtype) for given, at in ((left, 0), (right, last)))
    if last == 0:
        return where(x < xp[0], left, where(x > xp[0], right, jnp.broadcast_to(fp[0], x.shape)))
    if dtype.kind == "c":
        raise Unsupported("rule.parameter", "numpy.interp of complex numbers")
    found = find_places(xp, x, "right") - 1
    at = jnp.clip(found, 0, last - 1)
    x0, x1, f0, f1 = xp[at], xp[at + 1], fp[at], fp[at + 1]
    slope = (f1 - f0) / (x1 - x0)
    result = slope * (x - x0) + f0
    again = slope * (x - x1) + f1
    result = where(result == result, result, where(again == again, again, where(f0 == f1, f0, result)))
    result = where(x == x0, f0, result)
    result = where(found < 0, left, where(found >= last, where(x > xp[last], right, fp[last]), result))
    return where(x != x, x, result)


def _counts(*, x: Any, shape: Any, weights: Any = None, minlength: int = 0) -> Any:
    """NumPy raises for negative numbers, and the largest decides the length."""
    if not x.size:
        return True
    x = x.astype(np.int64)
    largest = x.max()
    return (x.min() >= 0) & ((largest < shape[0]) if shape[0] == minlength else (largest == shape[0] - 1))


@rule(np.bincount, "x weights | minlength", holds=_counts, special=Shaped())
def bincount(*, x: Any, shape: Any, weights: Any = None, minlength: int = 0) -> Any:
    x = x.astype(np.int64)
    if weights is None:
        return jnp.zeros(shape, np.int64).at[x].add(1)
    return jnp.zeros(shape, float).at[x].add(cast(weights, np.dtype(float)))


@rewritten(np.histogram_bin_edges, "a | bins range")
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None) -> Any:
    """For given edges, or a number of bins over a given range."""
    if isinstance(bins, (list, tuple)):
        return np.stack(bins)
    return _even_edges(a, bins, range)


def _even_edges(a: Any, bins: Any, range: Any) -> Any:
    if type(bins) is not int or range is None:
        raise Unsupported("rule.parameter", "bins that depend on values")
    return np.histogram_bin_edges(np.zeros(0, a.dtype), bins, range)


@rewritten(np.histogram, "a bins weights | range density")
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """By searching the edges: the last bin holds its right edge too."""
    if density or (weights is not None and weights.dtype != np.float64):
        raise Unsupported("rule.parameter", "numpy.histogram: density, or weights that are not float64")
    if a.dtype.kind not in "fiu" or a.dtype == np.float16:
        raise Unsupported("rule.parameter", "numpy.histogram of halves, or without an order")
    edges = np.array(bins) if isinstance(bins, (list, tuple)) else bins
    if isinstance(bins, int):
        edges = _even_edges(a, bins, range)
    values = np.ravel(a)
    if "u" in (kinds := values.dtype.kind + edges.dtype.kind) and "i" in kinds:
        raise Unsupported("rule.parameter", "numpy.histogram of signed and unsigned numbers")
    place = np.searchsorted(_listed(edges), values, side="right")
    count = len(edges) - 1
    last = edges[count]
    place = np.where(np.equal(values, last) | np.not_equal(last, last), np.minimum(place, count), place)
    counted = np.bincount(place, None if weights is None else np.ravel(weights), count + 2)
    if weights is not None and not isinstance(bins, int):  # NumPy takes differences of the weights' running sum
        total = np.cumsum(counted)
        spoilt = np.logical_not(np.isfinite(total))
        counted = np.where(spoilt, np.diff(total, prepend=0.0), counted)
    return counted[1 : count + 1], edges


def _listed(edges: Any) -> Any:
    return edges.tolist() if type(edges) is np.ndarray else edges


# -- along axes -------------------------------------------------------------------------------------------------------


@rule(np.diff, "a prepend append | n axis", rounding=Rounding.ROUNDED, shifts=True, reshapes=False)
def diff(*, a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    axis %= a.ndim
    parts = [_edge(given, a, axis) for given in (prepend, append)]
    if any(part is not None for part in parts):
        pieces = [part for part in (parts[0], a, parts[1]) if part is not None]
        a = join(in_common_dtype(*pieces), axis)
    for _ in range(n):
        upper, lower = (_but_one(a, start, axis) for start in (1, 0))
        a = upper != lower if a.dtype.kind == "b" else upper - lower
    return a


def _but_one(a: Any, start: int, axis: int) -> Any:
    """All but one element along an axis, from `start` on."""
    size = a.shape[axis]
    start = min(start, size)
    return lax.slice_in_dim(a, start, start + max(0, size - 1), axis=axis)


def _edge(given: Any, a: Any, axis: int) -> Any:
    if given is None:
        return None
    given = jnp.asarray(given)
    return given if given.ndim else jnp.broadcast_to(given, (*a.shape[:axis], 1, *a.shape[axis + 1 :]))


@rewritten(np.ediff1d, "ary to_end to_begin")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    flat = np.ravel(ary)
    inner = flat[1:] - flat[:-1]
    if to_end is None and to_begin is None:
        return inner
    parts = [np.ravel(part) for part in (to_begin, to_end) if part is not None]
    return np.concatenate([*parts[: to_begin is not None], inner, *parts[to_begin is not None :]], dtype=ary.dtype)


@rule(np.trapezoid, "y x dx | axis")
def trapezoid(*, y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The width of each interval times the mean of its ends, summed."""
    axis %= y.ndim
    upper, lower = (_but_one(y, start, axis) for start in (1, 0))
    if x is None:
        width = dx
    else:
        width = diff(a=x, axis=-1 if x.ndim == 1 else axis)
        width = width.reshape((-1,) + (1,) * (y.ndim - axis - 1)) if x.ndim == 1 else width
    height = cast(upper | lower, jnp.result_type(width, float)) if y.dtype.kind == "b" else upper + lower
    area = (cast(width, height.dtype) if getattr(width, "dtype", None) == np.bool_ else width) * height
    return ((area if area.dtype.kind in "fc" else cast(area, np.dtype(float))) / 2.0).sum(axis=axis)


def _kernel_finite(*, a: Any, v: Any, shape: Any, mode: str = "full") -> Any:
    """The padding's zeros times an infinity would be NaN. Of numbers there is nothing to slide."""
    if np.ndim(a) != 1 or np.ndim(v) != 1:
        return False
    kernel = a if a.shape[0] < v.shape[0] else v
    return mode == "valid" or kernel.dtype.kind not in "fc" or (abs(kernel) < np.inf).all()


@rule(np.convolve, "a v | mode", holds=_kernel_finite)
def convolve(*, a: Any, v: Any, mode: str = "full") -> Any:
    """The shorter one slides over the longer."""
    a, v = in_common_dtype(a, v)
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    return _slide(a, v[::-1], mode)


def _correlated_finite(*, a: Any, v: Any, shape: Any, mode: str = "valid") -> Any:
    return _kernel_finite(a=a, v=v, shape=shape, mode=mode)


@rule(np.correlate, "a v | mode", holds=_correlated_finite)
def correlate(*, a: Any, v: Any, mode: str = "valid") -> Any:
    """As NumPy: the second is conjugated; where it is the longer one, the result is turned round."""
    a, v = in_common_dtype(a, v)
    v = lax.conj(v) if v.dtype.kind == "c" else v
    if v.shape[0] > a.shape[0]:
        return _slide(v, a, mode)[::-1]
    return _slide(a, v, mode)


SHORT = 32
"""Kernels up to this length are written out as sums of slices; longer ones are products with a matrix of windows."""


def _slide(a: Any, v: Any, mode: str) -> Any:
    """sum_k a[i + k] * v[k], of halves in single precision; v is not longer than a."""
    if mode not in ("full", "same", "valid"):
        raise Unsupported("rule.parameter", f"mode={mode!r}")
    if a.dtype == np.float16:
        return cast(_slide(cast(a, np.dtype("f")), cast(v, np.dtype("f")), mode), a.dtype)
    m = v.shape[0]
    left = {"full": m - 1, "same": m // 2, "valid": 0}[mode]
    right = {"full": m - 1, "same": m - 1 - m // 2, "valid": 0}[mode]
    padded = lax.pad(a, number(0, a), [(left, right, 0)])
    length = padded.shape[0] - m + 1
    if a.dtype.kind == "b":
        return sum_of([padded[k : k + length] & v[k] for k in range(m)], lambda x, y: x | y)
    if m <= SHORT:
        return sum_of([padded[k : k + length] * v[k] for k in range(m)], lambda x, y: x + y)
    windows = padded[jnp.arange(length)[:, None] + jnp.arange(m)]
    return (windows * v).sum(axis=1, dtype=a.dtype)


def sum_of(parts: list[Any], add: Callable[[Any, Any], Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = add(total, part)
    return total


@rule(np.cross, "a b | axisa axisb axisc axis")
def cross(*, a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    """Of vectors of two or three components; what a vector has not is left out, as zeros times NaN would be NaN."""
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = in_common_dtype(a, b)
    a0, a1, *a2 = jnp.moveaxis(a, axisa, 0)
    b0, b1, *b2 = jnp.moveaxis(b, axisb, 0)
    last = a0 * b1 - a1 * b0
    if not a2 and not b2:
        return last
    if not a2:
        first, second = a1 * b2[0], -(a0 * b2[0])
    elif not b2:
        first, second = -(a2[0] * b1), a2[0] * b0
    else:
        first, second = a1 * b2[0] - a2[0] * b1, a2[0] * b0 - a0 * b2[0]
    return jnp.stack([first, second, last], axis=axisc)


@rule(np.linalg.cross, "x1 x2 | axis")
def linalg_cross(*, x1: Any, x2: Any, axis: int = -1) -> Any:
    return cross(a=x1, b=x2, axis=axis)


def _observations(m: Any, rowvar: bool) -> int:
    """Of one variable where there is one axis or none."""
    return int(m.shape[-1] if rowvar or m.ndim < 2 else m.shape[0]) if m.ndim else 1


def _covariance(name: str) -> Callable[..., Any]:
    def lower(**bound: Any) -> Any:
        for operand in ("m", "x", "y"):
            if operand in bound:
                bound[operand] = cast(bound[operand], np.result_type(bound[operand].dtype, float))
        if name == "cov" and _observations(bound["m"], bound.get("rowvar", True)) < (bound.get("ddof") or 0):
            raise Unsupported("rule.parameter", "numpy.cov: fewer observations than ddof")
        return getattr(jnp, name)(**bound)

    return lower


add_rule(np.cov, _covariance("cov"), "m y | rowvar bias ddof")
add_rule(np.corrcoef, _covariance("corrcoef"), "x y | rowvar")


def _indices_hold(*, a: Any, indices: Any, shape: Any, axis: Any = None, mode: str = "raise") -> Any:
    if axis is not None and not a.ndim:
        return False
    size = a.size if axis is None else a.shape[axis]
    return mode != "raise" or in_bounds(indices, size)


@rule(np.take, "a indices | axis mode", holds=_indices_hold, rounding=Rounding.EXACT)
def take(*, a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
    """Within bounds, as the replay checks; or wrapped or clipped, as `mode` says."""
    a, axis = (a.reshape(-1), 0) if axis is None else (a, axis % a.ndim)
    indices, size = jnp.asarray(indices).astype(np.int64), a.shape[axis]
    if mode == "wrap":
        indices = indices % number(size, indices)
    elif mode == "raise":
        indices = from_start(indices, size)
    return jnp.take(a, indices, axis=axis, mode="clip")


def _along_holds(*, arr: Any, indices: Any, shape: Any, axis: Any = -1) -> Any:
    return in_bounds(indices, arr.size if axis is None else arr.shape[axis])


@rule(np.take_along_axis, "arr indices | axis", holds=_along_holds)
def take_along_axis(*, arr: Any, indices: Any, axis: Any = -1) -> Any:
    indices = from_start(indices.astype(np.int64), arr.size if axis is None else arr.shape[axis])
    return jnp.take_along_axis(arr, indices, axis=axis, mode="promise_in_bounds")


# -- gradients --------------------------------------------------------------------------------------------------------


@rule(np.gradient, "f *varargs | axis edge_order", work=9.0, shifts=True, reshapes=False)
def gradient(*, f: Any, varargs: Any = (), axis: Any = None, edge_order: int = 1) -> Any:
    """Second-order differences inside, of first or second order at the edges, by NumPy's formulas."""
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


def _slope(f: Any, step: Any, axis: int, edge_order: int) -> Any:
    size = f.shape[axis]

    def part(start: int, count: int = 1) -> Any:
        start = start % size
        return lax.slice_in_dim(f, start, start + count, axis=axis)

    real = f.real.dtype
    if step.ndim:
        step = step if step.dtype.kind == "f" else cast(step, np.dtype(float))
        steps = cast(step[1:] - step[:-1], real)
        at = (1,) * axis + (-1,) + (1,) * (f.ndim - axis - 1)
        before, after = steps[:-1].reshape(at), steps[1:].reshape(at)
        first, second, penult, last = steps[0], steps[min(1, size - 2)], steps[max(-2, 1 - size)], steps[-1]
        total = before + after
        uneven = (
            -after / (before * total) * part(0, size - 2)
            + (after - before) / (before * after) * part(1, size - 2)
            + before / (after * total) * part(2, size - 2)
        )
        inner = where((steps == first).all(), _even_slope(part(0, size - 2), part(2, size - 2), first), uneven)
    else:
        first = second = penult = last = cast(step, real)
        inner = _even_slope(part(0, size - 2), part(2, size - 2), first)
    if edge_order == 1:
        begin, end = (part(1) - part(0)) / first, (part(-1) - part(-2)) / last
    else:
        begin = _edge_slope((part(0), part(1), part(2)), first, second)
        end = -_edge_slope((part(-1), part(-2), part(-3)), last, penult)
    return join([begin, inner, end], axis)


def _even_slope(before: Any, after: Any, step: Any) -> Any:
    """Between neighbours that are all as far apart, whatever lies in the middle."""
    return (after - before) / (number(2, step) * step)


def _edge_slope(points: Any, near: Any, far: Any) -> Any:
    """The slope at the first of three points, by the parabola through them."""
    total = near + far
    weights = -(near + total) / (near * total), total / (near * far), -near / (far * total)
    return sum_of([weight * point for weight, point in zip(weights, points, strict=True)], lambda x, y: x + y)


@rewritten(np.apply_over_axes, "a | func axes")
def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    for axis in axes if isinstance(axes, (list, tuple)) else (axes,):
        reduced = func(a, axis)
        a = reduced if reduced.ndim == a.ndim else np.expand_dims(reduced, axis)
    return a


@rewritten(np.apply_along_axis, "arr args | func1d axis")
def apply_along_axis(func1d: Any, axis: int, arr: Any, args: Any = ()) -> Any:
    """For functions that take an axis themselves; others are the program's own."""
    known = RULES.get(func1d)
    if known is None or "axis" not in known.static:
        raise Unsupported("call.opaque", "numpy.apply_along_axis of a function that takes no axis")
    return func1d(arr, *args, axis=axis)
