"""The user's project: functions of which modules are followed, and which are a library's.

A flat folder of scripts is a project as much as a package is: a helper in the module beside the script is the user's
own code. What is installed, what belongs to Python, and accel itself are not; but packages of which a catalogue names
functions are, as a model that is installed.
"""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import FunctionType
from typing import Any

from accel.platform import files
from accel.platform.clocks import time
from accel.platform.notebook_cells import is_cell

_INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages, wherever they are."""

_WITH_RULES = frozenset({"numpy", "scipy"})
"""Packages whose functions are recorded as operations."""

IMPORTED_S = time.time()
"""When accel was imported."""

PACKAGE = Path(__file__).resolve().parents[1]
"""accel's own folder."""

_GENERATED = "<string>"
"""The file name of code that was made by `exec`."""

_ACCEL = os.path.join(PACKAGE, "")


_named: frozenset[str] = frozenset()


def name_packages(modules: Iterable[str]) -> None:
    """Take the packages of these modules for the user's own, wherever they are, and no other installed ones."""
    global _named
    _named = frozenset(map(_root, modules)) - sys.stdlib_module_names - _WITH_RULES


def _root(module: str) -> str:
    return module.partition(".")[0]


def is_of_project(function: FunctionType) -> bool:
    """Whether a function is the user's own code, as its package's name or its file tells. What has no file is not.

    What was generated for a module, as a dataclass's `__init__`, is the module's.
    """
    filename = function.__code__.co_filename
    if filename.startswith(_ACCEL):  # one that accel has put in the place of the user's (see accel.catalogue.Hold)
        function = getattr(function, "__wrapped__", function)
        filename = getattr(getattr(function, "__code__", None), "co_filename", filename)
    if _root(str(function.__globals__.get("__name__"))) in _named:
        return True
    if filename == _GENERATED:
        filename = str(function.__globals__.get("__file__", ""))
    return is_project_file(filename)


def under_own_wrapper(value: Any) -> Any:
    """The program's function where accel has put a wrapper of its own in its place; any other value as it is.

    A wrapper whose calls are not to show text is another function: it is asked for that.
    """
    wrapt = sys.modules.get("wrapt")  # until something has imported it, nothing is wrapped by it
    while wrapt is not None and issubclass(type(value), wrapt.CallableObjectProxy):
        target = getattr(value, "_self_target", None)
        if target is None or not target.effects:
            break
        value = value.__wrapped__
    return value


_HELD_AS = {property: "fget", staticmethod: "__func__", classmethod: "__func__", functools.cached_property: "func"}
"""Kinds of class entries -> the attribute with their function."""

ENTRIES = tuple(_HELD_AS)
"""Kinds of class entries that hold a function."""


def function_of(entry: Any) -> Any:
    """The function of such an entry, without the wrapper that accel may have put around it."""
    name = next(name for kind, name in _HELD_AS.items() if isinstance(entry, kind))
    return under_own_wrapper(getattr(entry, name))


def is_function_or_entry(value: Any) -> bool:
    """Whether a value is a function, wrapped or not, or an entry for one. Its own code is not asked."""
    return type(value) in (FunctionType, *ENTRIES) or under_own_wrapper(value) is not value


def is_alike(value: Any, other: Any) -> bool:
    """Whether two functions, or entries for them, are one, whatever wrappers accel has put around them."""
    if type(value) is not type(other) or type(value) not in ENTRIES:  # a class of the program's may hold more
        return under_own_wrapper(value) is under_own_wrapper(other)
    if function_of(value) is not function_of(other):
        return False
    return type(value) is not property or (value.fset is other.fset and value.fdel is other.fdel)


@functools.cache
def is_project_file(filename: str) -> bool:
    """Whether a source file is the user's own."""
    path = files.resolved(filename)
    if is_cell(filename):
        return True
    if not os.path.isfile(path) or not _INSTALLED.isdisjoint(path.split(os.sep)):
        return False
    return not any(path.startswith(folder) for folder in (*_libraries(), _ACCEL))


def is_project_module(module: Any) -> bool:
    """Whether a module is the user's own, so that what it holds is no state of a library. None is not."""
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and is_project_file(file)


@functools.cache
def _libraries() -> tuple[str, ...]:
    """The folders of Python's own library, and of what is installed."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [sysconfig.get_path(name) for name in names] + [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(os.path.join(files.resolved(folder), "") for folder in folders if folder)
