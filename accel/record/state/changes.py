"""Changes of the program's objects and containers by a recorded call, as parts of its plan.

Each is one change of the object in the slot `owner`. Values are templates, as in `accel.record.run.outputs`. A change
of a container is relative to what a later call finds in it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

Template = Any


@dataclass(slots=True)
class Write:
    """`owner.name = value` or `owner[name] = value`, or a deletion.

    name: of an item its key, a template where it is computed anew in each call. is_anew: the item is deleted first, so
    that it becomes the last one.
    """

    owner: int
    name: Any
    value: Template
    is_item: bool
    is_anew: bool = False

    def values(self) -> Iterator[tuple[Hashable, Template]]:
        """Each value with what it is for, in words that mean the same on all paths."""
        yield (self.is_item, repr(self.name)), self.value
        if self.is_item:
            yield ("key", repr(self.name)), self.name

    def replace_values(self, change: Callable[[Template], Template]) -> None:
        """Put `change(value)` in the place of each value."""
        self.value = change(self.value)


@dataclass(slots=True)
class Ends:
    """A list or deque gets other ends.

    Without its first `skip` and its last `drop` elements it stands between `front` and `back`. keeps: False where
    nothing of it stays.
    """

    owner: int
    skip: int
    front: list[Template]
    drop: int
    back: list[Template]
    keeps: bool = True

    def values(self) -> Iterator[tuple[Hashable, Template]]:
        """Each new element with its place, counted from its end of the container."""
        # By the distance from their end: what the next call reads as `a[-1]` is one use, however many were appended.
        yield from ((("front", position), value) for position, value in enumerate(self.front))
        yield from ((("back", position - len(self.back)), value) for position, value in enumerate(self.back))

    def replace_values(self, change: Callable[[Template], Template]) -> None:
        self.front, self.back = change(self.front), change(self.back)

    def read_next(self) -> Iterator[tuple[int, Template]]:
        """The indices by which a later call may read a new element, with what makes it."""
        first = self.front if self.keeps else self.back
        yield from enumerate(first)
        yield from ((position - len(self.back), value) for position, value in enumerate(self.back))


@dataclass(slots=True)
class SetMembers:
    """A set gets elements (True) and loses some (False), one after another. keeps: False where it is emptied first.

    In this order, because the order of its elements depends on its history.
    """

    owner: int
    turns: list[tuple[Template, bool]]
    keeps: bool = True

    def values(self) -> Iterator[tuple[Hashable, Template]]:
        yield from ((("member", position), member) for position, (member, _) in enumerate(self.turns))

    def replace_values(self, change: Callable[[Template], Template]) -> None:
        self.turns = [(change(member), is_in) for member, is_in in self.turns]


@dataclass(slots=True)
class Emptied:
    """A dict loses all of its items."""

    owner: int

    def values(self) -> Iterator[tuple[Hashable, Template]]:
        return iter(())

    def replace_values(self, change: Callable[[Template], Template]) -> None:
        """Do nothing: there are no values."""


Change = Write | Ends | SetMembers | Emptied


@dataclass(frozen=True, slots=True)
class Asked:
    """The call takes a result from a cache (functools.lru_cache), for which that counts, and is its latest use.

    owner: the slot of the object whose method is cached; None for a function.
    """

    function: Callable[..., Any]
    owner: int | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def step(self, owner: object) -> Callable[[], Any]:
        """Make the call that asks the cache again, after everything else is done. owner: the object in that slot."""
        bound = () if self.owner is None else (owner,)
        return partial(self.function, *bound, *self.args, **self.kwargs)


class Item(NamedTuple):
    """Names an item of a list or dict, as a string names an attribute. key: its index or key."""

    key: Any


class PlainOwner:
    """The owner of a written attribute that has no wrapper, such as a cell."""

    __slots__ = ("_plain_", "_slot_")

    def __init__(self, plain: Any, slot: int) -> None:
        self._plain_ = plain
        self._slot_ = slot


class AttributeState:
    """The present state of one attribute or item that the recording read or wrote.

    owner: the object's wrapper. wrapped: the recorded value, or MISSING. written: whether the recording set it.
    held: what the real object holds, by identity. is_anew: an item that was deleted and set again, so that it is last.
    """

    __slots__ = ("held", "is_anew", "name", "owner", "wrapped", "written")

    def __init__(self, owner: Any, name: str | Item, wrapped: object, written: bool, held: object) -> None:
        self.held = held
        self.owner = owner
        self.name = name
        self.wrapped = wrapped
        self.written = written
        self.is_anew = False
