"""Choices among values, by a condition, an index or bounds: where, clip, select, choose, piecewise, isin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules import complexes
from accel.rules.columns import Reads, Rounding
from accel.rules.core import cast, every
from accel.rules.lowering import Array, jnp, lax, nonzero, number, where
from accel.rules.rule import Unsupported, rewritten, rule
from accel.rules.special import NanToNum, Where


def _sides(*, condition: Any, x: Any = None, y: Any = None) -> Any:
    truth = nonzero(jnp.asarray(condition))
    return truth, ~truth


@rule(
    np.where,
    "condition x y",
    cast="x y",
    elementwise=True,
    special=Where(),
    rounding=Rounding.EXACT,
    arithmetic=True,
    reads=Reads(("x", "y"), _sides),
)
def where_(*, condition: Array, x: Array, y: Array) -> Any:
    return where(nonzero(jnp.asarray(condition)), x, y)


def _unclipped(*, a: Array, **bounds: Any) -> Any:
    return (clip(a=a, **bounds) == a,)


@rule(
    np.clip,
    "a a_min a_max min max",
    cast="a",
    elementwise=True,
    rounding=Rounding.EXACT,
    arithmetic=True,
    reads=Reads(("a",), _unclipped),
)
def clip(
    *,
    a: Array,
    a_min: Array | float | None = None,
    a_max: Array | float | None = None,
    min: Array | float | None = None,
    max: Array | float | None = None,
) -> Any:
    """minimum(maximum(a, a_min), a_max), as NumPy computes it: NaN stays NaN.

    A zero that two numbers bound keeps its sign; of halves, `ordered` takes the first of equal ones.
    """
    if a.dtype.kind == "c":
        raise Unsupported("rule.parameter", "the order of complex numbers")
    low, high = (_bound(one, a.dtype) for one in (a_min if min is None else min, a_max if max is None else max))
    if low is None or high is None or np.ndim(low) or np.ndim(high) or a.dtype == np.float16:
        a = a if low is None else _MAXIMUM(a, low)
        return a if high is None else _MINIMUM(a, high)
    return _MINIMUM(high, _MAXIMUM(low, a))


_MAXIMUM, _MINIMUM = (complexes.ordered(name) for name in ("maximum", "minimum"))


def _bound(value: Any, dtype: Any) -> Any:
    """A bound in the array's dtype; an integer beyond what that can hold bounds nothing."""
    if type(value) is int and dtype.kind in "iu":
        value = dtype.type(sorted((int(np.iinfo(dtype).min), value, int(np.iinfo(dtype).max)))[1])
    return None if value is None else cast(value, dtype)


@rule(
    np.nan_to_num,
    "x nan posinf neginf",
    elementwise=True,
    special=NanToNum(),
    rounding=Rounding.EXACT,
    reads=Reads(("x",), lambda *, x, **others: (jnp.isfinite(x),)),
)
def nan_to_num(*, x: Array, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
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


def _first_that_holds(*, condlist: list[Any], **others: Any) -> tuple[list[Any], Any]:
    chosen, rest = [], jnp.asarray(True)
    for condition in condlist:
        chosen.append(rest & condition)
        rest = rest & ~jnp.asarray(condition)
    return chosen, rest


@rule(
    np.select,
    "*condlist *choicelist default",
    cast="choicelist default",
    rounding=Rounding.EXACT,
    arithmetic=True,
    reads=Reads(("choicelist", "default"), _first_that_holds),
)
def select(*, condlist: list[Any], choicelist: list[Any], default: Array | float = 0) -> Any:
    result = cast(default, jnp.result_type(*choicelist))
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(jnp.asarray(condition), choice, result)
    return result


def _within(*, a: Array | NDArray[Any] | float, choices: list[Any], shape: tuple[int, ...], mode: str = "raise") -> Any:
    return mode != "raise" or every((a >= 0) & (a < len(choices)))


def _choice_of(a: Any, choices: Any, mode: str) -> Any:
    """The place of each element's choice; of one outside, by mode."""
    a = cast(a, np.dtype(np.int64))
    return a % len(choices) if mode == "wrap" else jnp.clip(a, 0, len(choices) - 1)


def _where_chosen(*, a: Any, choices: Any, mode: str = "raise") -> tuple[list[Any]]:
    place = _choice_of(a, choices, mode)
    return ([place == i for i in range(len(choices))],)


@rule(np.choose, "a *choices | mode", cast="choices", holds=_within, reads=Reads(("choices",), _where_chosen))
def choose(*, a: Any, choices: Any, mode: str = "raise") -> Any:
    """The i-th choice where `a` is i; outside, by mode."""
    choices = list(choices)
    a = _choice_of(a, choices, mode)
    result = choices[0]
    for i, choice in enumerate(choices[1:], 1):
        result = where(a == i, choice, result)
    return jnp.broadcast_to(result, np.broadcast_shapes(a.shape, *(choice.shape for choice in choices)))


@rule(np.piecewise, "x *condlist *funclist")
def piecewise(*, x: Array, condlist: Array | list[Any], funclist: list[Any]) -> Any:
    """For values; the algorithm with functions is in accel.record.objects.library.piecewise."""
    values = list(funclist) if isinstance(funclist, (list, tuple)) else [funclist]
    if any(map(callable, values)):
        raise Unsupported("call.opaque", "numpy.piecewise of functions")
    single = np.ndim(condlist) == 1 if hasattr(condlist, "ndim") else x.ndim > 0 and np.ndim(condlist[0]) == 0
    conditions = [cast(condition, bool) for condition in ([condlist] if single else condlist)]
    result = jnp.zeros(x.shape, x.dtype)
    # the last value is for where no condition holds
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
