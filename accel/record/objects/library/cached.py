"""Results that the program keeps: `functools.lru_cache`, `functools.cache` and `functools.cached_property`.

A cached result is one object for all calls, which the program may compare, and change. So it is not computed anew: it
enters, as an attribute does. A call whose result is not kept yet is no compiled path, since the function would have to
run in the middle of it.
"""

from __future__ import annotations

import functools
import gc
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from accel.record.objects.computed import opaque_attribute
from accel.record.objects.follow import Followed
from accel.record.objects.objects import DESCRIPTORS, ObjectProxy, set_attribute
from accel.record.objects.proxy import find_in_class, guard_class
from accel.record.state import inputs
from accel.record.state.changes import Asked
from accel.record.state.inputs import MISSING
from accel.record.state.opaque import call_opaque
from accel.record.state.recording import Recording
from accel.record.state.wrapper import StandIn, unwrap
from accel.record.values.arrays import as_static
from accel.rules.rule import Unsupported

Wrapper = type(functools.lru_cache(lambda: None))
"""The class of functions that the decorator makes."""


class Cache:
    """The entries of one cache. Raises LookupError where they are not found.

    Python does not show the entries of a cache, but its garbage collector does. A cache with a limit refers first to
    key, result and type of each entry. Then each refers to the dict of entries, the function, and the mark that stands
    before keyword arguments in keys. This class checks as much of that as it can.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        parameters = function.cache_parameters()
        self._typed, self._limited = bool(parameters["typed"]), parameters["maxsize"] is not None
        held, wrapped = gc.get_referents(function), function.__wrapped__
        places = [at for at, each in enumerate(held) if each is wrapped]
        if not places or places[-1] + 1 >= len(held):
            raise LookupError
        self._entries, self._mark = held[places[-1] - 1], held[places[-1] + 1]
        size = function.cache_info().currsize
        if type(self._entries) is not dict or type(self._mark) is not object or len(self._entries) != size:
            raise LookupError

    def key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The cache's key for these arguments."""
        if not (kwargs or self._typed) and len(args) == 1 and type(args[0]) in (int, str):
            return args[0]
        key = args
        if kwargs:
            key += (self._mark, *(part for item in kwargs.items() for part in item))
        if self._typed:
            key += (*map(type, args), *map(type, kwargs.values()))
        return key

    def result(self, key: Any) -> Any:
        """The result that is kept under a key, or MISSING."""
        entry = self._entries.get(key, MISSING)
        if entry is MISSING or not self._limited:
            return entry
        held = gc.get_referents(self.function)
        for at, kind in enumerate(held):
            if kind is type(entry) and at > 1 and type(held[at - 2]) is type(key) and held[at - 2] == key:
                return held[at - 1]
        return MISSING

    def result_for(self, owner: object, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result that a method has for an object."""
        return self.result(self.key((owner, *rest), kwargs))


class Cached(StandIn):
    """A function with a cache. owner: the proxy of the object whose method it is."""

    __slots__ = ("_function", "_owner")

    def __init__(self, recording: Recording, function: Any, owner: Any = None) -> None:
        self._recording_, self._function, self._owner = recording, function, owner
        self._plain_ = function if owner is None else MethodType(function, unwrap(owner))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording = self._recording_
        found = [MISSING]
        recording.write_down(lambda: found.append(self._kept(args, kwargs)), None)
        if found[-1] is not MISSING and recording.active:
            return found[-1]
        bound = () if self._owner is None else (self._owner,)
        return call_opaque(recording, self._function, (*bound, *args), kwargs)

    def __getattr__(self, name: str) -> Any:
        # how often it was asked, and what it forgets, is known only once the call is over
        if name not in _NAMES:
            self._recording_.break_("call.opaque", f".{name} of a cached function", touched=True)
        return getattr(self._plain_, name)

    def _kept(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result that is kept, entered. Raises Unsupported."""
        recording, function = self._recording_, self._function
        name = getattr(function, "__qualname__", "a cached function")
        args, kwargs = as_static((args, kwargs))
        if not all(map(_is_key, (*args, *kwargs.values()))):
            raise Unsupported("call.opaque", f"{name}, a cached function, of other than plain values")
        try:
            cache = Cache(function)
        except LookupError:
            raise Unsupported("call.opaque", f"{name}, whose cache cannot be looked into") from None
        owner = self._owner
        if owner is None:
            key = cache.key(args, kwargs)
            value, fetch = cache.result(key), inputs.Code("{0}({1})", (cache.result, key))
        else:
            if owner._slot_ is None or not _is_known_by_identity(type(unwrap(owner))):
                raise Unsupported("call.opaque", f"{name}, a cached method of a new object, or of one with its own ==")
            key = owner._slot_, cache.key(args, kwargs)
            value = cache.result_for(unwrap(owner), args, kwargs)
            fetch = inputs.Code("{0}({parent}, {1}, {2})", (cache.result_for, args, kwargs), owner._slot_)
        place = ("cached", id(recording.registry.keep_alive(function)), key)
        text = f"{name}({', '.join([*map(repr, args), *(f'{each}={kwargs[each]!r}' for each in kwargs)])})"
        if value is MISSING:
            recording.inputs.add(place, text, fetch, inputs.is_same(MISSING))
            raise Unsupported("call.opaque", f"{name}, which has to run: its cache does not have the result yet")
        asked = Asked(function, None if owner is None else owner._slot_, args, kwargs)
        recording.asked.append(asked)
        recording.display.waiting.append(asked.step(unwrap(owner)))
        return recording.enter(value, place, text, fetch)


_NAMES = frozenset({"__name__", "__qualname__", "__annotations__"})
_KEYS = frozenset({int, float, complex, bool, str, bytes, type(None)})


def _is_key(value: Any) -> bool:
    """Whether a cache tells the value from others, and no code of the program's runs for it; NaN is never found."""
    if type(value) is tuple:
        return all(map(_is_key, value))
    return (type(value) in _KEYS or issubclass(type(value), np.number)) and bool(value == value)


def _is_known_by_identity(kind: type) -> bool:
    return all(find_in_class(kind, name)[0] is object for name in ("__eq__", "__hash__"))


def _method(proxy: ObjectProxy, name: str, kind: type, found: Any) -> Any:
    guard_class(proxy._recording_, kind, name, found)
    return Cached(proxy._recording_, found, proxy)


def _property(proxy: ObjectProxy, name: str, kind: type, found: Any) -> Any:
    """cached_property: its function is followed, and what it gives is the object's own attribute from now on."""
    recording, real = proxy._recording_, proxy._plain_
    is_plain = isinstance(found.func, FunctionType) and found.attrname == name and hasattr(real, "__dict__")
    if not is_plain or kind is not type(real):
        return opaque_attribute(proxy, name)
    guard_class(recording, kind, name, found)
    value = Followed(recording, found.func, (proxy,))()
    set_attribute(proxy, name, value, generic=True)
    return value


DESCRIPTORS[Wrapper] = _method
DESCRIPTORS[functools.cached_property] = _property
