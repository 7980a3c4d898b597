"""Attributes that a class computes, and attributes of classes themselves.

A property and `__getattr__` are followed; any other descriptor ends the tape.
"""

from __future__ import annotations

import enum
from types import FunctionType
from typing import Any

from accel.record.objects.follow import Followed, followed_once, target_function
from accel.record.objects.kinds import is_bare_enum
from accel.record.objects.own_attributes import guard_no_own
from accel.record.objects.proxy import find_in_class, guard_class
from accel.record.state import inputs
from accel.record.state.inputs import MISSING
from accel.record.state.recording import Recording


def answered(proxy: Any, name: str, kind: type, answering: Any) -> Any:
    """Follow a class's `__getattr__` for an attribute that is missing."""
    recording = proxy._recording_
    function = target_function(recording, answering)
    if not isinstance(function, FunctionType) or find_in_class(kind, "__getattribute__")[0] not in (object, dict):
        return opaque_attribute(proxy, name, f"the __getattr__ of {kind.__name__}")
    guard_no_own(recording, proxy._slot_, name)
    guard_class(recording, kind, name, find_in_class(kind, name)[1])  # a slot that holds nothing, if anything
    guard_class(recording, kind, "__getattr__", answering)
    return Followed(recording, function, (proxy,))(name)


def opaque_attribute(proxy: Any, name: str, by: str = "a descriptor") -> Any:
    """Read an attribute from a descriptor whose code accel cannot follow: the tape ends here."""
    proxy._recording_.break_("object.opaque", f".{name} is computed by {by}")
    return getattr(proxy._plain_, name)


def property_of(proxy: Any, name: str, kind: type, found: property) -> Any:
    """Follow a property's getter. kind: the class that the lookup begins at."""
    recording = proxy._recording_
    guard_class(recording, kind, name, found)
    if found.fget is None or not isinstance(found.fget, FunctionType):
        recording.break_("object.opaque", f".{name} is computed by a descriptor")
        return found.__get__(proxy._plain_, kind)
    return Followed(proxy._recording_, found.fget, (proxy,))()


def guard_none_before(recording: Recording, order: tuple[type, ...], owner: type, name: str) -> None:
    """Let replays check that none of the classes that a lookup comes to before `owner` has an attribute of its own."""
    for kind in order[: order.index(owner)]:
        key = ("class lacks", id(recording.registry.keep_alive(kind)), name)
        if recording.active and recording.inputs.find(key) is None:
            fetch, check = inputs.of_constant(kind), inputs.satisfies(_has_no_own, name)
            recording.inputs.add(key, f"{kind.__name__}.{name}", fetch, check)


def _has_no_own(kind: type, name: str) -> bool:
    return name not in vars(kind)


_OF_EVERY_CLASS = frozenset(
    f"__{name}__" for name in ("mro", "bases", "base", "name", "qualname", "module", "doc", "annotations")
)
"""Attributes that every class has from Python: plain values and other classes."""


def attribute_of_class(proxy: Any, name: str) -> Any:
    """`Kind.name` for the proxy of a class: its own attribute, or its metaclass's."""
    recording, real = proxy._recording_, proxy._plain_
    if name == "__dict__":
        recording.break_("code.unsupported", f"uses {real.__name__}.__dict__", touched=True)
    if not recording.active:
        return getattr(real, name)
    owner, found = find_in_class(real, name)
    above, special = find_in_class(type(real), name)
    # Python asks the metaclass first for data descriptors, and last for everything else.
    of_metaclass = above is not None and (owner is None or hasattr(type(special), "__set__"))
    if of_metaclass or name == "__new__":
        return _attribute_of_metaclass(recording, real, name, above if of_metaclass else None)
    # `object.__init__` does nothing but refuse arguments
    if owner is object:
        return found if name == "__init__" else getattr(recording.builtins["object"], name)
    if owner is None:
        guard_class(recording, real, name, MISSING)
        return getattr(real, name)
    function = target_function(recording, found)
    if isinstance(function, (FunctionType, staticmethod, classmethod)):
        guard_class(recording, real, name, found)
        bound = (proxy,) if isinstance(function, classmethod) else ()
        inner = function if isinstance(function, FunctionType) else target_function(recording, function.__func__)
        plain = getattr(real, name)
        return Followed(recording, inner, bound, plain) if bound else followed_once(recording, inner, plain)
    return _entered_of_class(recording, real, name)


def _attribute_of_metaclass(recording: Recording, kind: type, name: str, owner: type | None) -> Any:
    """Enter an attribute that `type` gives every class, or an enumeration's members. Other metaclasses end it."""
    if owner is type and name in _OF_EVERY_CLASS:
        return _entered_of_class(recording, kind, name)
    never_changes = name == "__members__" and type(kind) is enum.EnumMeta and is_bare_enum(kind)
    if not never_changes:
        recording.break_("call.opaque", f"{kind.__name__}.{name}, which its metaclass defines")
    return getattr(kind, name)


def _entered_of_class(recording: Recording, kind: type, name: str) -> Any:
    """`kind.name`, a value that a later call finds by the same name."""
    recording.registry.keep_alive(kind)
    key, path = ("class attribute", id(kind), name), f"{kind.__name__}.{name}"
    return recording.enter(getattr(kind, name), key, path, inputs.of_object(kind, name))
