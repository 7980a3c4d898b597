"""Alignment: memory that XLA on the CPU reads without a copy of its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNED = 64
"""XLA on the CPU reads a NumPy array in place if it starts at a multiple of this many bytes; else it copies it."""


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
    room, address = _room(math.prod(shape) * dtype.itemsize)
    return room.view(dtype).reshape(shape), address


def is_aligned(array: NDArray[Any]) -> bool:
    """Whether XLA on the CPU can read the array in place."""
    return bool(address_of(array) % ALIGNED == 0 and array.flags.c_contiguous)


def _room(nbytes: int) -> tuple[np.ndarray[Any, Any], int]:
    """New aligned memory of `nbytes` bytes, and its address."""
    room = np.empty(nbytes + ALIGNED, np.uint8)
    # NumPy aligns to 16 bytes only: take 64 more, and begin at the first aligned one
    address = address_of(room)
    first = -address % ALIGNED
    return room[first : first + nbytes], address + first


def address_of(array: NDArray[Any]) -> int:
    """Return the address of an array's memory. Takes half as long as `array.ctypes.data`."""
    address: int = array.__array_interface__["data"][0]
    return address
