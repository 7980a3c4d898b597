"""Alignment: memory that XLA on the CPU reads without a copy of its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.platform.addresses import address_of

ALIGNED = 64
"""XLA on the CPU reads a NumPy array in place if it starts at a multiple of this many bytes; else it copies it."""


class Room(np.ndarray[Any, Any]):
    """The memory of an array. NumPy skips bases of a view's own type: only so `x[1:].base is x` holds."""

    __slots__ = ()


def aligned_copy(array: NDArray[Any]) -> Any:
    """An aligned copy, which XLA reads in place. XLA would make its own copy later, in another thread."""
    copy = aligned_array(array.shape, array.dtype)
    copy[...] = array
    return copy


def aligned_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A new array that XLA reads in place."""
    return made_at(shape, dtype)[0]


def made_at(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[NDArray[Any], int]:
    """A new array that XLA reads in place, and its address."""
    # NumPy aligns to 16 bytes only: take 64 more, and begin at the first aligned one
    room = Room(math.prod(shape) * dtype.itemsize + ALIGNED, np.uint8)
    address = address_of(room)
    first = -address % ALIGNED
    return np.ndarray(shape, dtype, room, first), address + first


def is_aligned(array: NDArray[Any]) -> bool:
    """Whether XLA on the CPU can read the array in place."""
    return bool(address_of(array) % ALIGNED == 0 and array.flags.c_contiguous)
