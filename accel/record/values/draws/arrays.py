"""Draws of an array's elements: a draw of indices before launch, then a gather of what the program has computed.

NumPy draws the order or the choice of elements without looking at them. Whether a version of NumPy draws the indices
alone from the same numbers is tried for each recorded draw, by a twin of the generator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.record.values.calls.call import call
from accel.record.values.draws.early import is_same_array
from accel.record.values.draws.twins import tried
from accel.rules.rule import Unsupported


def axis_of(bound: dict[str, Any], array: Any) -> int:
    """The axis along which a draw takes elements."""
    axis = bound.get("axis", 0)
    if type(axis) is not int or not -array.ndim <= axis < array.ndim:
        raise Unsupported("effect.random", "an array without that axis")
    return int(axis % array.ndim)


def indices_of(
    generator: Any, state: Any, draw: Callable[[Any], Any], array: np.ndarray[Any, Any], axis: int, result: Any
) -> Any:
    """The indices whose draw can stand for a draw of an array's elements that gave `result`. Raises Unsupported.

    state: the generator's before that draw. draw: draws indices from a generator.
    """
    indices = tried(generator, state, draw)
    if indices is None or not is_same_array(np.asarray(np.take(array, indices, axis=axis)), np.asarray(result)):
        raise Unsupported("effect.random", "indices alone would leave the generator in another state")
    return indices


def taken(array: Any, indices: Any, axis: int) -> Any:
    """The elements of a recorded array at recorded indices."""
    return call(np.take, (array, indices), {"axis": axis})
