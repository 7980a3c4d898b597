"""Attributes of modules and classes: finding one, replacing the function inside it, and putting it back.

Namespaces are read directly. `getattr` would bind functions, and import modules that are loaded lazily.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import wrapt

_ABSENT = object()


class Attribute(NamedTuple):
    """An attribute of a module or class. raw: its value in the owner's namespace, or (inherited) in a base class's."""

    owner: Any
    name: str
    raw: Any
    inherited: bool


class Patch(NamedTuple):
    """One replaced attribute, with the data needed to restore it exactly."""

    attribute: Attribute
    replacement: Any

    def undo(self) -> None:
        """Restore the original, unless other code has replaced the attribute meanwhile."""
        owner, name, raw, inherited = self.attribute
        # such as a test's `monkeypatch`
        if namespace(owner).get(name, _ABSENT) is not self.replacement:
            return
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, raw)


def namespace(owner: object) -> Any:
    """Return the namespace of a module (a dict) or class (a view), without loading lazily imported modules."""
    if issubclass(type(owner), type):  # `isinstance` asks for `__class__`, which loads
        return type.__dict__["__dict__"].__get__(owner)
    return ModuleType.__getattribute__(owner, "__dict__")


def find(module: ModuleType, qualname: str) -> Attribute | None:
    """Return the attribute `qualname` of `module`; None if this revision of the program lacks it."""
    *path, name = qualname.split(".")
    owner: Any = module
    for part in path:
        owner = namespace(owner).get(part)
        if not isinstance(owner, type):
            return None
    # an inherited function is replaced in this class alone, by an attribute of its own: others inherit it too
    for depth, holder in enumerate(owner.__mro__ if isinstance(owner, type) else (owner,)):
        raw = namespace(holder).get(name, _ABSENT)
        if raw is not _ABSENT:
            return Attribute(owner, name, raw, inherited=depth > 0)
    return None


def _rebuild_property(original: property, wrap: Callable[[Any], Any]) -> property:
    # a row names the getter: setter and deleter stay the program's
    getter = original.fget and wrap(original.fget)
    return property(getter, original.fset, original.fdel, original.__doc__)


_DESCRIPTORS: tuple[tuple[type, Callable[[Any], Any], Callable[[Any, Callable[[Any], Any]], Any]], ...] = (
    # the type in the namespace, how to get the Python function inside it, and how to rebuild it around a wrapper
    (staticmethod, lambda raw: raw.__func__, lambda raw, wrap: staticmethod(wrap(raw.__func__))),
    (classmethod, lambda raw: raw.__func__, lambda raw, wrap: classmethod(wrap(raw.__func__))),
    (property, lambda raw: raw.fget, _rebuild_property),
    (FunctionType, lambda raw: raw, lambda raw, wrap: wrap(raw)),
)


class Replacement(NamedTuple):
    """A new attribute value, with the functions inside the old and new values, by which aliases are replaced."""

    value: Any
    old: Any
    new: Any


def replace(raw: Any, wrap: Callable[[Any], Any]) -> Replacement | None:
    """Return `raw` with the function inside it wrapped; None if there is no Python function inside.

    Checks `type`, not `isinstance`: a wrapper pretends to be an instance of the class that it wraps.
    """
    for kind, inner, rebuild in _DESCRIPTORS:
        if issubclass(type(raw), kind) and type(inner(raw)) is FunctionType:
            value = rebuild(raw, wrap)
            return Replacement(value, inner(raw), inner(value))
    return None


def functions_in(raw: Any) -> Iterator[FunctionType]:
    """Yield the Python functions inside an attribute's raw value, under descriptors, wrappers and decorators."""
    found = next((inner(raw) for kind, inner, _ in _DESCRIPTORS if issubclass(type(raw), kind)), raw)
    if issubclass(type(found), wrapt.CallableObjectProxy):
        found = found.__wrapped__
    seen: set[int] = set()
    while type(found) is FunctionType and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = vars(found).get("__wrapped__")


def wrappable(module: ModuleType, qualname: str) -> bool:
    """Return whether a row may name `qualname` of `module`: a Python function, accelerated already or not."""
    attribute = find(module, qualname)
    if attribute is None:
        return False
    raw = attribute.raw
    return issubclass(type(raw), wrapt.CallableObjectProxy) or replace(raw, lambda each: each) is not None
