"""Named tuples of classes with methods or properties of their own: read as tuples, their methods followed."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from accel.record.objects.kinds import is_namedtuple
from accel.record.objects.objects import CONSTRUCTORS, ObjectProxy, get_attribute
from accel.record.objects.proxy import OWN, find_in_class, guard_class
from accel.record.state.recording import Recording
from accel.record.state.wrapper import unwrap
from accel.record.values.arrays import as_static
from accel.record.values.wrapping import remember


class NamedTupleProxy(ObjectProxy):
    """A named tuple, from outside or new. parts: its elements, recorded."""

    __slots__ = ("_parts_",)

    def __init__(self, recording: Recording, value: Any, slot: int | None, parts: Iterable[Any]) -> None:
        super().__init__(recording, value, slot)
        object.__setattr__(self, "_parts_", tuple(parts))

    def as_operand(self) -> Any:
        return self._parts_

    def __getattribute__(self, name: str) -> Any:
        if name in OWN or name == "_parts_":
            return object.__getattribute__(self, name)
        kind = type(self._plain_)
        _, found = find_in_class(kind, name)
        if type(found) is _FIELD:
            guard_class(self._recording_, kind, name, found)
            return self._parts_[kind._fields.index(name)]
        if name in _METHODS:
            return lambda *args, **kwargs: _METHODS[name](self, *args, **kwargs)
        return get_attribute(self, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts_)

    def __len__(self) -> int:
        return len(self._parts_)

    def __getitem__(self, key: object) -> Any:
        key = self._recording_.write_down(lambda: as_static(key), unwrap(key))
        return self._parts_[key]

    def __hash__(self) -> int:
        return hash(self._parts_)


_FIELD: Any = type(vars(collections.namedtuple("_Example", "field"))["field"])


def _replaced(self: Any, /, **changes: Any) -> Any:
    kind = type(self._plain_)
    return make(self._recording_, kind, (), {**dict(zip(kind._fields, self._parts_, strict=True)), **changes})


def _as_dict(self: Any, /) -> dict[str, Any]:
    return dict(zip(type(self._plain_)._fields, self._parts_, strict=True))


_METHODS: dict[str, Callable[..., Any]] = {"_replace": _replaced, "_asdict": _as_dict}
"""Methods that named tuples have from collections, by name."""


def _as_tuple(name: str) -> Callable[..., Any]:
    """A special method as the class has it, or else as tuples have it."""

    def method(self: Any, *args: Any) -> Any:
        if isinstance(find_in_class(type(self._plain_), name)[1], FunctionType):
            return get_attribute(self, name)(*args)
        others = [arg._parts_ if issubclass(type(arg), NamedTupleProxy) else arg for arg in args]
        if name == "__radd__":
            return tuple(others[0]) + self._parts_ if isinstance(others[0], tuple) else NotImplemented
        return getattr(self._parts_, name, lambda *_: NotImplemented)(*others)

    method.__name__ = name
    return method


for _name in "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __contains__ __add__ __radd__ __mul__ __rmul__".split():
    setattr(NamedTupleProxy, _name, _as_tuple(_name))


def make(recording: Recording, kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`kind(*args)` in recorded code, for a named tuple with methods of its own."""
    guard_class(recording, kind, "__new__", find_in_class(kind, "__new__")[1])
    parts = tuple(kind(*args, **kwargs))
    plain = tuple.__new__(kind, map(recording.kept.unwrap_to_store, parts))
    return remember(recording, NamedTupleProxy(recording, plain, None, parts))


CONSTRUCTORS.append((is_namedtuple, make))
