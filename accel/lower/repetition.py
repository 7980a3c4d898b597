"""Repetition: arrays that repeat themselves along axes, in fewer bytes and fewer operations.

A whole step reads a hundred and more megabytes, most of it the same few fields again and again; and on grids most of
the constants, such as the cosine of latitude, are one number per row repeated along it. What is repeated is stored
once, and what is computed from such arrays alone is computed once for each distinct element: the sun's hour angle has
240 cosines on a grid of 29,040 points. Of a mask of numbers, all of them 0 or 1, a boolean array is stored.

Not so of a field that is the same everywhere: often it is one that is yet to be filled, and a program that takes it for
one number could not go on then (see accel.lower.renewing).
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
    """A constant. stored: what the device keeps. shape: the array's own. numbers: the dtype of 0 and 1 in a mask."""

    stored: np.ndarray[Any, Any]
    shape: tuple[int, ...]
    numbers: np.dtype[Any] | None = None

    @property
    def form(self) -> tuple[Any, ...]:
        """All that the program knows of it."""
        return self.shape, None if self.numbers is None else self.numbers.str

    def of(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """What the device is to keep of another array, so that the same program restores that; None if it cannot."""
        stored = array
        for axis, length in enumerate(self.stored.shape):
            if length < array.shape[axis]:
                first = stored.take([0], axis)
                if not _same_bits(stored, first):
                    return None
                stored = first
        if self.numbers is None:
            return stored if stored.dtype == self.stored.dtype else None
        return _ones(stored) if stored.dtype == self.numbers and _is_mask(stored) else None

    def restore(self, stored: Any) -> Any:
        """The array as traced, or what repeats in it, given the stored part as traced."""

        if self.numbers is not None:
            stored = stored.astype(self.numbers)
        return stored if stored.shape == self.shape else RepeatedValue(stored, self.shape)


def without_repetition(array: np.ndarray[Any, Any]) -> CompactConstant:
    """`array` with what repeats along an axis kept once, and of a mask its truths."""
    stored = array
    for axis in range(array.ndim):
        first = stored.take([0], axis)
        if stored.shape[axis] > 1 and _same_bits(stored, first):
            stored = first
    if stored.size == 1:
        return CompactConstant(array, array.shape)
    if stored.dtype.itemsize > 1 and _is_mask(stored):  # a truth takes a byte itself
        return CompactConstant(_ones(stored), array.shape, stored.dtype)
    return CompactConstant(stored, array.shape)


def _is_mask(array: np.ndarray[Any, Any]) -> bool:
    """Whether all elements are 0 or 1, by bits."""
    return not _differs(array[_ones(array)], array.dtype.type(1)).any()


def _ones(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where a mask is 1."""
    return _differs(array, array.dtype.type(0))


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
