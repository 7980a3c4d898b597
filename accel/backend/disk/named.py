"""Pickles with names in the place of the program's own objects: another process finds its own by them."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from accel.backend.disk import references
from accel.backend.disk.references import Files, Unnamed
from accel.backend.job import Ref
from accel.ir.fingerprint import PLAIN, code_number, is_versioned
from accel.ir.tape import Node
from accel.platform import own_code, pickling
from accel.platform.bodies import as_written
from accel.record.state import inputs
from accel.record.state.inputs import Code

Own = tuple[FunctionType, CodeType]
"""A target's recorded function, and the code that its calls run (for an outlined loop body, of one iteration)."""

Places = dict[int, tuple[str, str]]
"""By id, the module and the name in it at which the program has what its own name does not lead to."""

CLASS_NAMESPACE = type(type.__dict__)


def is_of_function(code: Code) -> bool:
    """Whether an expression holds what a function has, and the function besides."""
    return bool(code.constants) and isinstance(code.constants[-1], FunctionType)


_HAVE_NO_NAME = frozenset({*PLAIN, tuple, list, Ref, np.dtype})
"""Types of most objects of a recording: none of them is one that a process has one of."""


class NamingWriter(pickling.Pickler):
    """Writes names in the place of what is the program's own.

    nodes: the tape's, known by their positions. files: takes those that it names something of. own: what the target
    brings. places: of what has no name of its own.
    """

    def __init__(self, file: io.BytesIO, nodes: list[Node], files: Files, own: Own, places: Places) -> None:
        super().__init__(file)
        self._own = own
        self._places = places
        self._nodes = nodes
        self._files = files

    def persistent_id(self, value: Any) -> Any:
        kind = type(value)
        if kind in _HAVE_NO_NAME:
            return None
        if kind in (FunctionType, CodeType):
            return next((("own", place) for place, each in enumerate(self._own) if each is value), None)
        if kind is Node:
            if value.index >= len(self._nodes) or self._nodes[value.index] is not value:
                raise Unnamed("an operation of another recording")
            return "node", value.index
        if kind is ModuleType:
            if references.module_of(vars(value)) is None:
                raise Unnamed(f"module {value.__name__}")
            self._files.add_module(value.__name__)
            return "module", value.__name__
        if kind is dict:
            module = references.module_of(value)
            if module is not None:
                self._files.add_module(module)
                return "namespace", module
            place = self._places.get(id(value))
            if place is None:
                return _process_wide(value)
            self._files.add_module(place[0])
            return "fields", (*place, references.told_fields(value))
        return _process_wide(value)

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        reduce = _REDUCED.get(kind)
        if reduce is None and isinstance(value, type):
            reduce = NamingWriter._class
        if reduce is not None:
            return reduce(self, value)
        member = references.member_of(value)
        if member is not None:
            return _member_named, (kind, member)
        if not is_versioned(kind.__module__):
            if isinstance(value, tuple) and hasattr(kind, "_fields") and not getattr(value, "__dict__", None):
                return _named_tuple, (kind, tuple(value))
            return _library_named, self._library_path(value)
        single = references.single_of(value)
        return NotImplemented if single is None else (_single_named, single)

    def _path_of(self, value: Any) -> tuple[str, str]:
        try:
            return references.path_of(value)
        except Unnamed:
            place = self._places.get(id(value))
            if place is None or references.found(*place) is not value:
                raise
            return place

    def _library_path(self, value: Any) -> tuple[str, str]:
        """Return the path to an object of a library, such as a function of NumPy's that Cython has made."""
        kind = type(value)
        try:
            module, name = references.path_of(value)
        except Unnamed:
            module = ""
        if not is_versioned(module):
            raise Unnamed(f"an object of {kind.__module__}.{kind.__qualname__}")
        return module, name

    def _class(self, value: type) -> Any:
        if is_versioned(value.__module__) and value not in references.TYPES:
            return NotImplemented
        path = references.path_of(value)
        self._files.add_class(value)
        return _class_named, path

    def _function(self, value: FunctionType) -> Any:
        if is_versioned(value.__module__):
            return NotImplemented
        code = as_written(value.__code__)
        module, name = self._path_of(value)
        self._files.add_module(module)
        self._files.add_code(code)
        return _function_named, (module, name, code_number(code))

    def _entry(self, value: Any) -> Any:
        function = own_code.function_of(value)
        module, name = self._path_of(function)
        # one that was recorded before accel has put its wrapper around the function is as good
        if not own_code.is_alike(references.found_entry(module, name), value):
            raise Unnamed(f"a {type(value).__name__} {name}")
        return _entry_named, (module, name, function)

    def _nested(self, value: CodeType) -> Any:
        outer = value.co_qualname.partition(".<locals>")[0]
        place = self._own[0].__globals__["__name__"], outer, code_number(value)
        if references.code_in(*place) is not value:
            raise Unnamed(f"the code of {value.co_qualname}")
        return _code_named, place

    def _array(self, value: np.ndarray[Any, Any]) -> Any:
        if value.dtype.hasobject:
            raise Unnamed("an array of objects")
        return NotImplemented

    def _code(self, code: Code) -> Any:
        """An expression; where it holds parts of a class or function, by what makes it anew of these."""
        constants = code.constants
        if len(constants) == 3 and type(constants[1]) is CLASS_NAMESPACE:
            return inputs.of_class, (constants[0], constants[2])
        if code.text == inputs.HAS_CODE and is_of_function(code):
            return inputs.has_code, (constants[-1],)
        return _code, tuple(code)


_REDUCED: dict[type, Callable[[NamingWriter, Any], Any]] = {
    Code: NamingWriter._code,
    FunctionType: NamingWriter._function,
    CodeType: NamingWriter._nested,
    np.ndarray: NamingWriter._array,
    **dict.fromkeys(own_code.ENTRIES, NamingWriter._entry),
}
"""Writers of objects without a name of their own, by type. Classes are by `NamingWriter._class`."""


class NamingReader(pickle.Unpickler):
    """Finds what is named."""

    def __init__(self, file: io.BytesIO, own: Own) -> None:
        super().__init__(file)
        self.own = own
        self.nodes: list[Node] = []

    def persistent_load(self, name: Any) -> Any:
        kind, which = name
        return _FOUND[kind](self, which)


def _process_wide(value: Any) -> tuple[str, str] | None:
    name = references.process_wide(value)
    return None if name is None else ("process", name)


def _module(which: str) -> ModuleType:
    return sys.modules[which]


_FOUND: dict[str, Callable[[NamingReader, Any], Any]] = {
    "own": lambda reader, place: reader.own[place],
    "node": lambda reader, index: reader.nodes[index],
    "module": lambda reader, name: _module(name),
    "namespace": lambda reader, name: vars(_module(name)),
    "process": lambda reader, name: references.PROCESS_WIDE[name],
    "fields": lambda reader, place: _fields_named(*place),
}


def _code(*parts: Any) -> Code:
    return Code(*parts)


def _class_named(module: str, name: str) -> type:
    found = references.found(module, name)
    if not isinstance(found, type):
        raise Unnamed(f"{module}.{name} is no class")
    return found


def _single_named(module: str, name: str) -> Any:
    found = references.found(module, name)
    if references.single_of(found) != (module, name):
        raise Unnamed(f"{module}.{name} is something else")
    return found


def _member_named(kind: Any, name: str) -> Any:
    return kind.__members__[name]


def _named_tuple(kind: type, parts: tuple[Any, ...]) -> Any:
    """A named tuple, without running a `__new__` of the program's."""
    return tuple.__new__(kind, parts)


def _library_named(module: str, name: str) -> Any:
    __import__(module)
    found = references.found(module, name)
    if found is None:
        raise Unnamed(f"{module}.{name} is not there")
    return found


def _fields_named(module: str, name: str, told: str) -> Any:
    found = references.found(module, name)
    if type(found) is not dict or references.told_fields(found) != told:
        raise Unnamed(f"{module}.{name} is something else")
    return found


def _entry_named(module: str, name: str, function: FunctionType) -> Any:
    found = references.found_entry(module, name)
    if type(found) not in own_code.ENTRIES or own_code.function_of(found) is not function:
        raise Unnamed(f"{module}.{name} is something else")
    return found


def _code_named(module: str, outer: str, number: int) -> CodeType:
    found = references.code_in(module, outer, number)
    if found is None:
        raise Unnamed(f"{module}.{outer} has other code")
    return found


def _function_named(module: str, name: str, number: int) -> FunctionType:
    found = references.found(module, name)
    if type(found) is not FunctionType or code_number(as_written(found.__code__)) != number:
        raise Unnamed(f"{module}.{name} is another function")
    return found
