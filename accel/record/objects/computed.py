"""Attributes that a class computes: by a property or `__getattr__`, which are followed, or by some other descriptor."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from accel.record.objects.follow import Followed, target_function
from accel.record.objects.own_attributes import guard_no_own
from accel.record.objects.proxy import find_in_class
from accel.record.state import inputs
from accel.record.state.inputs import MISSING
from accel.record.state.recording import Recording


def answered(proxy: Any, name: str, kind: type, answering: Any) -> Any:
    """What a class's `__getattr__` gives for an attribute that is not there: it is followed, as a method is."""
    recording = proxy._recording_
    function = target_function(recording, answering)
    if not isinstance(function, FunctionType) or find_in_class(kind, "__getattribute__")[0] is not object:
        return opaque_attribute(proxy, name, f"the __getattr__ of {kind.__name__}")
    guard_no_own(recording, proxy._slot_, name)
    found = find_in_class(kind, name)[1]
    if found is MISSING:
        _guard_missing(recording, kind, name)
    else:  # a slot that holds nothing
        guard_class(recording, kind, name, found)
    guard_class(recording, kind, "__getattr__", answering)
    return Followed(recording, function, (proxy,))(name)


def opaque_attribute(proxy: Any, name: str, by: str = "a descriptor") -> Any:
    """What a descriptor gives, whose code runs unseen: the tape ends here."""
    proxy._recording_.break_("object.opaque", f".{name} is computed by {by}")
    return getattr(proxy._plain_, name)


def guard_class(recording: Recording, kind: type, name: str, found: Any) -> None:
    """Let replays check that a lookup of `name` through a class finds what it found."""
    _guard_lookup(recording, kind, name, inputs.of_class(kind, name), inputs.is_same(found))


def _guard_missing(recording: Recording, kind: type, name: str) -> None:
    """Let replays check that a class has nothing under a name."""
    _guard_lookup(recording, kind, name, inputs.of_constant(kind), inputs.satisfies(_lacks, name))


def _guard_lookup(recording: Recording, kind: type, name: str, fetch: Any, check: Any) -> None:
    key = ("lookup", id(kind), name)
    if recording.inputs.find(key) is None:
        recording.registry.keep_alive(kind)
        recording.inputs.add(key, f"{kind.__name__}.{name}", fetch, check)


def _lacks(kind: type, name: str) -> bool:
    return find_in_class(kind, name)[0] is None


def property_of(proxy: Any, name: str, kind: type, found: property) -> Any:
    """What a property gives. kind: the class that the lookup begins at."""
    recording = proxy._recording_
    guard_class(recording, kind, name, found)
    if found.fget is None or not isinstance(found.fget, FunctionType):
        recording.break_("object.opaque", f".{name} is computed by a descriptor")
        return found.__get__(proxy._plain_, kind)
    return Followed(proxy._recording_, found.fget, (proxy,))()
