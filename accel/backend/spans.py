"""Spans: pass NumPy's arrays to a program on XLA:CPU without a copy.

XLA reads an array in place if it starts at a multiple of 64 bytes. NumPy's arrays start at any multiple of 16, and
large ones nearly always 16 bytes after a multiple of 64. XLA copies such arrays first, which costs as much as a simple
program itself. So the program gets the *span* of the array instead: the aligned memory around it, as a one-dimensional
array whose length is the same for all arrays of the shape, and the offset of the array in it. Foreign memory in the
span is never part of a result.

Reading a span is a little slower than reading an aligned array, such as the result of another program. So a program is
first compiled without spans, and compiled again with them once it has turned out that arrays have to be copied.

A span never reaches into a memory page that its array does not touch, because that page might not be mapped.
"""

from __future__ import annotations

import contextlib
import math
import mmap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.process.memory import array_at

ALIGNED = 64
"""XLA on the CPU reads a NumPy array in place if it starts at a multiple of this many bytes; else it copies it."""

LARGE = 2**18
"""The smallest array, in bytes, for which a span is worth its overhead."""

LARGEST = 2**31
"""From this many bytes on, offsets in a span do not fit in 32 bits."""

PAGE = mmap.PAGESIZE


@dataclass(frozen=True, slots=True)
class Span:
    """The static properties of a span. shape, dtype: the array's. length: elements of the whole span."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    length: int

    @property
    def nbytes(self) -> int:
        return self.length * self.dtype.itemsize

    def of(self, array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int]:
        """The span of an array, and the offset of its first element. If it has no span, a span with a copy of it."""
        start = _start(array)
        if start is None:
            room = aligned_room(self.nbytes).view(self.dtype)
            room[: array.size].reshape(array.shape)[...] = array
            return room, 0
        around = array_at(start, (self.length,), self.dtype.str, owner=array, writeable=False)
        return around, (array.ctypes.data - start) // self.dtype.itemsize

    def read(self, memory: Any, offset: Any) -> Any:
        """Inside a program: the array, from its span and offset."""
        from jax import lax

        size = int(np.prod(self.shape))
        return lax.dynamic_slice(memory, (offset,), (size,)).reshape(self.shape)


def _start(array: np.ndarray[Any, Any]) -> int | None:
    """The address of the array's span; None if the array is not contiguous, or its pages do not hold the span."""
    first, itemsize = array.ctypes.data, array.dtype.itemsize
    # the span must begin at an element, or the offset would be no whole number
    if not array.flags.c_contiguous or ALIGNED % itemsize or first % itemsize:
        return None
    length = _length(array)
    last = first + array.nbytes
    # from the aligned address before the array; if its end would reach into a foreign page, 64 bytes earlier
    for start in (first - first % ALIGNED, first - first % ALIGNED - ALIGNED):
        if start >= first - first % PAGE and last <= start + length <= last + -last % PAGE:
            return start
    return None


def gains_by_span(sample: np.ndarray[Any, Any]) -> bool:
    """Whether arrays like the sample, which is not aligned, should be passed as spans: large contiguous ones."""
    return LARGE <= sample.nbytes < LARGEST and _start(sample) is not None


def span_of(sample: np.ndarray[Any, Any]) -> Span:
    """The static properties of the spans of arrays like the sample."""
    return Span(sample.shape, sample.dtype, _length(sample) // sample.dtype.itemsize)


def _length(array: np.ndarray[Any, Any]) -> int:
    """Bytes of the spans of arrays of this size, whatever their addresses."""
    # room for the array wherever it starts between two aligned addresses: one shape, one program
    return array.nbytes + -array.nbytes % ALIGNED + ALIGNED


def prepared_arrays(
    arrays: Sequence[Any], spans: Mapping[int, Span], copied: Counter[int]
) -> tuple[list[Any], np.ndarray[Any, Any] | None]:
    """The arrays as the program takes them, and the offsets of those that are passed as spans (None without spans).

    spans: by index of the array. copied: by index, counts arrays that were copied and would gain by a span.
    """
    arguments = list(arrays)
    for at, array in enumerate(arrays):
        if at not in spans and not is_aligned(array):
            # counted where it gains: `Path.reconsider` compiles the program again if most runs copy
            copied[at] += gains_by_span(array)
            arguments[at] = aligned_copy(array)
    if not spans:
        return arguments, None
    offsets = np.empty(len(spans), np.int32)
    for number, (at, span) in enumerate(spans.items()):
        arguments[at], offsets[number] = span.of(arrays[at])
    return arguments, offsets


_sources: ContextVar[list[tuple[Any, Any, Any]]] = ContextVar("arrays that are read from spans")
"""While a program is traced: such an array, its span, and its offset in that."""


@contextlib.contextmanager
def arrays_from(arguments: Sequence[Any], offsets: Any, spans: Mapping[int, Span]) -> Iterator[list[Any]]:
    """Inside a program: the arrays behind what `prepared_arrays` returned. Within, `source_of` knows them."""
    arrays = list(arguments)
    for number, (at, span) in enumerate(spans.items()):
        arrays[at] = span.read(arguments[at], offsets[number])
    token = _sources.set([(arrays[at], arguments[at], offsets[number]) for number, at in enumerate(spans)])
    try:
        yield arrays
    finally:
        _sources.reset(token)


def source_of(array: Any) -> tuple[Any, Any] | None:
    """Inside a program: the span and offset that an array is read from, if it is. XLA copies it for a callback."""
    return next(((memory, offset) for known, memory, offset in _sources.get(()) if known is array), None)


def aligned_copy(array: NDArray[Any]) -> Any:
    """An aligned copy, which XLA reads in place. XLA would make its own copy later, in another thread."""
    copy = aligned_array(array.shape, array.dtype)
    copy[...] = array
    return copy


def aligned_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A new array that XLA reads in place."""
    return aligned_room(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)


def is_aligned(array: NDArray[Any]) -> bool:
    """Whether XLA on the CPU can read the array in place."""
    return bool(array.ctypes.data % ALIGNED == 0 and array.flags.c_contiguous)


def aligned_room(nbytes: int) -> np.ndarray[Any, Any]:
    """New aligned memory of `nbytes` bytes."""
    room = np.empty(nbytes + ALIGNED, np.uint8)
    # NumPy aligns to 16 bytes only: take 64 more, and begin at the first aligned one
    first = -address_of(room) % ALIGNED
    return room[first : first + nbytes]


def address_of(array: NDArray[Any]) -> int:
    """Where an array's memory begins. It takes half as long as `array.ctypes.data`."""
    address: int = array.__array_interface__["data"][0]
    return address
