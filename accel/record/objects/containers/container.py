"""The base of containers from outside: changes are journalled, lengths recorded, all else ends the tape."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.record.objects.kinds import is_bare_enum
from accel.record.objects.proxy import Proxy
from accel.record.state import inputs
from accel.record.state.changes import Item
from accel.record.state.wrapper import unwrap
from accel.record.values.arrays import as_static


class ContainerProxy(Proxy):
    """A container from outside.

    before: a copy of it as it was before the recorded call changed it; None until then.
    """

    __slots__ = ("_before", "_counted")

    copied: Callable[[Any], Any]
    """Makes a copy of the real one."""

    def __init__(self, recording: Any, value: object, slot: int | None = None) -> None:
        super().__init__(recording, value, slot)
        self._before: Any = None
        self._counted: Any = None  # its length before the call as a recorded number, once that was asked for

    def as_container(self) -> Any:
        """The container's elements as a plain container of recorded values."""
        raise NotImplementedError

    def as_operand(self) -> Any:
        return self.as_container()

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    # -- changes ------------------------------------------------------------------------------------------------------

    @property
    def _base(self) -> Any:
        """The container as it was when the call began, but for items assigned before any other change."""
        return self._plain_ if self._before is None else self._before

    def _begin_change(self) -> None:
        """Before any change but an assignment to one item: remember the container as it is, for undoing."""
        if self._before is not None:
            return
        real, before = self._plain_, type(self).copied(self._plain_)
        refill = real.extend if isinstance(before, list) else real.update
        self._before = before

        def put_back() -> None:
            real.clear()
            refill(before)

        self._recording_.changed[id(real)] = self
        self._recording_.journal.add(put_back)

    def _forget_items(self) -> None:
        """Forget the states of single items: all are known by now, or gone."""
        attributes = self._recording_.attributes
        for key in [key for key in attributes if key[0] == id(self._plain_) and isinstance(key[1], Item)]:
            del attributes[key]

    def _stored(self, value: object) -> Any:
        """The plain value, as the real container may keep it."""
        return self._recording_.kept.unwrap_to_store(value)

    def _key(self, key: object) -> Any:
        """A key or index as a plain value."""
        return self._recording_.write_down(lambda: as_static(key), unwrap(key))

    def computed(self, key: object) -> Node | None:
        """The node that gives a key, where it is another in each call."""
        return None

    def _give_up(self, how: str) -> None:
        """Something is done with the container that no plan expresses: the tape ends here."""
        self._recording_.break_("escape.object", f"a {type(self._plain_).__name__} of the program's {how}")
        self._begin_change()

    def _copy_plain(self) -> Any:
        """Let Python copy it: the tape ends here."""
        self._give_up("is copied")
        return self._plain_.copy()

    def __getattr__(self, name: str) -> Any:
        # Any method that is not defined here or below: it may change the container.
        attribute = getattr(self._plain_, name)
        if self._recording_.active:
            self._give_up(f"is asked for .{name}")
        if not callable(attribute):
            return attribute
        return lambda *args, **kwargs: attribute(
            *map(self._stored, args), **{key: self._stored(kwargs[key]) for key in kwargs}
        )

    # -- lengths ------------------------------------------------------------------------------------------------------

    def _growth(self) -> int | None:
        """By how much this path changes the length; None where it fixes the length."""
        return len(self._plain_) - len(self._base)

    def _guard_length(self) -> None:
        """Let replays check the length."""
        raise NotImplementedError

    def __len__(self) -> int:
        self._guard_length()
        return len(self._plain_)

    def length(self) -> Any:
        """The length as a recorded number: it may be another in each call."""
        recording, slot, growth = self._recording_, self._slot_, self._growth()
        if not recording.active or slot is None or growth is None:
            return len(self._plain_)
        if self._counted is None:
            name = f"len({recording.inputs.name(slot)})"
            self._counted = recording.enter(len(self._base), ("len", slot), name, inputs.length(slot))
        return self._counted + growth if growth else self._counted

    def __bool__(self) -> bool:
        self._guard_least(1)
        return len(self._plain_) > 0

    def _guard_least(self, count: int) -> None:
        """Let replays check whether it has at least `count` elements now, as in this call."""
        recording, slot, growth = self._recording_, self._slot_, self._growth()
        if recording.active and slot is not None and growth is not None and count > growth:
            holds = len(self._base) >= count - growth
            recording.inputs.narrow(slot, inputs.has_least(count - growth, holds))

    # -- comparisons --------------------------------------------------------------------------------------------------

    def __contains__(self, value: object) -> bool:
        return any(value is part or value == part for part in self)

    def __eq__(self, other: Any) -> Any:
        if not isinstance(unwrap(other), self._comparable):
            return self._plain_ == unwrap(other)
        theirs = other.as_container() if issubclass(type(other), ContainerProxy) else other
        ours = self.as_container()
        return ours == (theirs if isinstance(theirs, type(ours)) else type(ours)(theirs))  # a deque's is a list

    @property
    def _comparable(self) -> type:
        """The type of values that may be equal to it."""
        return type(self._plain_)

    def __ne__(self, other: object) -> Any:
        return not self == other

    __hash__ = None  # type: ignore[assignment]


def is_simple_key(key: object) -> bool:
    """Whether a key is of immutable types of Python's or NumPy's, which no code of the program's hashes or compares."""
    if isinstance(key, enum.Enum):
        return is_bare_enum(type(key))
    return type(key) in _SIMPLE or (type(key) is tuple and all(map(is_simple_key, key)))


_SIMPLE = frozenset({str, int, float, bool, bytes, type(None), np.int64, np.int32, np.float64, np.bool_})


def is_bare_key(key: object) -> bool:
    """Whether a key says all of itself, and there is nothing more to be read of it."""
    return is_simple_key(key) or isinstance(key, (complex, np.generic, enum.Enum, type))
