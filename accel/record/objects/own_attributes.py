"""Own attributes of objects: read without running code of their class, guarded and put back."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Any

from accel.record.objects.proxy import find_in_class
from accel.record.state import inputs
from accel.record.state.changes import AttributeState
from accel.record.state.inputs import MISSING
from accel.record.state.recording import Recording


def is_slot(found: object) -> bool:
    """Whether a class attribute is a slot (`__slots__`)."""
    return type(found).__name__ == "member_descriptor"


def own_attribute(real: object, name: str) -> Any:
    """An object's own attribute, in its namespace or in a slot; MISSING where it has none."""
    _, found = find_in_class(type(real), name)
    if not is_slot(found):
        return getattr(real, "__dict__", {}).get(name, MISSING)
    try:
        return found.__get__(real)  # not by getattr, for which __getattr__ may answer
    except AttributeError:
        return MISSING


def own_names(real: object) -> list[str]:
    """The names of all that an object holds itself: its namespace in order, then its slots."""
    slots = _slots_of(type(real))  # type: ignore[arg-type]
    return [*getattr(real, "__dict__", ()), *(name for name in slots if has_attribute(real, name))]


@functools.lru_cache(maxsize=256)
def _slots_of(kind: type) -> tuple[str, ...]:
    """The names of the slots of a class."""
    found = (name for each in kind.__mro__ for name, value in vars(each).items() if is_slot(value))
    # SimpleNamespace has its namespace in one.
    return tuple(dict.fromkeys(name for name in found if name != "__dict__"))


def has_attribute(real: object, name: str) -> bool:
    """Whether an object holds something itself under a name."""
    return own_attribute(real, name) is not MISSING


def note_attribute(proxy: Any, name: str, wrapped: object, *, written: bool) -> None:
    """Note what an attribute holds now.

    wrapped: its recorded form, or MISSING. written: whether the recorded call set or deleted it.
    """
    real = proxy._plain_
    held = own_attribute(real, name)
    attributes, key = proxy._recording_.attributes, (id(real), name)
    before = attributes.get(key)
    if written and (before is None or before.wrapped is MISSING):
        # `vars(self)` lists attributes in the order in which they were first set.
        attributes.pop(key, None)  # new ones are set in the order in which they came
    attributes[key] = AttributeState(proxy, name, wrapped, written, held)


def restore_attribute(real: object, name: str, before: object) -> None:
    """Give an object back what it held itself before, past any code of its class."""
    if before is not MISSING:
        object.__setattr__(real, name, before)
    elif own_attribute(real, name) is not MISSING:
        object.__delattr__(real, name)


def is_computed_without(kind: type, name: str) -> bool:
    """Whether code of a class would run for an attribute that an object does not have itself.

    A replay reads its inputs first: the code would run too early, and see what the call has yet to change.
    """
    _, found = find_in_class(kind, name)
    is_computed = hasattr(type(found), "__get__") and not is_slot(found)
    return is_computed or find_in_class(kind, "__getattr__")[0] is not None


def guard_no_own(recording: Recording, slot: int | None, name: str) -> None:
    """Let replays check that an object has no attribute of its own that hides its class's."""
    if slot is None:
        return
    # One guard per object for all names, since a method call on `self` is in every line of many programs.
    absent = recording.absent.get(slot)
    if absent is None:
        absent = recording.absent[slot] = set()
        recording.inputs.add(
            ("own", slot),
            f"{recording.inputs.name(slot)}'s own attributes",
            inputs.of_slot(slot, _own_names),
            inputs.satisfies(_has_none_of, absent),
        )
    absent.add(name)


def _own_names(value: object) -> Collection[str]:
    return getattr(value, "__dict__", ())


def _has_none_of(names: Collection[str], absent: set[str]) -> bool:
    return absent.isdisjoint(names)
