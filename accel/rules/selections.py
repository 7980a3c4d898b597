"""The engine's own operations on selections: which of its elements a mask selects, by their place among these."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules.core import counted
from accel.rules.lowering import Array, jnp
from accel.rules.rule import own_rule


def _selected(full: Array, mask: Array, number: int) -> Any:
    """The `number` rows of `full` where `mask` holds."""
    return full[jnp.nonzero(mask, size=number, fill_value=0)[0]]


def _nth_numpy(mask: NDArray[Any], place: Any) -> Any:
    return np.flatnonzero(mask)[place]


def _nth(mask: Array, place: Array | int) -> Any:
    """The position of a true element, by its place among these, which may count from the end."""
    size = mask.shape[0]
    if type(place) is int and place == 0:
        return jnp.argmax(mask).astype(np.int64)
    if type(place) is int and place == -1:
        return size - 1 - jnp.argmax(mask[::-1]).astype(np.int64)
    place = jnp.asarray(place).astype(np.int64)
    wanted = jnp.where(place < 0, place + counted(mask), place)
    return jnp.argmax(jnp.cumsum(mask, dtype=np.int64) == wanted + 1).astype(np.int64)


def _has_nth(mask: Any, place: Any) -> Any:
    """Whether a place among the true elements is within these."""
    number = mask.sum(dtype=np.int64)
    place = place if isinstance(place, int) else place.astype(np.int64)
    return (place >= -number) & (place < number)


def _sliced_numpy(mask: NDArray[Any], start: int | None, stop: int | None, step: int | None) -> Any:
    result = np.zeros_like(mask)
    result[np.flatnonzero(mask)[start:stop:step]] = True
    return result


def _sliced(mask: Array, start: int | None, stop: int | None, step: int | None) -> Any:
    """The mask of a slice of what a mask selects. step: positive."""
    rank = jnp.cumsum(mask, dtype=np.int64) - 1
    low, high = (0 if x is None else x if x >= 0 else jnp.maximum(counted(mask) + x, 0) for x in (start, stop))
    inside = mask & (rank >= low)
    inside = inside if stop is None else inside & (rank < high)
    return inside if step in (None, 1) else inside & ((rank - low) % step == 0)


def _first_numpy(mask: NDArray[Any]) -> Any:
    return np.arange(len(mask)) < np.count_nonzero(mask)


def _first(mask: Array) -> Any:
    return jnp.arange(mask.shape[0]) < counted(mask)


def _selected_numpy(full: NDArray[Any], mask: NDArray[Any], number: int) -> Any:
    return full[mask]


SELECTED = own_rule("selected", _selected_numpy, _selected)
NTH = own_rule("nth", _nth_numpy, _nth)
HAS_NTH = own_rule("has_nth", _has_nth, _has_nth)
FIRST = own_rule("first", _first_numpy, _first)
SLICED = own_rule("sliced", _sliced_numpy, _sliced)
