"""Deques from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from accel.record.objects.containers.sequences import SequenceProxy
from accel.record.state import inputs


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

    def _make_room(self, take: Callable[[int], None]) -> None:
        """Before an element is added: a full deque loses one at its other end."""
        if self.maxlen is not None and self._recording_.active and self._is_as_known():
            self._guard_least(self.maxlen)
            if len(self._plain_) == self.maxlen:
                take(1)

    def append(self, value: object) -> None:
        if self.maxlen != 0:
            self._make_room(self._take_first)
            super().append(value)

    def appendleft(self, value: object) -> None:
        if self.maxlen != 0:
            self._make_room(self._take_last)
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

    def insert(self, index: object, value: object) -> None:
        at = self._key(index)
        if self.maxlen is not None:
            self._guard_least(self.maxlen)
            if len(self._plain_) == self.maxlen:
                with self._recording_.foreseen():
                    self._plain_.insert(at, None)
        self._change_items(lambda items: items.insert(at, value))

    def rotate(self, steps: Any = 1) -> None:
        count = self._key(steps)

        def turn(items: list[Any]) -> None:
            at = -count % len(items) if items else 0
            items[:] = items[at:] + items[:at]

        self._change_items(turn)

    def copy(self) -> Any:
        self._give_up("is copied")
        return self._plain_.copy()
