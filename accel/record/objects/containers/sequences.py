"""The base of lists and deques from outside.

A call keeps a stretch of what was there, and takes away and adds at the two ends; that needs neither the length nor
the elements of the stretch. What is done in the middle needs all of them.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from accel.record.objects.containers.container import ContainerProxy
from accel.record.state import inputs
from accel.record.state.changes import AttributeState, Ends, Item
from accel.record.state.wrapper import unwrap

MOST_KNOWN = 1000
"""Maximum length of a container that may be changed in its middle: all elements become inputs. Guess."""

Element = tuple[Any, Any]
"""A new element: its recorded form, and what the real container holds."""


class SequenceProxy(ContainerProxy):
    """A list or deque from outside.

    front, back: new elements before and behind those of the stretch. skip, drop: how many of the former elements are
    missing before and behind it. keeps: there is a stretch at all. assigned: elements of it were assigned.
    """

    __slots__ = ("_assigned", "_back", "_drop", "_front", "_is_length_fixed", "_keeps", "_skip")

    copied = list

    def __init__(self, recording: Any, value: object, slot: int | None = None) -> None:
        super().__init__(recording, value, slot)
        self._front: list[Element] = []
        self._back: list[Element] = []
        self._skip = self._drop = 0
        self._keeps = True
        self._assigned = False
        self._is_length_fixed = False

    def as_container(self) -> Any:
        return list(self)

    def change(self, template: Callable[[Any], Any]) -> Ends | None:
        """The change of the ends that a replay makes; None if there is none."""
        front, back = ([template(wrapped) for wrapped, _ in part] for part in (self._front, self._back))
        is_same = self._keeps and not (self._skip or self._drop or front or back)
        if is_same or self._slot_ is None:
            return None
        if not self._keeps:
            return Ends(self._slot_, 0, [], 0, front + back, keeps=False)
        return Ends(self._slot_, self._skip, front, self._drop, back)

    # -- where an element is ------------------------------------------------------------------------------------------

    @property
    def _stretch(self) -> int:
        """The number of elements in the stretch."""
        return len(self._base) - self._skip - self._drop if self._keeps else 0

    def _growth(self) -> int | None:
        if not self._keeps or self._is_length_fixed:
            return None
        return len(self._front) + len(self._back) - self._skip - self._drop

    def _guard_length(self) -> None:
        recording, slot = self._recording_, self._slot_
        if recording.active and slot is not None and self._growth() is not None:
            recording.inputs.narrow(slot, inputs.has_length(type(self._plain_), len(self._base)))
            self._is_length_fixed = True

    def _is_as_known(self) -> bool:
        """Whether the real one has the length that this call gave it. If not, the tape ends."""
        if len(self._plain_) == len(self._front) + self._stretch + len(self._back):
            return True
        self._recording_.break_unseen("a container was changed from outside the recorded code")
        return False

    def _place(self, index: int, *, is_read: bool = True) -> tuple[list[Element] | None, int] | None:
        """Find an element: the part (front, back, or None for the stretch), and its index. None if out of range.

        An index into the stretch counts in the container as it was before the call, from its end if negative. Replays
        check that the element is there. is_read: a replay fetches it, and so fails where it is missing.
        """
        front, back, stretch = len(self._front), len(self._back), self._stretch
        if 0 <= index < front:
            return self._front, index
        if -back <= index < 0:
            return self._back, back + index
        if front <= index < front + stretch:
            if self._drop or not is_read:
                self._guard_least(index + back + 1)
            return None, index - front + self._skip
        if -back - stretch <= index < -back and not (self._assigned or self._is_length_fixed):
            if self._skip or not is_read:
                self._guard_least(front - index)
            return None, index + back - self._drop
        # The length decides where it is.
        self._guard_length()
        index += len(self._plain_) if index < 0 else 0
        if not 0 <= index < len(self._plain_):
            return None
        if index < front:
            return self._front, index
        return (None, index - front + self._skip) if index < front + stretch else (self._back, index - front - stretch)

    def _real_index(self, offset: int) -> int:
        """The present index of an element of the stretch. offset: its former index."""
        return (offset if offset >= 0 else len(self._base) + offset) - self._skip + len(self._front)

    def _element(self, index: int) -> Any:
        """The element at an index, recorded. Raises IndexError as Python does."""
        place = self._place(index)
        if place is None:
            with self._recording_.foreseen():
                return self._plain_[index]
        part, at = place
        return self._former(at) if part is None else part[at][0]

    def _former(self, offset: int) -> Any:
        """An element of the stretch."""
        recording, real, slot = self._recording_, self._plain_, self._slot_
        state = recording.attributes.get((id(real), Item(offset)))
        held = self._base[offset] if state is None else state.held
        if real[self._real_index(offset)] is not held or slot is None:
            recording.break_unseen("a container was changed from outside the recorded code")
            return real[self._real_index(offset)]
        if state is not None:
            return state.wrapped
        name = f"{recording.inputs.name(slot)}[{offset}]"
        return recording.enter(held, ("item", slot, Item(offset)), name, inputs.item(slot, offset))

    def _key(self, key: object) -> Any:
        index = super()._key(key)
        return int(index) if isinstance(index, np.integer) else index

    # -- reading ------------------------------------------------------------------------------------------------------

    def __getitem__(self, key: object) -> Any:
        if not self._recording_.active:
            return self._plain_[unwrap(key)]
        key = self._key(key)
        if not self._is_as_known() or type(key) not in (int, slice):
            return self._plain_[key]  # Python's TypeError
        return self._element(key) if type(key) is int else self._slice(key)  # type: ignore[arg-type]

    def _slice(self, key: slice) -> Any:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        self._guard_length()
        return self._elements(iter(self._plain_), itertools.count())

    def __reversed__(self) -> Iterator[Any]:
        self._guard_length()
        return self._elements(reversed(self._plain_), itertools.count(len(self._plain_) - 1, -1))

    def _elements(self, plain: Iterator[Any], indices: Iterator[int]) -> Iterator[Any]:
        """The elements while Python's own iterator goes on: the container may be changed meanwhile."""
        for _, index in zip(plain, indices, strict=False):
            yield self[index]

    def copy(self) -> Any:
        return list(self)

    def index(self, *args: Any) -> int:
        return list(self).index(*args)

    def count(self, value: object) -> int:
        return list(self).count(value)

    # -- changing -----------------------------------------------------------------------------------------------------

    def _begin_growth(self) -> bool:
        """Whether a change of the ends is recorded; the container is journalled then."""
        if not self._recording_.active or not self._is_as_known() or self._slot_ is None:
            return False
        self._begin_change()
        return True

    def append(self, value: object) -> None:
        held = self._stored(value)
        if self._begin_growth():
            self._back.append((value, held))
        self._plain_.append(held)

    def extend(self, values: Iterable[Any]) -> None:
        for value in list(values):
            self.append(value)

    def __iadd__(self, values: Iterable[Any]) -> Any:
        self.extend(values)
        return self

    def clear(self) -> None:
        self._replace([])

    def pop(self, *index: Any) -> Any:
        at = self._key(index[0]) if index else -1
        if not self._recording_.active or type(at) is not int or len(index) > 1 or not self._is_as_known():
            return self._plain_.pop(*map(unwrap, index))
        if self._place(at) is None:
            with self._recording_.foreseen():
                return self._plain_.pop(*map(unwrap, index))
        value = self._element(at)
        del self[at]
        return value

    def __delitem__(self, key: object) -> None:
        key = self._key(key)
        if not self._recording_.active or type(key) is not int or not self._is_as_known():
            del self._plain_[key]
        elif key == 0 and self:
            self._take(1, first=True)
        elif key == -1 and self:
            self._take(1, first=False)
        else:
            self._change_items(lambda items: items.__delitem__(key))

    def _take(self, count: int, *, first: bool) -> None:
        """Remove elements that are there: the first ones, or else the last ones."""
        near, far, end = (self._front, self._back, 0) if first else (self._back, self._front, -1)
        self._guard_least(count)
        if count and self._begin_growth():
            for _ in range(count):
                if near:
                    near.pop(end)
                elif self._stretch:
                    self._guard_least(1 + len(far))
                    self._skip += first
                    self._drop += not first
                else:
                    self._guard_length()
                    far.pop(end)
        for _ in range(count):
            self._pop_first() if first else self._plain_.pop()

    def _pop_first(self) -> None:
        del self._plain_[0]

    def _change_items(self, change: Callable[[list[Any]], Any]) -> Any:
        """Make a change, by a method of list's, that may concern any element."""
        recording = self._recording_
        if recording.active and len(self._plain_) > MOST_KNOWN:
            self._give_up(f"with {len(self._plain_)} elements is changed in its middle")
        if not recording.active or not self._is_as_known():
            items = list(self._plain_)
            result = change(items)
            self._refill([self._stored(item) for item in items])
            return result
        self._guard_length()
        items = [self._element(i) for i in range(len(self._plain_))]
        result = change(items)
        self._replace(items)
        return result

    def _replace(self, items: list[Any]) -> None:
        """Let it hold these elements from now on, and no other."""
        elements = [(item, self._stored(item)) for item in items]
        if self._begin_growth():
            self._forget_items()
            self._front, self._back, self._skip, self._drop, self._keeps = [], elements, 0, 0, False
        self._refill([held for _, held in elements])

    def _refill(self, held: list[Any]) -> None:
        """Put other elements into the real one."""
        self._plain_.clear()
        self._plain_.extend(held)

    def _add_first(self, value: object) -> None:
        held = self._stored(value)
        if self._begin_growth():
            self._front.insert(0, (value, held))
        self._plain_.insert(0, held)

    def remove(self, value: object) -> None:
        self._change_items(lambda items: items.remove(value))

    def reverse(self) -> None:
        self._change_items(lambda items: items.reverse())

    def __setitem__(self, key: object, value: object) -> None:
        recording, real = self._recording_, self._plain_
        key = self._key(key)
        if not recording.active or type(key) is not int or not self._is_as_known():
            real[key] = self._stored(value)
            return
        place = self._place(key, is_read=False)
        if place is None:
            with recording.foreseen():
                real[key] = None
            return
        part, at = place
        held = self._stored(value)
        if part is not None:
            real[key], part[at] = held, (value, held)
            return
        if at < 0:  # assigned elements have one name each
            self._guard_length()
            at += len(self._base)
        index, before = self._real_index(at), real[self._real_index(at)]
        if self._before is None:
            recording.journal.add(lambda: operator.setitem(real, index, before))
        real[index] = held
        self._assigned = True
        recording.attributes[(id(real), Item(at))] = AttributeState(self, Item(at), value, True, held)
