"""What the recording knows of one attribute or item: read or written, and what it holds now."""

from __future__ import annotations

from typing import Any, NamedTuple


class Item(NamedTuple):
    """Names an item of a list or dict, as a string names an attribute. key: its index or key."""

    key: Any


class PlainOwner:
    """Stands for what has no wrapper, such as a cell or a class, among the owners of what the call writes."""

    __slots__ = ("_plain_", "_slot_")

    def __init__(self, plain: Any, slot: int) -> None:
        self._plain_ = plain
        self._slot_ = slot


class AttributeState:
    """What an attribute or item that the recording read or wrote holds now.

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
