"""Fingerprints: what a program computes, as a short text that is the same in every process.

Two programs of one fingerprint compute the same from arguments of the same shapes and dtypes. So a compiled one can be
kept on disk, and found again without tracing and lowering. Whatever cannot be described exactly (a function that is not
accel's own, an object of a class of the user's) makes the program *indescribable*: it has no fingerprint and is
compiled anew, and the reason is told.

What stands for itself under a name (a ufunc, a class, a function written in C) is described by that name where two
things hold. Its module is one whose code cannot change without another version number or another hash (see
`accel.backend.disk.cache.environment_hash`): accel, NumPy, SciPy, JAX or Python's own library, whatever its modules are
called inside: `operator.mul` says that it comes from `_operator`. And it is found there: nothing else of that name is
meant.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import BuiltinFunctionType, CodeType, EllipsisType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from accel.ir.loop import LoopBody
from accel.ir.tape import Node

PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), EllipsisType})
"""Their `repr` tells all of them apart, -0.0 and the last bit included."""

PACKAGES = ("accel", "numpy", "scipy", "jax")
"""Packages whose code changes with a version number, or is hashed, and nothing else. So does Python's own library."""

_UFUNC_HOMES = ("numpy", "scipy.special", "numpy._core.umath")
"""Modules in which ufuncs are found, which do not name their own. The last has NumPy's private ones."""


class Indescribable(Exception):
    """A part of a program has no description that would hold in another process."""


def fingerprint(
    body: Iterable[Node], results: Iterable[Iterable[Node]], argument: Callable[[Node], Any], tables: Iterable[Any] = ()
) -> str:
    """The fingerprint of a program. Raises Indescribable where it has none.

    body: its operations, in order. results: the nodes that it returns, in order, those of one use in one group: a
    number that the program returns is packed like an outcome, but nobody checks it. argument(node): how a node that is
    not in the body comes into the program: its position, or the value that is written into it. tables: arguments that
    loops look up, which say how the operations are arranged in these.
    """
    describe = Describer(argument)
    operations = [describe.operation(node) for node in body]
    return digest(operations, [[describe(node) for node in group] for group in results], [*map(describe, tables)])


def digest(*parts: object) -> str:
    """A short text for nested tuples and lists of plain values."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=20).hexdigest()


class Describer:
    """Turns values into nested tuples of plain ones."""

    def __init__(self, argument: Callable[[Node], Any]) -> None:
        self._argument = argument
        self._positions: dict[int, int] = {}
        self._functions: dict[FunctionType, Any] = {}
        self._dtypes: dict[Any, str] = {}
        self._fields: dict[type, tuple[tuple[str, str], list[str]]] = {}  # names of dataclasses and of their fields

    def operation(self, node: Node) -> Any:
        """One node of the body; what comes later may refer to it."""
        operands = self(node.args), self(node.kwargs)
        # Its position among the operations, not its index on the tape, which depends on what else was recorded.
        self._positions[node.index] = len(self._positions)
        scalar = None if node.scalar is None else self(node.scalar)
        about = node.shape, self._dtype(node.dtype), scalar
        # The lowering too: rows of one name may be made with different functions and parameters.
        return node.rule.name, self(node.rule.lower), operands, about

    def _dtype(self, dtype: object) -> str:
        if dtype not in self._dtypes:
            self._dtypes[dtype] = str(dtype)
        return self._dtypes[dtype]

    def __call__(self, value: Any) -> Any:
        kind = type(value)
        if kind in PLAIN:  # by exact type: a subclass may compute or print as it likes
            return kind.__name__, repr(value)
        if kind in self._fields:
            return self._of_fields(value)
        if isinstance(value, Node):
            position = self._positions.get(value.index)
            if position is not None:
                return "result", position
            return "leaf", value.shape, self._dtype(value.dtype), self(self._argument(value))
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
            raise Indescribable("an array of Python objects")
        bits = hashlib.blake2b(value.tobytes(), digest_size=20).hexdigest()
        return kind.__name__, str(value.dtype), value.shape, bits

    def _other(self, value: Any) -> Any:
        if isinstance(value, LoopBody):
            return self._body(value)
        if isinstance(value, np.dtype):
            return "dtype", self._dtype(value)
        if isinstance(value, functools.partial):
            return "partial", self((value.func, value.args, value.keywords))
        if isinstance(value, FunctionType):
            if value not in self._functions:
                self._functions[value] = self._function(value)
            return self._functions[value]
        # A method is its name and what it is bound to; a module's function has the module there.
        owner = value.__self__ if isinstance(value, (BuiltinFunctionType, MethodType)) else None
        if owner is not None and not isinstance(owner, ModuleType):
            return "method", value.__name__, self(owner)
        if is_dataclass(value) and not isinstance(value, type):
            return self._of_fields(value)
        return _public_name(value)

    def _of_fields(self, value: Any) -> Any:
        kind = type(value)
        if kind not in self._fields:
            self._fields[kind] = _public_name(kind), [each.name for each in fields(value)]
        name, names = self._fields[kind]
        return name, [self(getattr(value, each)) for each in names]

    def _body(self, body: LoopBody) -> Any:
        """A loop's body; its operations have positions of their own."""
        inner = Describer(lambda node: ("parameter", node.args[0]))
        operations = [inner.operation(node) for node in body.operations]
        parameters = [(node.shape, self._dtype(node.dtype), self(node.scalar)) for node in body.parameters]
        results = [[inner(node) for node in group] for group in (body.updates, [body.asked], body.assumed)]
        return "loop", parameters, operations, results, self(tuple(body.kinds)), (body.stay, body.limit)

    def _function(self, function: FunctionType) -> Any:
        """A function of a library's: where it is, and what it took from where it was made."""
        # a module's own has the defaults that are written there; some are objects that say that nothing was given
        defaults = None if _is_own(function) else (function.__defaults__, function.__kwdefaults__)
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        about = self((cells, defaults))
        if not is_versioned(function.__module__):
            raise Indescribable(_told(function))
        return (function.__module__, function.__qualname__), _code(function.__code__), about


def _code(code: CodeType) -> Any:
    """A key that tells functions of one name apart, such as two lambdas in a line."""
    constants = [_code(each) if isinstance(each, CodeType) else _constant(each) for each in code.co_consts]
    return code.co_firstlineno, code.co_code, code.co_names, constants


def _constant(value: object) -> Any:
    if type(value) is frozenset:  # the order of a set of strings is another one in each process
        return sorted(map(repr, value))
    if type(value) is tuple:
        return [_constant(each) for each in value]
    # what accel has put there (a loop's switch) is no part of what the program has written
    return repr(value) if type(value) in PLAIN else type(value).__qualname__


def code_number(code: CodeType) -> int:
    """A number for a function's code that is the same in every process, and another for code from another place."""
    return int(digest(code.co_filename, code.co_qualname, _code(code))[:15], 16)


def home_of(ufunc: np.ufunc) -> str | None:
    """The module of NumPy's or SciPy's that has this very ufunc; None for another library's, whatever its name."""
    return next((home for home in _UFUNC_HOMES if _found(home, ufunc.__name__) is ufunc), None)


def _public_name(value: object) -> tuple[str, str]:
    """Module and name under which every process finds this very thing. Raises Indescribable where there are none."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    module = getattr(value, "__module__", None)
    for home in (module, home_of(value) if isinstance(value, np.ufunc) else None):
        if isinstance(name, str) and isinstance(home, str) and is_versioned(home) and _found(home, name) is value:
            return home, name
    raise Indescribable(_told(value))


def _found(module: str, name: str) -> Any:
    """The object under a dotted name in a module; None if there is none."""
    # In the module's own dictionary: `getattr` might run its `__getattr__`.
    first, *rest = name.split(".")
    found = vars(sys.modules[module]).get(first) if module in sys.modules else None
    for part in rest:
        found = getattr(found, part, None)
    return found


def _is_own(function: FunctionType) -> bool:
    """Whether a module whose code is versioned has this very function under its name."""
    return is_versioned(function.__module__) and _found(function.__module__, function.__qualname__) is function


def is_versioned(module: str) -> bool:
    """Whether a module's code is known by version numbers and accel's own hash."""
    top = module.partition(".")[0]
    return top in PACKAGES or (top in sys.stdlib_module_names and _is_pythons(top))


@functools.cache
def _is_pythons(module: str) -> bool:
    """Whether a module with the name of one of Python's own is that, and not one of the user's (a `calendar.py`)."""
    origin = getattr(getattr(sys.modules.get(module), "__spec__", None), "origin", None)
    if origin in ("built-in", "frozen"):
        return True
    here = Path(origin or "").parent
    folders = (Path(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib"))
    return any(here.is_relative_to(each) for each in folders) and "site-packages" not in here.parts


def _told(value: Any) -> str:
    """A value that has no description, for a message: a function or class by its name, another by its class's."""
    named = value if isinstance(getattr(value, "__qualname__", None), str) else type(value)
    text = f"{named.__module__}.{named.__qualname__}"
    return text if named is value else f"an object of {text}"
