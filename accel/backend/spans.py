"""Spans: how NumPy's arrays reach a program on XLA:CPU where they lie, without a copy.

XLA reads an array in place if it starts at a multiple of 64 bytes. NumPy's start at any multiple of 16, and large ones
nearly always 16 bytes after such a place; XLA copies those first, which costs as much as a simple program itself. So
the program gets the *span* of such an array: the aligned memory around it, one-dimensional and of a length that is
the same for all arrays of the shape, and as a number where in it the array begins. What belongs to others there is
never part of a result. A program reads a span a little slower than an array that is aligned, as those are that other
programs made: it is compiled again with spans once it has turned out that it would have to copy.

A span never reaches into a page of memory that its array is not in: that page might not be there.
"""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.process.memory import array_at

ALIGNED = 64
"""XLA on CPU uses a NumPy array where it lies if it starts at a multiple of so many bytes, and copies it otherwise."""

LARGE = 2**18
"""Bytes of an array from which a span is worth a place of its own in the program."""

LARGEST = 2**31
"""Bytes from which places in a span are no 32-bit numbers."""

PAGE = mmap.PAGESIZE


@dataclass(frozen=True, slots=True)
class Span:
    """What a program knows of a span. shape, dtype: the array's. length: elements of the whole span."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    length: int

    @property
    def nbytes(self) -> int:
        return self.length * self.dtype.itemsize

    def of(self, array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int]:
        """The memory around the array, and the place of its first element there; that of a copy where it has none."""
        start = _start(array)
        if start is None:
            room = aligned_room(self.nbytes).view(self.dtype)
            room[: array.size].reshape(array.shape)[...] = array
            return room, 0
        around = array_at(start, (self.length,), self.dtype.str, owner=array, writeable=False)
        return around, (array.ctypes.data - start) // self.dtype.itemsize

    def read(self, memory: Any, place: Any) -> Any:
        """The array inside a program, from its span and place."""
        from jax import lax

        size = int(np.prod(self.shape))
        return lax.dynamic_slice(memory, (place,), (size,)).reshape(self.shape)


def _start(array: np.ndarray[Any, Any]) -> int | None:
    """The address where the array's span starts, if the array is in one piece and its pages hold all of it."""
    first, itemsize = array.ctypes.data, array.dtype.itemsize
    if not array.flags.c_contiguous or ALIGNED % itemsize or first % itemsize:
        return None
    length = _length(array)
    last = first + array.nbytes
    for start in (first - first % ALIGNED, first - first % ALIGNED - ALIGNED):
        if start >= first - first % PAGE and last <= start + length <= last + -last % PAGE:
            return start
    return None


def gains_by_span(sample: np.ndarray[Any, Any]) -> bool:
    """Whether a program should take arrays like the sample, which is not aligned, from spans: large ones in a piece."""
    return LARGE <= sample.nbytes < LARGEST and _start(sample) is not None


def span_of(sample: np.ndarray[Any, Any]) -> Span:
    """What a program has to know of the spans of arrays like the sample."""
    return Span(sample.shape, sample.dtype, _length(sample) // sample.dtype.itemsize)


def _length(array: np.ndarray[Any, Any]) -> int:
    """Bytes of the spans of such arrays, wherever they lie."""
    return array.nbytes + -array.nbytes % ALIGNED + ALIGNED


def prepared_arrays(
    arrays: Sequence[Any], spans: Mapping[int, Span], copied: Counter[int]
) -> tuple[list[Any], np.ndarray[Any, Any] | None]:
    """Arrays as the program takes them, and where in their spans those of them are that have one.

    spans: by place among the arrays. copied: counts, by place, arrays that would gain by a span.
    """
    given = list(arrays)
    for at, array in enumerate(arrays):
        if at not in spans and not is_aligned(array):
            copied[at] += gains_by_span(array)
            given[at] = aligned_copy(array)
    if not spans:
        return given, None
    places = np.empty(len(spans), np.int32)
    for number, (at, span) in enumerate(spans.items()):
        given[at], places[number] = span.of(arrays[at])
    return given, places


def arrays_from(given: Sequence[Any], places: Any, spans: Mapping[int, Span]) -> list[Any]:
    """Inside a program: the arrays that were handed over."""
    arrays = list(given)
    for number, (at, span) in enumerate(spans.items()):
        arrays[at] = span.read(given[at], places[number])
    return arrays


def aligned_copy(array: Any) -> Any:
    """A copy of the array that XLA can use where it lies. XLA's own copy would be made by another thread, later."""
    copy = aligned_room(array.nbytes).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def is_aligned(array: Any) -> bool:
    """Whether XLA on CPU can use the array where it lies."""
    return array.ctypes.data % ALIGNED == 0 and array.flags.c_contiguous


def aligned_room(nbytes: int) -> np.ndarray[Any, Any]:
    """So many bytes of new memory, aligned."""
    room = np.empty(nbytes + ALIGNED, np.uint8)
    first = -room.ctypes.data % ALIGNED
    return room[first : first + nbytes]
