"""Kinds of classes: which ones the recorder may look into, as no code of theirs runs without being followed."""

from __future__ import annotations

import abc
import enum
import functools
from collections.abc import Iterator
from types import FunctionType, SimpleNamespace
from typing import Any

from accel.record.objects.proxy import find_in_class
from accel.record.values.subclasses import number_of_class


def followable_class(kind: type) -> bool:
    """A class written in Python, whose attributes are found in the ordinary way."""
    # A C type may keep state where no attribute shows it; a class with __getattribute__ runs code at every read.
    return kind is SimpleNamespace or (
        all(each.__flags__ & _HEAP_TYPE for each in kind.__mro__[:-1])
        and find_in_class(kind, "__getattribute__")[0] is object
    )


_HEAP_TYPE = 1 << 9


@functools.cache
def is_dict_class(kind: type) -> bool:
    """A class of the program's that inherits a dict's items, and no way of its own to reach them."""
    if not issubclass(kind, dict) or kind is dict or type(kind) is not type:
        return False
    own = kind.__mro__[: kind.__mro__.index(dict)]
    defined = {name for each in own for name in vars(each)}
    return all(each.__flags__ & _HEAP_TYPE for each in own) and defined.isdisjoint(_OF_DICTS)


_OF_DICTS = (frozenset(vars(dict)) | {"__missing__", "__bool__", "__del__"}) - {
    *("__init__", "__new__", "__repr__", "__doc__", "copy")
}


def makes_plainly(kind: type) -> bool:
    """A class whose objects are made by `object.__new__` and `__init__`, and end without any code of theirs."""
    return (
        followable_class(kind)
        and type(kind) in (type, abc.ABCMeta)
        and find_in_class(kind, "__new__")[0] is object
        and find_in_class(kind, "__del__")[0] is None
    )


@functools.cache
def is_bare_namedtuple(kind: type) -> bool:
    """A namedtuple as collections makes it, which takes any values, and has nothing of its own beside its fields."""
    return (
        issubclass(kind, tuple)
        and str(kind.__new__.__module__).startswith("namedtuple_")
        and not any(map(_is_own, _members(kind, tuple)))
    )


@functools.cache
def is_namedtuple(kind: type) -> bool:
    """A namedtuple as collections makes it but for methods, properties and operators of its own."""
    return (
        issubclass(kind, tuple)
        and type(kind) is type
        and not kind.__dictoffset__
        and str(kind.__new__.__module__).startswith("namedtuple_")
        and all(find_in_class(kind, name)[0] in (tuple, object) for name in _LOOKED_THROUGH)
    )


_LOOKED_THROUGH = ("__getitem__", "__iter__", "__len__", "__getattribute__", "__init__", "__hash__")


def is_bare_number(value: object, kind: type) -> bool:
    """A number of a subclass that has nothing beside the number: no code and no attributes of its own."""
    base = number_of_class(kind)
    own = () if base is None else kind.__mro__[: kind.__mro__.index(base)]
    return (
        base is not None
        and not getattr(value, "__dict__", None)
        and all(vars(owner).keys() <= _OF_ANY_CLASS for owner in own)
    )


_OF_ANY_CLASS = frozenset(
    "__module__ __doc__ __dict__ __weakref__ __qualname__ __static_attributes__ __firstlineno__".split()
)


@functools.cache
def is_bare_enum(kind: type) -> bool:
    """An enumeration that only names values which cannot change."""
    values = [member.value for member in kind.__members__.values()]  # type: ignore[attr-defined]
    return all(map(_is_constant, values)) and not any(map(_is_own, _members(kind, enum.Enum)))


def _is_constant(value: object) -> bool:
    return type(value) in CONSTANT or (type(value) is tuple and all(map(_is_constant, value)))


CONSTANT = frozenset({str, bytes, bool, int, float, complex, type(None), enum.auto})
"""Types of values that enumerations may have."""


def _members(kind: type, base: type) -> Iterator[tuple[str, Any]]:
    """Members of the classes between `kind` and `base`, by name."""
    for owner in kind.__mro__:
        if owner is not base and issubclass(owner, base):
            yield from vars(owner).items()


def _is_own(member: tuple[str, Any]) -> bool:
    """Whether a class's member is code that the program's author wrote, which would run without being followed."""
    name, value = member
    function = getattr(value, "__func__", value)
    function = getattr(function, "fget", function)
    module = str(getattr(function, "__module__", ""))
    written = isinstance(function, FunctionType) and module not in ("collections", "enum", "typing")
    return written and not module.startswith("namedtuple_") and name not in _AT_CLASS_CREATION


_AT_CLASS_CREATION = frozenset({"_generate_next_value_", "__new_member__", "__new__", "__init__"})
