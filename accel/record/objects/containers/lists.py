"""Lists from outside."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from accel.record.objects.containers.sequences import SequenceProxy
from accel.record.state import inputs


class ListProxy(SequenceProxy):
    """A list from outside."""

    __slots__ = ()

    def _slice(self, key: slice) -> Any:
        start, stop, step = key.start, key.stop, key.step
        # The last or first ones: whatever is before or behind them.
        if step in (None, 1) and stop is None and type(start) is int and -len(self._plain_) <= start < 0:
            return [self._element(i) for i in range(start, 0)]
        if step in (None, 1) and start in (None, 0) and type(stop) is int and 0 <= stop <= len(self._plain_):
            return [self._element(i) for i in range(stop)]
        self._guard_length()
        return [self._element(i) for i in range(*key.indices(len(self._plain_)))]

    def __delitem__(self, key: object) -> None:
        """Deletions at an end are recorded as such; others need all elements."""
        key = self._key(key)
        if type(key) is not slice or not self._recording_.active or not self._is_as_known():
            super().__delitem__(key)
            return
        size = len(self._plain_)
        start, stop, step = key.indices(size)
        if key.step in (None, 1) and key.start in (None, 0) and type(key.stop) is int and 0 <= key.stop <= size:
            self._take(key.stop, first=True)
        elif key.step in (None, 1) and key.stop is None and type(key.start) is int and -size <= key.start < 0:
            self._take(-key.start, first=False)
        elif step == 1 and start < stop and (start == 0 or stop == size):
            self._guard_length()
            self._take(stop if start == 0 else size - start, first=start == 0)
        else:
            self._change_items(lambda items: items.__delitem__(key))

    def __setitem__(self, key: object, value: Any) -> None:
        key = self._key(key)
        if type(key) is not slice:
            super().__setitem__(key, value)
            return
        values = list(value)
        if key == slice(None):
            self._replace(values)
        else:
            self._change_items(lambda items: items.__setitem__(key, values))

    def insert(self, index: object, value: object) -> None:
        at = self._key(index)
        if at == 0 and type(at) is int:
            self._add_first(value)
        else:
            self._change_items(lambda items: items.insert(at, value))

    def sort(self, *, key: Any = None, reverse: Any = False) -> None:
        self._change_items(lambda items: items.sort(key=key, reverse=reverse))

    def __add__(self, other: object) -> Any:
        return list(self) + list(other) if isinstance(other, list) else NotImplemented

    def __radd__(self, other: object) -> Any:
        return list(other) + list(self) if isinstance(other, list) else NotImplemented

    def __mul__(self, other: object) -> Any:
        return list(self) * other if isinstance(other, (int, np.integer)) else NotImplemented

    __rmul__ = __mul__

    def __imul__(self, other: object) -> Any:
        count = self._key(other)
        self._change_items(lambda items: items.__imul__(count))
        return self


class DequeProxy(SequenceProxy):
    """A deque from outside."""

    __slots__ = ()

    def __init__(self, recording: Any, value: Any, slot: int | None = None) -> None:
        super().__init__(recording, value, slot)
        if slot is not None:
            recording.inputs.narrow(slot, inputs.Code("x.maxlen == {0}", (value.maxlen,)))

    @property
    def maxlen(self) -> int | None:
        maxlen: int | None = self._plain_.maxlen
        return maxlen

    def _make_room(self, *, first: bool) -> None:
        """Before an element is added, remove the first or the last one of a full deque."""
        if self.maxlen is not None and self._recording_.active and self._is_as_known():
            self._guard_least(self.maxlen)
            if len(self._plain_) == self.maxlen:
                self._take(1, first=first)

    def append(self, value: object) -> None:
        if self.maxlen != 0:
            self._make_room(first=True)
            super().append(value)

    def appendleft(self, value: object) -> None:
        if self.maxlen != 0:
            self._make_room(first=False)
            self._add_first(value)

    def _add_first(self, value: object) -> None:
        held = self._stored(value)
        if self._begin_growth():
            self._front.insert(0, (value, held))
        self._plain_.appendleft(held)

    def extendleft(self, values: Iterable[Any]) -> None:
        for value in list(values):
            self.appendleft(value)

    def pop(self) -> Any:
        return super().pop()

    def popleft(self) -> Any:
        if self:
            return super().pop(0)
        with self._recording_.foreseen():
            return self._plain_.popleft()

    def _pop_first(self) -> None:
        self._plain_.popleft()

    copy = SequenceProxy._copy_plain
