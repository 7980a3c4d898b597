"""Repetition: arrays that repeat themselves along axes, in fewer bytes and fewer operations.

A whole step reads a hundred and more megabytes, most of it the same few fields again and again; and on grids most of
the constants, such as the cosine of latitude, are one number per row repeated along it. What is repeated is stored
once, and what is computed from such arrays alone is computed once for each distinct element: the sun's hour angle has
240 cosines on a grid of 29,040 points. Of an array that has only two distinct values (a mask, as numbers), a boolean
array is stored that says which of them each element is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class RepeatedValue:
    """A traced array that repeats along axes. value: as many axes, of length 1 where it repeats. shape: the whole's."""

    value: Any
    shape: tuple[int, ...]

    def whole(self) -> Any:
        """All of it."""
        from jax import numpy as jnp

        return jnp.broadcast_to(self.value, self.shape)


@dataclass(frozen=True, slots=True)
class CompactConstant:
    """A constant. stored: what the device keeps. shape: the array's own. values: what false and true stand for."""

    stored: np.ndarray[Any, Any]
    shape: tuple[int, ...]
    values: tuple[Any, Any] | None = None

    @property
    def form(self) -> tuple[Any, ...]:
        """All that the program knows of it."""
        return self.shape, self.values

    def restore(self, stored: Any) -> Any:
        """The array as traced, or what repeats in it, given the stored part as traced."""
        from jax import numpy as jnp

        if self.values is not None:
            stored = jnp.where(stored, *reversed(self.values))
        return stored if stored.shape == self.shape else RepeatedValue(stored, self.shape)


def without_repetition(array: np.ndarray[Any, Any]) -> CompactConstant:
    """`array` with what repeats along an axis kept once, and of two values which of them."""
    stored = array
    for axis in range(array.ndim):
        first = stored.take([0], axis)
        if stored.shape[axis] > 1 and _same_bits(stored, first):
            stored = first
    values = _two_values(stored) if stored.dtype.itemsize > 1 else None  # "which of them" takes a byte itself
    if values is not None:
        return CompactConstant(_differs(stored, values[0]), array.shape, values)
    return CompactConstant(stored, array.shape)


def _two_values(array: np.ndarray[Any, Any]) -> tuple[Any, Any] | None:
    """The two values that all elements have, by bits; None where there are more."""
    flat = array.reshape(-1)
    low = flat[:1]
    others = _differs(flat, low[0])
    high = flat[others.argmax() :][:1]
    if array.size < 2 or not _same_bits(flat[others], high):
        return None
    return low[0], high[0]


def _differs(array: np.ndarray[Any, Any], value: np.generic) -> np.ndarray[Any, Any]:
    """Where the bits are not those of `value`."""
    differs: np.ndarray[Any, Any] = (_bits(array) != _bits(np.asarray(value, array.dtype))).any(axis=-1)
    return differs


def _same_bits(array: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    return bool((_bits(array) == _bits(other)).all())


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements' bits as integers, along a further axis. As numbers, -0.0 would equal 0.0, and NaN nothing."""
    words = np.dtype(f"u{min(array.dtype.itemsize, 8)}")
    return np.ascontiguousarray(array).reshape(array.shape)[..., np.newaxis].view(words)
