"""Repetition: arrays that repeat themselves along axes, in fewer bytes and fewer operations.

A whole step reads a hundred megabytes and more, most of it the same few fields again and again. On grids most of the
constants, such as the cosine of latitude, are one number per row repeated along it. Such an array is stored without its
repetition, and values computed from such arrays alone are computed once for each distinct element. The sun's hour angle
has 240 cosines on a grid of 29,040 points. A mask of numbers, all of them 0 or 1, is stored as a boolean array.

A field that is the same everywhere is stored whole. Often it is yet to be filled, and a program with one number in its
place could not go on then (see accel.compiler.lower.renewing).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.rules.core import cast


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
        """Return the form of another array that the device keeps, if the same program restores that array; else
        None."""
        stored = array
        for axis, length in enumerate(self.stored.shape):
            if length < array.shape[axis]:
                once = _once(stored, axis)
                if once is None:
                    return None
                stored = once
        if self.numbers is None:
            return stored if stored.dtype == self.stored.dtype else None
        return _truths(stored) if stored.dtype == self.numbers else None

    def restore(self, stored: Any) -> Any:
        """The array as traced, or what repeats in it, given the stored part as traced."""
        if self.numbers is not None:
            stored = cast(stored, self.numbers)
        return stored if stored.shape == self.shape else RepeatedValue(stored, self.shape)


def without_repetition(array: np.ndarray[Any, Any]) -> CompactConstant:
    """`array` with what repeats along an axis kept once, and of a mask its truths."""
    stored = array
    for axis in range(array.ndim):
        once = _once(stored, axis)
        stored = stored if once is None else once
    if stored.size == 1:
        return CompactConstant(array, array.shape)
    truths = _truths(stored) if stored.dtype.itemsize > 1 else None  # a truth takes a byte itself
    if truths is not None:
        return CompactConstant(truths, array.shape, stored.dtype)
    return CompactConstant(stored, array.shape)


def _once(array: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any] | None:
    """Return the slice that repeats along an axis; None if the slices differ."""
    first = array.take([0], axis)
    return first if _same_bits(array, first) else None


def _truths(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """Return the truths of a mask of numbers; None if an element is neither 0 nor 1, by bits."""
    others = _differs(array, array.dtype.type(0))
    return None if _differs(array[others], array.dtype.type(1)).any() else others


def _differs(array: np.ndarray[Any, Any], value: np.generic) -> np.ndarray[Any, Any]:
    """Mask of the elements whose bits are not those of `value`."""
    differs: np.ndarray[Any, Any] = (_bits(array) != _bits(np.asarray(value, array.dtype))).any(axis=-1)
    return differs


def _same_bits(array: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    return bool((_bits(array) == _bits(other)).all())


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements' bits as integers, along a further axis. As numbers, -0.0 would equal 0.0, and NaN nothing."""
    words = np.dtype(f"u{min(array.dtype.itemsize, 8)}")
    return np.ascontiguousarray(array).reshape(array.shape)[..., np.newaxis].view(words)
