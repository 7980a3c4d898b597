"""Functions of NumPy's that call a function of the program's: this one is followed, and NumPy's is not run at all.

Each is NumPy's own algorithm, in calls that are recorded. So what the program's function does happens once, in NumPy's
order, and what it returns is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.record.objects.functions import RuleFunction
from accel.record.state.recording import Recording
from accel.record.state.wrapper import unwrap
from accel.record.values.calls.call import call
from accel.record.values.operands import flat
from accel.rules.rule import lookup


class CallsBack(RuleFunction):
    """Such a function. make: its algorithm."""

    __slots__ = ("_make",)

    def __init__(self, recording: Recording, function: Any, make: Callable[..., Any]) -> None:
        super().__init__(function)
        self._recording_, self._make = recording, make

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._recording_.active and any(map(_is_followed, flat((*args, *kwargs.values())))):
            return self._make(*args, **kwargs)
        return super().__call__(*args, **kwargs)


def _is_followed(value: Any) -> bool:
    """Whether an argument is a function that the algorithm calls; what takes an axis itself is one operation."""
    rule = lookup(unwrap(value))
    return callable(unwrap(value)) and (rule is None or "axis" not in rule.static)


def _along_axis(func1d: Callable[..., Any], axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """numpy.apply_along_axis: row by row, the results where the rows were."""
    arr = call(np.asanyarray, (arr,), {})
    count = unwrap(arr).ndim
    axis = np.lib.array_utils.normalize_axis_index(unwrap(axis), count)
    axes = list(range(count))
    rows = call(np.transpose, (arr, [*axes[:axis], *axes[axis + 1 :], axis]), {})
    places = [(*place, Ellipsis) for place in np.ndindex(unwrap(rows).shape[:-1])]
    if not places:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    first = call(np.asanyarray, (func1d(rows[places[0]], *args, **kwargs),), {})
    shape = unwrap(first).shape
    found = call(np.zeros, ((*unwrap(rows).shape[:-1], *shape), unwrap(first).dtype), {})
    found[places[0]] = first
    for place in places[1:]:
        found[place] = call(np.asanyarray, (func1d(rows[place], *args, **kwargs),), {})
    others = len(axes) - 1
    order = [*range(axis), *range(others, others + len(shape)), *range(axis, others)]
    return call(np.transpose, (found, order), {})


def _over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """numpy.apply_over_axes: one axis after another, each of which stays, of length 1."""
    found = call(np.asarray, (a,), {})
    count = unwrap(found).ndim
    for axis in unwrap(axes) if np.ndim(unwrap(axes)) else (unwrap(axes),):
        place = count + axis if axis < 0 else axis
        reduced = func(found, place)
        if unwrap(reduced).ndim != unwrap(found).ndim:
            reduced = call(np.expand_dims, (reduced, place), {})
        if unwrap(reduced).ndim != unwrap(found).ndim:
            raise ValueError("function is not returning an array of the correct shape")
        found = reduced
    return found


def _from_function(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """numpy.fromfunction: one call with the indices of all elements."""
    return function(*call(np.indices, (shape,), {"dtype": dtype}), **kwargs)


def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """numpy.piecewise: each function of what its condition selects, unless that is nothing."""
    x = call(np.asanyarray, (x,), {})
    if np.isscalar(unwrap(condlist)) or (not isinstance(unwrap(condlist[0]), (list, np.ndarray)) and unwrap(x).ndim):
        condlist = [condlist]
    conditions = call(np.asarray, (condlist,), {"dtype": bool})
    count, functions = len(conditions), unwrap(funclist)
    if count == len(functions) - 1:
        rest = ~call(np.any, (conditions,), {"axis": 0, "keepdims": True})
        conditions = call(np.concatenate, ([conditions, rest],), {"axis": 0})
    elif count != len(functions):
        raise ValueError(f"with {count} condition(s), either {count} or {count + 1} functions are expected")
    found = call(np.zeros_like, (x,), {})
    for place, function in enumerate(funclist):
        condition = conditions[place]
        if not callable(function):
            found[condition] = function
            continue
        chosen = x[condition]
        if chosen.size > 0:
            found[condition] = function(chosen, *args, **kw)
    return found


MAKERS: dict[Any, Callable[..., Any]] = {
    np.apply_along_axis: _along_axis,
    np.apply_over_axes: _over_axes,
    np.fromfunction: _from_function,
    np.piecewise: _piecewise,
}
"""NumPy's function -> its algorithm."""
