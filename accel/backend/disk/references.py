"""References: names by which a recording on disk refers to the program's own functions, classes and modules.

A recording in memory holds these objects, and compares objects that it meets with them by identity. On disk it has the
name under which each process finds them. A name is enough if the object is found under it now, and its file has not
changed since: another process would make the same object. Everything else with an identity (an object of a class of the
program's, a list) is *without a name*. Its holder is not kept.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import logging
import math
import os
import re
import sys
import types
from pathlib import Path
from types import BuiltinFunctionType, CodeType, EllipsisType, FunctionType, MethodType, ModuleType, NotImplementedType
from typing import Any

import numpy as np

from accel.ir.fingerprint import code_number, is_versioned
from accel.platform import own_code

CLOCKS_S = 2.0
"""Seconds by which the clocks of file systems may be behind, or round."""


def _process_start() -> float:
    """Return when this process began, in seconds since the epoch, according to Linux."""
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    boot = re.search(r"^btime (\d+)$", Path("/proc/stat").read_text(), re.MULTILINE)
    return int(boot[1]) + int(ticks) / os.sysconf("SC_CLK_TCK") if boot else math.inf


def _started() -> float:
    """The program's modules were read after this: before accel was imported, or, in a fork, by another process."""
    try:
        return min(own_code.IMPORTED_S, _process_start())
    except (OSError, ValueError, IndexError):
        return own_code.IMPORTED_S


STARTED_S = _started()
"""A file that is newer may hold another text than the one that is running."""


class Unnamed(Exception):
    """There is no name by which another process would find something."""


TYPES = {value: name for name, value in vars(types).items() if isinstance(value, type)}
"""Types of Python's own that are not found under their own names, by those that they have in `types`."""


MAX_WRAPPERS = 3
"""Maximum number of decorators to unwrap when looking for a function."""


def path_of(value: Any) -> tuple[str, str]:
    """The module and the name in it by which every process finds a function or class, also a decorated one.

    Raises Unnamed.
    """
    if isinstance(value, type) and value in TYPES:
        return types.__name__, TYPES[value]
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str):
        for wrappers in range(MAX_WRAPPERS + 1):  # the program's: what `functools.wraps` has taken the name for
            path = name + ".__wrapped__" * wrappers
            if found(module, path) is value:
                return module, path
    # not the value's own text: it may be long, or code of the program's
    raise Unnamed(f"{type(value).__name__} {name if isinstance(name, str) else 'without a name'}")


def single_of(value: Any) -> tuple[str, str] | None:
    """Module and name of an object that a library has one of, to tell by: `dataclasses.MISSING`, for instance."""
    kind: Any = type(value)
    if not _may_be_single(kind):
        return None
    names = vars(sys.modules[kind.__module__])
    return next(((kind.__module__, name) for name, each in names.items() if each is value), None)


@functools.cache
def _may_be_single(kind: Any) -> bool:
    is_copied = kind.__reduce_ex__ is not object.__reduce_ex__ or kind.__reduce__ is not object.__reduce__
    if is_copied or not kind.__flags__ & _IS_PYTHON_S:
        return False
    return is_versioned(kind.__module__) and kind.__module__ in sys.modules


_IS_PYTHON_S = 1 << 9
"""The flag of a class that Python code has made (Py_TPFLAGS_HEAPTYPE)."""


def found(module: str, name: str) -> Any:
    """Return the object that a module has under a dotted name, without a wrapper of accel's around it.

    Of a property or static method, that is the function.
    """
    entry = found_entry(module, name)
    return own_code.function_of(entry) if isinstance(entry, own_code.ENTRIES) else own_code.under_own_wrapper(entry)


def found_entry(module: str, name: str) -> Any:
    """Return the object that a module has under a dotted name, unchanged."""
    holder: Any = sys.modules.get(module)
    for part in name.split("."):
        # in its own dictionary: an attribute access might run code of the program's
        holder = getattr(holder, "__dict__", {}).get(part)
    return holder


def code_in(module: str, outer: str, number: int) -> CodeType | None:
    """The code of this number among that of a module's function, and of what is nested in it."""
    function = found(module, outer)
    waiting = [function.__code__] if type(function) is FunctionType else []
    while waiting:
        code = waiting.pop()
        if code_number(code) == number:
            return code
        waiting += [each for each in code.co_consts if type(each) is CodeType]
    return None


def module_of(namespace: dict[str, Any]) -> str | None:
    """The name of the module whose global names these are."""
    name = namespace.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    return name if isinstance(module, ModuleType) and vars(module) is namespace else None


class Files:
    """The files in which a recording's code stands, with what they hold. Those of libraries are known by versions."""

    def __init__(self) -> None:
        self.hashes: dict[str, str] = {}
        self._seen: set[str] = set()

    def add_module(self, name: str) -> None:
        """Note the file of a module. Raises Unnamed where its text is not known."""
        if name in self._seen or is_versioned(name):
            return
        self._seen.add(name)
        file = getattr(sys.modules.get(name), "__file__", None)
        if not isinstance(file, str):
            raise Unnamed(f"module {name} has no file")
        self.add(file)

    def add_class(self, kind: type) -> None:
        """Note where a class and those that it inherits from stand."""
        for each in kind.__mro__:
            self.add_module(each.__module__)

    def add_code(self, code: CodeType) -> None:
        """Note the file of a function's code. What was generated (`<string>`) is known by its number alone."""
        if not code.co_filename.startswith("<"):
            self.add(code.co_filename)

    def add(self, file: str) -> None:
        """Note a file. Raises Unnamed where it may have changed since the program has read it."""
        if file not in self.hashes:
            self.hashes[file] = _hash_of(file)

    def are_unchanged(self) -> bool:
        """Whether all of them hold what they did."""
        try:
            return all(_hash_of(file) == known for file, known in self.hashes.items())
        except Unnamed:
            return False


@functools.cache
def _hash_of(file: str) -> str:
    try:
        if os.stat(file).st_mtime > STARTED_S - CLOCKS_S:
            raise Unnamed(f"{file} is newer than this process")
        with open(file, "rb") as opened:
            return hashlib.blake2b(opened.read(), digest_size=20).hexdigest()
    except OSError as error:
        raise Unnamed(f"{file}: {error.strerror}") from None


_SINGLE = (type(None), bool, EllipsisType, NotImplementedType)
_TEXT = (int, float, complex, str, bytes, range, np.dtype, np.generic)
_NAMED = (type, FunctionType, BuiltinFunctionType, ModuleType, logging.Logger)
_METHODS = (
    MethodType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)


PROCESS_WIDE: dict[str, Any] = {"sys.modules": sys.modules, "os.environ": os.environ}
"""Objects that exist once in each process, by name."""


def process_wide(value: Any) -> str | None:
    """The name of what each process has one of."""
    for name, each in PROCESS_WIDE.items():  # asked for each object of a recording
        if each is value:
            return name
    return None


def member_of(value: Any) -> str | None:
    """The name of a member of an enumeration; None of anything else, also of a combination of flags."""
    if not isinstance(value, enum.Enum) or type(value).__members__.get(value.name) is not value:
        return None
    return value.name


def has_identity(value: Any) -> bool:
    """Whether a process finds the very same object, and not only an equal one, under a name."""
    if isinstance(value, (*_SINGLE, *_NAMED, *_METHODS, *own_code.ENTRIES, np.ufunc)):
        return True
    if type(value).__module__.startswith("accel."):
        return True
    if any(name(value) is not None for name in (process_wide, single_of, member_of)):
        return True
    try:  # a function of a library's that is no Python function
        return is_versioned(path_of(value)[0])
    except Unnamed:
        return False


def told_fields(fields: dict[str, Any]) -> str | None:
    """A data class's fields (`__dataclass_fields__`) and defaults; None where other processes may have others."""
    told = []
    for name, each in fields.items():
        if type(each) is not dataclasses.Field or not is_plain(each.default_factory):
            return None
        is_given = each.default is not dataclasses.MISSING
        if is_given and not isinstance(each.default, (*_SINGLE, *_TEXT)):
            return None
        told.append((name, each.init, each.kw_only, is_given, repr(each.default) if is_given else ""))
    return repr(told)


def is_plain(value: Any) -> bool:
    """Whether a value never changes, so that an equal one is as good."""
    if type(value) in (tuple, frozenset) or (isinstance(value, tuple) and has_identity(value)):
        return all(map(is_plain, value))
    return isinstance(value, _TEXT) or has_identity(value)
