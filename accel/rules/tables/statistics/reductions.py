"""Reductions, over arrays and over what a mask selects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.rules.columns import Reads, Rounding
from accel.rules.core import cast, counted
from accel.rules.lowering import Array, axes_of, axis_within, extreme, in_order, is_few, jnp, nonzero, number, where
from accel.rules.lowering import where as choose
from accel.rules.rule import Unsupported, add_rule, rewritten

_function: Any
SUMS = "a initial where | axis dtype keepdims"
EXTREMES = "a initial where | axis keepdims"
TRUTHS = "a where | axis keepdims"


# -- over selections --------------------------------------------------------------------------------------------------
# A selection a[mask] has no fixed length. So the program keeps all of `a`, and the mask, a truth for each row. Rows
# that are not selected are filled with a number that changes nothing in the reduction.


def where_selected(mask: Any, x: Any, other: Any) -> Any:
    """Rows of `x` where the mask holds, the number `other` elsewhere."""
    return where(mask.reshape(mask.shape + (1,) * (x.ndim - 1)), x, number(other, x))


def _axis(axis: object) -> Any:
    """The axis of a selection that is reduced: the first one, or all."""
    return None if axis is None else 0


def _always(value: bool | int) -> Callable[[Any], Any]:
    return lambda given: value


def _lowest(dtype: np.dtype[Any]) -> Any:
    """The lowest number of a dtype; None where it has none, or no order."""
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min if dtype.kind in "iu" else None


def _highest(dtype: np.dtype[Any]) -> Any:
    """The highest; otherwise as `_lowest`."""
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max if dtype.kind in "iu" else None


def _least(x: Array) -> Any:
    return False if real_only(x).dtype.kind == "b" else _lowest(x.dtype)


def _most(x: Any) -> Any:
    return True if real_only(x).dtype.kind == "b" else _highest(x.dtype)


def extremes(name: str) -> Callable[..., Any]:
    """The largest ("max") or the smallest ("min")."""

    def lower(*, a: Any, axis: Any = None, **bound: Any) -> Any:
        return extreme(real_only(a), axis_within(axis, a.ndim), largest=name == "max", **bound)

    return lower


def _filled(reduce: Callable[..., Any], neutral: Callable[[Any], Any]) -> Callable[..., Any]:
    """A reduction over a selection: what is left out is filled with the value that changes nothing."""

    def lower(*, a: Array, mask: Array, axis: int | tuple[int, ...] | None = None, **bound: object) -> Any:
        return reduce(a=where_selected(mask, a, neutral(a)), axis=_axis(axis), **bound)

    return lower


def _selected(mask: object, a: Any, axis: Any) -> Any:
    """Number of values that each result of a reduction over a selection stands for."""
    count = counted(mask)
    return count * (a.size // max(1, a.shape[0])) if axis is None else count


def _masked_mean(*, a: Any, mask: object, axis: object = None, dtype: Any = None, keepdims: bool = False) -> Any:
    a = _as_real(a, dtype) if a.dtype.kind in "fc" else a.astype(float)
    return jnp.sum(where_selected(mask, a, 0), axis=_axis(axis), dtype=dtype, keepdims=keepdims) / _selected(
        mask, a, axis
    )


def _masked_var(
    *, a: Any, mask: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: bool = False
) -> Any:
    mean = _masked_mean(a=a, mask=mask, axis=axis, dtype=dtype, keepdims=True)
    squares = abs(where_selected(mask, a - mean, 0)) ** 2
    count = jnp.maximum(_selected(mask, a, axis) - ddof, 0)
    return jnp.sum(squares, axis=_axis(axis), keepdims=keepdims) / count


def _masked_std(**bound: Any) -> Any:
    return jnp.sqrt(_masked_var(**bound))


# -- sums and extremes ------------------------------------------------------------------------------------------------


def reduction(name: str, prepare: Callable[[Any], Any] | None = None) -> Callable[..., Any]:
    """jax.numpy's reduction of that name. prepare: what to do to the operand first."""

    def lower(*, a: Array, axis: int | tuple[int, ...] | None = None, **bound: object) -> Any:
        a = _as_real(a, bound.get("dtype"))
        a, axis = a if prepare is None else prepare(a), axis_within(axis, a.ndim)
        if name == "sum" and not bound and is_few(a, axis):
            return in_order(a, axis)
        return getattr(jnp, name)(a, axis=axis, **bound)

    return lower


def _as_real(a: Any, dtype: Any) -> Any:
    """The real part of a complex operand where a real dtype is asked for.

    Floats as whole numbers stay on NumPy: JAX casts those out of range to the nearest, and nothing checks that none is.
    """
    if dtype is not None and np.dtype(dtype).kind in "iu" and a.dtype.kind in "fc":
        raise Unsupported("rule.parameter", "floats that are reduced as whole numbers")
    return cast(a, dtype) if dtype is not None and a.dtype.kind == "c" else a


def real_only(a: Any) -> Any:
    """The operand, unless NumPy orders complex numbers there."""
    if a.dtype.kind == "c":
        raise Unsupported("rule.parameter", "the order of complex numbers")
    return a


def _chosen(*, where: Any = True, **others: Any) -> tuple[Any, ...]:
    return (where,)


CHOSEN = Reads(("a",), _chosen, given="where")


def _sum(*, a: Array, axis: int | tuple[int, ...] | None = None, **bound: object) -> Any:
    if a.dtype == np.bool_ and not {"dtype", "initial"} & bound.keys():
        return counted(a, axis=axis_within(axis, a.ndim), **bound)
    return reduction("sum")(a=a, axis=axis, **bound)


def _count_nonzero(*, a: Array, axis: int | None = None, **bound: object) -> Any:
    return counted(nonzero(a), axis=axis_within(axis, a.ndim), **bound)


for _function, _lower, _neutral in ((np.sum, _sum, _always(0)), (np.prod, reduction("prod"), _always(1))):
    add_rule(
        _function, _lower, SUMS, masked=_filled(reduction(_function.__name__), _neutral), out_decides=True, reads=CHOSEN
    )


_CHOICES: dict[str, Any] = {"needs_elements": True, "rounding": Rounding.EXACT, "reads": CHOSEN}
for _function in (np.max, np.amax):
    add_rule(_function, extremes("max"), EXTREMES, masked=_filled(extremes("max"), _least), **_CHOICES)
for _function in (np.min, np.amin):
    add_rule(_function, extremes("min"), EXTREMES, masked=_filled(extremes("min"), _most), **_CHOICES)
for _function, _neutral in ((np.any, _always(False)), (np.all, _always(True))):
    _name = _function.__name__
    add_rule(_function, reduction(_name, nonzero), TRUTHS, masked=_filled(reduction(_name), _neutral))
add_rule(np.count_nonzero, _count_nonzero, "a | axis keepdims", masked=_filled(reduction("count_nonzero"), _always(0)))


add_rule(np.argmax, reduction("argmax", real_only), "a | axis keepdims")
add_rule(np.argmin, reduction("argmin", real_only), "a | axis keepdims")


@rewritten(np.ptp, "a | axis keepdims")
def ptp(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return np.subtract(np.max(a, axis=axis, keepdims=keepdims), np.min(a, axis=axis, keepdims=keepdims))


# -- means ------------------------------------------------------------------------------------------------------------


def _dtypes(a: Any, dtype: Any) -> tuple[Any, Any]:
    """The dtypes of NumPy's sum and of its mean: whole numbers as floats, halves in single precision."""
    if dtype is not None:
        return np.dtype(dtype), np.dtype(dtype)
    if a.dtype.kind in "biu":
        return np.dtype(float), np.dtype(float)
    return (np.dtype("f"), a.dtype) if a.dtype == np.float16 else (a.dtype, a.dtype)


def count_of(a: Any, chosen: Any, axis: Any, keepdims: bool) -> Any:
    """Number of values that each result stands for; an array where a mask chooses."""
    if chosen is None:
        return int(np.prod([a.shape[ax] for ax in axes_of(axis, a.ndim)], dtype=np.int64))
    return jnp.sum(jnp.broadcast_to(chosen, a.shape), axis=axis, keepdims=keepdims, dtype=np.int64)


def mean_of(*, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, where: Any = None) -> Any:
    """The mean, with NumPy's dtypes. where: a mask of the values that count."""
    inner, outer = _dtypes(a, dtype)
    a, axis = _as_real(a, inner), axis_within(axis, a.ndim)
    count = count_of(a, where, axis, keepdims)
    if inner.kind in "iu" and (where is not None or not count):
        raise Unsupported("rule.parameter", "a mean in whole numbers of what may be no values")
    if where is None and not keepdims and a.dtype == inner and is_few(a, axis):
        total = in_order(a, axis)
    else:
        total = jnp.sum(a, axis=axis, dtype=inner, keepdims=keepdims, where=where)
    return cast(_divided(total, count), outer)


def _divided(total: Array, count: Array | float) -> Any:
    return total / cast(count, np.dtype("f") if total.dtype in (np.float32, np.complex64) else np.dtype(float))


def var_of(
    *,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """The variance, with NumPy's dtypes. where: a mask of the values that count."""
    inner, outer = _dtypes(a, dtype)
    if inner.kind in "iu":
        raise Unsupported("rule.parameter", "a variance in whole numbers")
    if mean is not None and np.result_type(a.dtype, getattr(mean, "dtype", mean)) != inner:
        raise Unsupported("rule.parameter", "a variance around a mean of another dtype")
    a, axis = cast(a, inner), axis_within(axis, a.ndim)
    centre = mean_of(a=a, axis=axis, dtype=inner, keepdims=True, where=where) if mean is None else cast(mean, inner)
    deviation = a - centre
    if where is not None:  # else what is not chosen, a NaN perhaps, would have a derivative
        deviation = choose(where, deviation, number(0, deviation))
    squares = deviation.real**2 + deviation.imag**2 if deviation.dtype.kind == "c" else deviation * deviation
    total = jnp.sum(squares, axis=axis, keepdims=keepdims, where=where)
    left = count_of(a, where, axis, keepdims) - (ddof if correction is None else correction)
    left = jnp.maximum(left, 0) if where is not None else max(left, 0)
    return cast(_divided(total, left), np.empty(0, outer).real.dtype)


def _std(**bound: Any) -> Any:
    return jnp.sqrt(var_of(**bound))


VARIANCES = "a where mean | axis dtype keepdims ddof correction"
add_rule(np.mean, mean_of, "a where | axis dtype keepdims", masked=_masked_mean, reads=CHOSEN)
add_rule(np.var, var_of, VARIANCES, masked=_masked_var, reads=CHOSEN)
add_rule(np.std, _std, VARIANCES, masked=_masked_std, reads=CHOSEN)


@rewritten(np.average, "a weights | axis keepdims returned")
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: Any = False) -> Any:
    """The weighted mean, by NumPy's own sums; weights that add up to zero make it raise."""
    if returned:
        raise Unsupported("rule.parameter", "numpy.average: returned")
    if weights is None:
        return np.mean(a, axis=axis, keepdims=keepdims)
    if isinstance(weights, (list, tuple)):
        raise Unsupported("rule.parameter", "numpy.average: weights in a list")
    if weights.shape != a.shape:
        if weights.ndim != 1 or not isinstance(axis, int):
            raise Unsupported("rule.parameter", "numpy.average: weights of several axes")
        shape = [1] * a.ndim
        shape[axis] = -1
        weights = weights.reshape(shape)
    dtype = np.result_type(a.dtype, weights.dtype, *(() if a.dtype.kind in "fc" else ("f8",)))
    total = np.sum(weights, axis=axis, dtype=dtype, keepdims=keepdims)
    if bool(np.any(total == 0.0)):
        raise Unsupported("rule.parameter", "numpy.average: weights that add up to zero")
    return np.divide(np.multiply(a, weights, dtype=dtype).sum(axis, keepdims=keepdims), total)


# -- running sums -----------------------------------------------------------------------------------------------------


def running(name: str, prepare: Callable[[Any], Any] | None = None, along: int | None = None) -> Callable[..., Any]:
    """jax.numpy's running sum or product of that name, in the dtype that NumPy widens small integers to.

    along: the axis where none is given.
    """

    def lower(*, dtype: object = None, axis: object = along, **bound: Any) -> Any:
        ((parameter, a),) = ((key, value) for key, value in bound.items() if key in ("a", "x", "array"))
        if not a.ndim and name.startswith("cumulative"):
            raise Unsupported("rule.parameter", f"numpy.{name} of a single value")
        # NumPy itself says which
        dtype = np.add.accumulate(np.empty(1, a.dtype)).dtype if dtype is None else dtype
        bound.pop(parameter)
        a = _as_real(a, dtype)
        return getattr(jnp, name)(
            a if prepare is None else prepare(a), **bound, axis=axis_within(axis, a.ndim), dtype=dtype
        )

    return lower


def _running_selected(name: str, neutral: int) -> Callable[..., Any]:
    """Along the first axis of a selection: what is left out changes nothing."""

    def lower(*, a: Array, mask: Array, axis: object = None, **bound: Any) -> Any:
        return running(name)(a=where_selected(mask, a, neutral), axis=0, **bound)

    return lower


for _function, _neutral_number in ((np.cumsum, 0), (np.cumprod, 1)):
    add_rule(
        _function,
        running(_function.__name__),
        "a | axis dtype",
        out_decides=True,
        rows=_running_selected(_function.__name__, _neutral_number),
    )
for _function in (np.cumulative_sum, np.cumulative_prod):
    add_rule(_function, running(_function.__name__), "x | axis dtype include_initial", out_decides=True)
