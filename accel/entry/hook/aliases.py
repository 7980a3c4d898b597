"""Aliases: every other name or default value that holds a replaced function, rebound to the replacement too."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

from accel.entry.hook.attributes import functions_in, namespace
from accel.platform.own_code import is_project_file

Pairs = Mapping[int, tuple[Any, Any]]
"""Pairs of a replaced object and its replacement, by the id of the replaced object."""


def swap_aliases(swaps: Iterable[tuple[Any, Any]], of: ModuleType | None = None) -> None:
    """Bind all aliases of each pair's first object to the pair's second object.

    These are names in every imported module, and default values of the functions and methods of the user's project.
    Found by identity: nothing records which modules have done `from module import function`. of: a module that has the
    first objects and has only just been imported. Then no module can have done so that had been imported before.
    """
    by_id = {id(old): (old, new) for old, new in swaps}
    if not by_id:
        return
    for module in _modules(of):
        names = namespace(module)
        for name, value in tuple(names.items()):
            if id(value) in by_id:
                names[name] = by_id[id(value)][1]
        if _is_of_project(names):
            for function in _functions_of(names, names.get("__name__"), set()):
                _swap_defaults(function, by_id)


def _modules(of: ModuleType | None) -> list[ModuleType]:
    # programs may put any object there
    modules = [each for each in tuple(sys.modules.values()) if issubclass(type(each), ModuleType)]
    first = 0 if of is None else next((place for place, each in enumerate(modules) if each is of), 0)
    return [*filter(is_running, modules[:first]), *modules[first:]]


def is_running(module: ModuleType) -> bool:
    """Whether a module is being imported. Does not load lazily imported ones."""
    return bool(getattr(namespace(module).get("__spec__"), "_initializing", False))


def _is_of_project(names: Mapping[str, Any]) -> bool:
    filename = names.get("__file__")
    return names.get("__name__") == "__main__" or (isinstance(filename, str) and is_project_file(filename))


def _functions_of(names: Mapping[str, Any], module: object, seen: set[int]) -> Iterator[FunctionType]:
    """Yield the functions in a namespace and in the classes that its module defines, without their wrappers."""
    for value in tuple(names.values()):
        if not issubclass(type(value), type):
            yield from functions_in(value)
        elif id(value) not in seen and namespace(value).get("__module__") == module:
            seen.add(id(value))
            yield from _functions_of(namespace(value), module, seen)


def _swap_defaults(function: FunctionType, by_id: Pairs) -> None:
    defaults, named = function.__defaults__ or (), function.__kwdefaults__ or {}
    if any(id(value) in by_id for value in defaults):
        function.__defaults__ = tuple(by_id[id(value)][1] if id(value) in by_id else value for value in defaults)
    for name, value in tuple(named.items()):
        if id(value) in by_id:
            named[name] = by_id[id(value)][1]
