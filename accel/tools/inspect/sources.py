"""Read the functions of a program's files without importing any of them."""

from __future__ import annotations

import ast
import inspect
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import CodeType
from typing import Any, NamedTuple

from accel.entry.hook.imports import find_module
from accel.platform.codes import with_nested
from accel.platform.config import SettingError

PACKAGES = "a package or module that python -m would find, a folder, or a .py file"


@dataclass(frozen=True, slots=True)
class Source:
    """One file of the program. module: its dotted name. problem: why it cannot be parsed, or ""."""

    file: str
    module: str
    tree: ast.Module = field(default_factory=lambda: ast.Module([], []), compare=False, repr=False)
    code: CodeType | None = field(default=None, compare=False, repr=False)
    problem: str = ""


class Function(NamedTuple):
    """One function of a file. code: its code object. local: True if it is defined inside another function."""

    source: Source
    code: CodeType

    @property
    def qualname(self) -> str:
        return self.code.co_qualname

    @property
    def local(self) -> bool:
        return "<locals>" in self.qualname


def is_function(code: CodeType) -> bool:
    """Whether this is a function's code; lambdas and comprehensions are part of the enclosing function."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")


def sources_of(target: str, option: str = "PACKAGE") -> list[Source]:
    """Return every file of a package, folder or module. Raises SettingError if there is none."""
    spec = find_module(target)
    if spec is not None:
        sources = list(_located(spec, target, option))
    elif os.path.isfile(target):
        if not target.endswith(".py"):
            raise SettingError(option, target, PACKAGES, "is not a Python file")
        sources = [parse(target)]
    elif os.path.isdir(target):
        sources = list(_folder(target, _module_name(os.path.realpath(target))))
    else:
        raise SettingError(option, target, PACKAGES, "does not exist")
    if not sources:
        raise SettingError(option, target, PACKAGES, "contains no .py file")
    return sources


def _located(spec: Any, target: str, option: str) -> Iterator[Source]:
    if spec.submodule_search_locations is None:
        if not str(spec.origin).endswith(".py"):
            raise SettingError(option, target, PACKAGES, "is not written in Python")
        yield parse(spec.origin, target)
    for folder in spec.submodule_search_locations or ():
        yield from _folder(folder, target)


def _folder(folder: str, module: str) -> Iterator[Source]:
    """Yield the files of a folder, including those in subfolders whose names can be imported."""
    for entry in sorted(os.scandir(folder), key=lambda entry: (entry.is_dir(), entry.name)):
        name, suffix = os.path.splitext(entry.name)
        if entry.is_file() and suffix == ".py":
            inner = module if name == "__init__" else ".".join(filter(None, (module, name)))
            yield parse(entry.path, inner or name)
        elif entry.is_dir() and entry.name.isidentifier() and entry.name != "__pycache__":
            yield from _folder(entry.path, ".".join(filter(None, (module, entry.name))))


def _module_name(path: str) -> str:
    """Return the dotted name under which a file or folder is imported; "" for a folder that is not a package.

    It is found by sys.path, or else by the packages around it.
    """
    stem = path.removesuffix(".py").removesuffix(os.sep + "__init__")
    for root in sys.path:
        folder = os.path.join(os.path.realpath(root or os.curdir), "")
        name = ".".join(stem.removeprefix(folder).split(os.sep))
        if stem.startswith(folder) and (spec := find_module(name)) is not None:
            places = [spec.origin, *(spec.submodule_search_locations or ())]
            if path in [os.path.realpath(place) for place in places if place]:
                return name
    if os.path.isdir(path) and not os.path.isfile(os.path.join(path, "__init__.py")):
        return ""
    folder, name = os.path.split(stem)
    parts = [name]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    return ".".join(parts)


def parse(file: str, module: str | None = None) -> Source:
    """Parse and compile a file. Errors are stored in `problem` instead of raised."""
    file = os.path.realpath(file)
    module = _module_name(file) if module is None else module
    try:
        with open(file, "rb") as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # syntax warnings, such as of escapes, appear when the program runs
            text = stream.read()
            tree = ast.parse(text, file)
            return Source(file, module, tree, compile(tree, file, "exec", dont_inherit=True))
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        problem = f"{type(error).__name__}: {getattr(error, 'msg', None) or error}"
        return Source(file, module, problem=f"line {line}: {problem}" if line else problem)
    except OSError as error:
        return Source(file, module, problem=f"cannot be read ({error.strerror})")


def functions_of(source: Source) -> list[Function]:
    """Return every function defined in the file, in order."""
    codes = () if source.code is None else with_nested(source.code)
    return [Function(source, code) for code in codes if is_function(code)]


def nearest(name: str, names: Iterable[str]) -> str:
    """Return names similar to a misspelt one, for a message."""
    names = list(names)
    last = name.rpartition(".")[2]
    near = [each for each in names if each.rpartition(".")[2] == last] or get_close_matches(name, names, 3, 0.5)
    return ", ".join(near or names[:5]) or "none: it contains no function"
