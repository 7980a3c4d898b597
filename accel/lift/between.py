"""Between two rounds of a lifted loop: what Python runs there of the program's, and whether it could look at arrays.

That is the loop's own line. `for i, t in enumerate(times)` reads numbers that exist already; `for x in generator()`
runs whatever the generator does.
"""

from __future__ import annotations

import ast
import weakref
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

Iterated = tuple["weakref.ref[np.ndarray[Any, Any]]", ...]
"""The arrays that a loop reads itself as it goes on."""

NUMBERS: frozenset[type] = frozenset(
    {int, float, bool}
    | {kind for kind in np.sctypeDict.values() if issubclass(kind, (np.bool_, np.integer, np.floating))}
)
"""Types whose values compare without an error, and are gone without a trace when a variable takes another one."""

MOST_NESTED = 8


def iterated(iterable: Any, depth: int = MOST_NESTED) -> Iterated | None:
    """The arrays behind an iterable that runs no code of the program's to give its next element; None for others.

    Nor does it, or giving a plain target that element, raise after the first one: nobody would bring arrays up to date.
    """
    if depth == 0:
        return None
    parts = _KNOWN.get(type(iterable), lambda _: None)(iterable)
    if parts is None:
        return None
    found = [iterated(part, depth - 1) if not isinstance(part, weakref.ref) else (part,) for part in parts]
    return None if None in found else tuple(chain.from_iterable(found))  # type: ignore[arg-type]


def _of_elements(elements: Any) -> list[Any] | None:
    return [] if set(map(type, elements)) <= NUMBERS else None


def _of_array(array: np.ndarray[Any, Any]) -> list[Any] | None:
    return [weakref.ref(array)] if array.dtype.type in NUMBERS else None


def _inside(iterator: Any) -> list[Any] | None:
    """What `enumerate` or `zip` goes through: they tell it to whoever copies them."""
    _, given, *strict = iterator.__reduce__()
    if type(iterator) is zip and strict:  # it raises if one of them ends early
        return None
    return list(given if type(iterator) is zip else given[:1])


_KNOWN: dict[type, Callable[[Any], list[Any] | None]] = {
    range: lambda _: [],
    type(iter(range(0))): lambda _: [],
    type(iter(range(1 << 70))): lambda _: [],
    list: _of_elements,
    tuple: _of_elements,
    type(iter([])): lambda iterator: _of_elements(_rest(iterator)),
    type(iter(())): lambda iterator: _of_elements(_rest(iterator)),
    type(iter(np.empty(0))): lambda iterator: [_rest(iterator)],
    np.ndarray: _of_array,
    enumerate: _inside,
    zip: _inside,
}
"""By type of an iterable: what it goes through, as further iterables and references to arrays; None if nobody knows."""


def _rest(iterator: Any) -> Any:
    """What the iterator of a sequence goes through, from its start: it tells that to whoever copies it."""
    return iterator.__reduce__()[1][0]


def is_plain_target(node: ast.expr) -> bool:
    """Whether giving a loop's target its next value runs no code of the program's."""
    match node:
        case ast.Name():
            return True
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(map(is_plain_target, parts))
        case ast.Starred(value=inner):
            return is_plain_target(inner)
    return False


def names_of_test(test: ast.expr) -> frozenset[str] | None:
    """The variables by which a `while` decides, if it does no more than compare them; None for other conditions."""
    if not all(isinstance(node, _COMPARING) for node in ast.walk(test)):
        return None
    return frozenset(node.id for node in ast.walk(test) if isinstance(node, ast.Name))


_COMPARING = (
    ast.Name,
    ast.Constant,
    ast.Compare,
    ast.BoolOp,
    ast.UnaryOp,
    ast.expr_context,
    ast.cmpop,
    ast.boolop,
    ast.unaryop,
)
