"""The base of proxies: objects, containers, modules and classes as recorded code sees them.

Reads enter through their path, writes go to the real object at once and are noted as outputs. There is one proxy per
object and recording, so that `is` stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accel.record.state.inputs import MISSING
from accel.record.state.recording import Recording
from accel.record.state.wrapper import Wrapper, unwrap


class Proxy(Wrapper):
    """Base of the proxies. slot: where a later call finds the object; None for one made in the recorded call."""

    __slots__ = ("_slot_",)
    _slot_: int | None

    def __init__(self, recording: Recording, value: object, slot: int | None = None) -> None:
        object.__setattr__(self, "_recording_", recording)
        object.__setattr__(self, "_plain_", value)
        object.__setattr__(self, "_slot_", slot)
        recording.registry.born(self)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._plain_)

    def __hash__(self) -> int:
        return hash(self._plain_)

    def __eq__(self, other: object) -> Any:
        return self._plain_ == unwrap(other)

    def __ne__(self, other: object) -> Any:
        return self._plain_ != unwrap(other)

    def __repr__(self) -> str:
        self._recording_.break_("value.forced", "the text of an object")
        return repr(self._plain_)

    def __str__(self) -> str:
        self._recording_.break_("value.forced", "the text of an object")
        return str(self._plain_)

    def __reduce_ex__(self, protocol: object) -> Any:
        self._recording_.break_("escape.object", "an object is copied or pickled", touched=True)
        return self._plain_.__reduce_ex__(protocol)


OWN = frozenset({"_recording_", "_plain_", "_slot_", "__class__"})


OPERATORS = frozenset(
    f"__{prefix}{name}__"
    for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
    for prefix in ("", "r", "i")
) | {"__lt__", "__le__", "__gt__", "__ge__"}


def one_per_object(recording: Recording, value: object, make: Callable[[Recording, Any], Any]) -> Any:
    """The stand-in of a function, module or class: one per recording, so that `is` stays what it was."""
    found = recording.registry.stand_ins.get(id(value))
    if found is None or found[0] is not value:
        found = recording.registry.stand_ins[id(value)] = (value, make(recording, value))
    return found[1]


def find_in_class(kind: type, name: str) -> tuple[type | None, Any]:
    """The class of the method resolution order that defines `name`, and what it defines."""
    for owner in kind.__mro__:
        if name in owner.__dict__:
            return owner, owner.__dict__[name]
    return None, MISSING
