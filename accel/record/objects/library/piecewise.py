"""`np.piecewise` of functions of the program's: these are followed, and NumPy's own is not run at all.

It is NumPy's algorithm, in calls that are recorded. So what the program's functions do happens once, in NumPy's order,
and what they return is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.record.objects.functions import RuleFunction
from accel.record.state.recording import Recording
from accel.record.state.wrapper import unwrap
from accel.record.values.calls.call import call, calls_back


class Piecewise(RuleFunction):
    """The stand-in of `np.piecewise`."""

    __slots__ = ()

    def __init__(self, recording: Recording, function: Any) -> None:
        super().__init__(function)
        self._recording_ = recording

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._recording_.active and calls_back(args, kwargs):
            return _piecewise(*args, **kwargs)
        return super().__call__(*args, **kwargs)


def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Each function of what its condition selects, unless that is nothing."""
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
