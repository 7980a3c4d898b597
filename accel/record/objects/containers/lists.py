"""Lists from outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.record.objects.containers.sequences import SequenceProxy


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
        key = self._key(key)
        if type(key) is not slice or not self._recording_.active or not self._is_as_known():
            super().__delitem__(key)
            return
        size = len(self._plain_)
        start, stop, step = key.indices(size)
        if key.step in (None, 1) and key.start in (None, 0) and type(key.stop) is int and 0 <= key.stop <= size:
            self._take_first(key.stop)
        elif key.step in (None, 1) and key.stop is None and type(key.start) is int and -size <= key.start < 0:
            self._take_last(-key.start)
        elif step == 1 and start < stop and (start == 0 or stop == size):
            self._guard_length()
            self._take_first(stop) if start == 0 else self._take_last(size - start)
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
