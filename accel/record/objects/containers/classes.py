"""Dicts of classes of the program's, such as those that read their items as attributes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from accel.record.objects.containers.mappings import DictProxy
from accel.record.objects.follow import Followed, target_function
from accel.record.objects.objects import ObjectProxy, class_of, delete_attribute, get_attribute, set_attribute
from accel.record.objects.own_attributes import guard_no_own
from accel.record.objects.proxy import OWN, find_in_class, guard_class
from accel.record.objects.scan import CLASS_READ
from accel.record.state import inputs
from accel.record.state.inputs import MISSING

_BY_ITEMS = frozenset(
    "__getitem__ __setitem__ __delitem__ __contains__ __len__ __iter__ __eq__ __ne__ __bool__".split()
)


class DictObjectProxy(ObjectProxy):
    """An object of a class that inherits a dict's items. Its attributes are an object's, or its items."""

    __slots__ = ("_items_",)

    def __init__(self, recording: Any, value: Any, slot: int | None = None) -> None:
        super().__init__(recording, value, slot)
        object.__setattr__(self, "_items_", DictProxy(recording, value, slot))
        if slot is not None and is_own_namespace(value):
            recording.inputs.narrow(slot, inputs.satisfies(is_own_namespace))

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN:
            return object.__getattribute__(self, name)
        recording, real = self._recording_, self._plain_
        if name == CLASS_READ:
            return class_of(self)
        if not recording.active:
            return getattr(real, name)
        owner, _ = find_in_class(type(real), name)
        if owner is dict:
            return getattr(_items_of(self), name)
        find = _finder(self, name) if owner is None else None
        return get_attribute(self, name) if find is None else find(name)

    def __setattr__(self, name: str, value: object) -> None:
        recording, real = self._recording_, self._plain_
        owner, found = find_in_class(type(real), "__setattr__")
        function = target_function(recording, found)
        if recording.active and (found is dict.__setitem__ or (owner is object and is_own_namespace(real))):
            guard_class(recording, type(real), "__setattr__", found)
            _items_of(self)[name] = value
        elif recording.active and isinstance(function, FunctionType):
            guard_class(recording, type(real), "__setattr__", found)
            Followed(recording, function, (self,))(name, value)
        else:
            set_attribute(self, name, value)

    def __delattr__(self, name: str) -> None:
        if is_own_namespace(self._plain_):
            self._recording_.break_("call.opaque", "deletion of an attribute that is an item")
        delete_attribute(self, name)


_OWN = OWN | {"_items_"}


def _items_of(proxy: Any) -> DictProxy:
    found: DictProxy = object.__getattribute__(proxy, "_items_")
    return found


def is_own_namespace(value: Any) -> bool:
    """Whether the items are the attributes: `self.__dict__ = self`."""
    return getattr(value, "__dict__", None) is value


def _finder(proxy: Any, name: str) -> Callable[[str], Any] | None:
    """The reader of an attribute that the class has not, from the items; None where they do not have it."""
    recording, real, items = proxy._recording_, proxy._plain_, _items_of(proxy)
    if is_own_namespace(real):
        return items.__getitem__ if name in items else None
    answering = find_in_class(type(real), "__getattr__")[1]
    if name in getattr(real, "__dict__", ()) or answering not in (dict.__getitem__, dict.get):
        return None
    guard_no_own(recording, proxy._slot_, name)
    guard_class(recording, type(real), name, MISSING)
    guard_class(recording, type(real), "__getattr__", answering)
    return items.__getitem__ if answering is dict.__getitem__ else items.get


def _by_items(name: str) -> Callable[..., Any]:
    """A special method that the class has from dict, or one of its own, which is followed."""

    def method(self: Any, *args: Any) -> Any:
        owner, _ = find_in_class(type(self._plain_), name)
        items = _items_of(self)
        return getattr(items if owner in (dict, object, None) else self, name)(*args)

    return functools.wraps(getattr(DictProxy, name))(method)


for _name in _BY_ITEMS:
    setattr(DictObjectProxy, _name, _by_items(_name))
