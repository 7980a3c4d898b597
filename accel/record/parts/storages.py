"""The memory of the arrays that a recording read: a write keeps what it overwrites, and meets no other input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.ir.overlap import may_share
from accel.ir.tape import Storage

if TYPE_CHECKING:
    from accel.record.recording import Recording


class Storages:
    """The storages of one recording's inputs, in the order in which they came in."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._entered: list[Storage] = []

    def __iter__(self) -> Iterator[Storage]:
        return iter(self._entered)

    def let_go(self) -> None:
        self._entered.clear()

    def enter(self, storage: Storage, name: str) -> None:
        """Take in an input's storage. Refuses where a written one shares its memory. name: as the user would write it.

        It is not known as the same array, yet what was written there has changed this one too.
        """
        if any(other.written and may_share(other.base, storage.base) for other in self._entered):
            self._recording.break_("alias.overlap", f"{name} shares memory with a written array")
        self._entered.append(storage)

    def before_write(self, storage: Storage) -> None:
        """Journal a storage of an input at its first write, and refuse where other inputs overlap it."""
        base = storage.base
        # Journalled already, or made in this call, in which case nobody has to get it back.
        if storage.before is not None or storage.origin is None or not base.flags.writeable:
            return  # what may not be written to will not be, and could not be put back either
        before = storage.before = base.copy()
        self._recording.journal.add(lambda: np.copyto(base, before))
        if self._recording.refusal is not None:
            return
        if overlaps_itself(base):
            self._recording.break_("alias.overlap", "an array that is written holds elements that share memory")
        # Two names for the same memory: on tape they would be two arrays, and a write through one would not show in the
        # other.
        if any(other is not storage and may_share(other.base, base) for other in self._entered):
            self._recording.break_("alias.overlap", "two inputs share memory and one of them is written")


def overlaps_itself(array: np.ndarray[Any, Any]) -> bool:
    """Whether elements of one array may share memory, as in a window that slides over another array."""
    # By stride, the smallest first: without overlap each axis steps over everything that the axes before it reach.
    axes = sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True) if size > 1)
    reach = array.itemsize
    for stride, size in axes:
        # Not exact (NumPy's own answer may take exponential time), but on the safe side: a refusal too many at worst.
        if stride < reach:
            return array.size > 0
        reach += stride * (size - 1)
    return False
