"""Fingerprints: what a program computes, as a short text that is the same in every process.

Two programs of one fingerprint compute the same from arguments of the same shapes and dtypes, so that a compiled one
can be kept on disk and found again without tracing and lowering it first. Whatever cannot be described exactly (a
function that is not accel's own, an object of a class of the user's) makes the program *indescribable*: it has no
fingerprint and is compiled anew.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, CodeType, EllipsisType, FunctionType
from typing import Any

import numpy as np

from accel.tape import Node

PLAIN = (bool, int, float, complex, str, bytes, type(None), EllipsisType)
"""Their `repr` tells all of them apart, -0.0 and the last bit included."""

KNOWN_SOURCES = ("accel", "numpy", "scipy", "math", "operator", "builtins")
"""Packages whose code changes with a version number, or is hashed (see accel.cache), and nothing else."""


class Indescribable(Exception):
    """A value whose description would not hold in another process."""


def fingerprint(
    body: Iterable[Node], results: Iterable[Node], leaf: Callable[[Node], Any], tables: Iterable[Any] = ()
) -> str | None:
    """The fingerprint of a program, or None.

    body: its operations, in order. results: the nodes that it returns, in order. leaf(node): how a node that is not
    in the body comes into the program: for an argument its place, for a value that is written into it the value.
    tables: arguments that loops and nests look up, which say how the operations are arranged in these.
    """
    describe = Describer(leaf)
    try:
        parts = [describe.operation(node) for node in body], [describe(each) for each in (*results, *tables)]
    except Indescribable:
        return None
    return digest(parts)


def digest(*parts: Any) -> str:
    """A short text for nested tuples and lists of plain values."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=20).hexdigest()


class Describer:
    """Turns values into nested tuples of plain ones."""

    def __init__(self, leaf: Callable[[Node], Any]) -> None:
        self._leaf = leaf
        self._places: dict[int, int] = {}
        self._functions: dict[FunctionType, Any] = {}
        self._dtypes: dict[Any, str] = {}

    def operation(self, node: Node) -> Any:
        """One node of the body; what comes later may refer to it."""
        operands = self(node.args), self(node.kwargs)
        self._places[node.index] = len(self._places)
        scalar = None if node.scalar is None else self(node.scalar)
        about = node.shape, self._dtype(node.dtype), scalar, node.exact
        return node.rule.name, self(node.rule.lower), operands, about

    def _dtype(self, dtype: Any) -> str:
        if dtype not in self._dtypes:
            self._dtypes[dtype] = str(dtype)
        return self._dtypes[dtype]

    def __call__(self, value: Any) -> Any:
        kind = type(value)
        if kind in PLAIN:
            return kind.__name__, repr(value)
        if isinstance(value, Node):
            place = self._places.get(value.index)
            if place is not None:
                return "result", place
            return "leaf", value.shape, self._dtype(value.dtype), self(self._leaf(value))
        if isinstance(value, (tuple, list)):
            return kind.__name__, [self(part) for part in value]
        if kind is dict:
            return "dict", [(self(key), self(part)) for key, part in value.items()]
        if kind is slice:
            return "slice", self((value.start, value.stop, value.step))
        if isinstance(value, (np.ndarray, np.generic)):
            return self._array(np.asarray(value), kind)
        return self._other(value)

    def _array(self, value: np.ndarray[Any, Any], kind: type) -> Any:
        if value.dtype.hasobject:
            raise Indescribable(value.dtype)
        bits = hashlib.blake2b(value.tobytes(), digest_size=20).hexdigest()
        return kind.__name__, str(value.dtype), value.shape, bits

    def _other(self, value: Any) -> Any:
        if isinstance(value, np.dtype):
            return "dtype", self._dtype(value)
        if isinstance(value, (type, np.ufunc, BuiltinFunctionType)):
            return _public_name(value)
        if isinstance(value, functools.partial):
            return "partial", self((value.func, value.args, value.keywords))
        if isinstance(value, FunctionType):
            if value not in self._functions:
                self._functions[value] = self._function(value)
            return self._functions[value]
        if is_dataclass(value):
            return _public_name(type(value)), [self(getattr(value, each.name)) for each in fields(value)]
        raise Indescribable(type(value))

    def _function(self, function: FunctionType) -> Any:
        """One of accel's functions: where it is, and what it took from where it was made."""
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        about = self((cells, function.__defaults__, function.__kwdefaults__))
        return _public_name(function), _code(function.__code__), about


def _code(code: CodeType) -> Any:
    """What tells two functions of one name apart; two lambdas in a line, for instance."""
    constants = [_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return code.co_firstlineno, code.co_code, code.co_names, constants


def _public_name(value: Any) -> tuple[str, str]:
    """Module and name of something that is found there in every process."""
    module = getattr(value, "__module__", None) or "numpy"
    if module.partition(".")[0] not in KNOWN_SOURCES:
        raise Indescribable(f"{module}.{value}")
    return module, getattr(value, "__qualname__", None) or value.__name__
