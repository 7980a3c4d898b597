"""The memory of the arrays that a recording read, and the journal that puts back all that the call wrote."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from accel.ir.overlap import may_share
from accel.ir.tape import Storage
from accel.ir.vast import is_vast

if TYPE_CHECKING:
    from accel.record.state.recording import Recording


class Journal:
    """The writes of one recorded call. actions: what undoes each, in the order of the writes."""

    def __init__(self) -> None:
        self.actions: list[Callable[[], None]] = []

    def add(self, action: Callable[[], None]) -> None:
        """Remember what puts back a write that is about to be made."""
        self.actions.append(action)

    def undo(self) -> None:
        """Put back everything that the recorded call wrote."""
        while self.actions:
            self.actions.pop()()

    def clear(self) -> None:
        """Forget the writes: they stay."""
        self.actions.clear()


def recordable(array: Any) -> bool:
    """Whether XLA has the array's dtype."""
    dtype = array.dtype
    return dtype.kind in "biufc" and dtype.isnative and dtype.itemsize <= (16 if dtype.kind == "c" else 8)


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

    def before_write(self, storage: Storage, view: NDArray[Any] | None = None, key: Any = ...) -> None:
        """Journal a storage of an input at its first write, and refuse where other inputs overlap it.

        view, key: the view of it that is about to be written to, and where in that; None where nobody knows. Of vast
        arrays nothing else is journalled, at each write.
        """
        base = storage.base
        # Made in this call, in which case nobody has to get it back, or never written to, nor could it be put back.
        if storage.origin is None or not base.flags.writeable:
            return
        in_part = view is not None and is_vast(base)
        if in_part:
            self._journal_part(view, key)
        if storage.before is not None and (in_part or storage.before is not base):
            return  # journalled already
        if in_part:
            storage.before = base
        else:
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

    def _journal_part(self, view: Any, key: Any) -> None:
        try:
            before = np.array(view[key])
        except Exception:  # so will the write
            return
        self._recording.journal.add(lambda: operator.setitem(view, key, before))


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


def is_in_c_order(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array's elements lie in memory in the order of their indices, with gaps or without."""
    strides = [stride for stride, size in zip(array.strides, array.shape, strict=True) if size > 1]
    return strides == sorted(strides, reverse=True) and (not strides or strides[-1] > 0)
