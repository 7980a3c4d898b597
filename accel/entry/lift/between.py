"""Between two iterations of an outlined loop: what Python runs there of the program's, and whether it could look at
arrays.

That is the loop's own line. `for i, t in enumerate(times)` reads numbers that exist already; `for x in generator()`
runs whatever the generator does.
"""

from __future__ import annotations

import ast
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import length_hint
from typing import Any

import numpy as np

from accel.backend import resident
from accel.platform import bars


@dataclass(frozen=True, slots=True)
class Iterated:
    """Objects that a loop reads itself as it iterates.

    arrays: those that it iterates over. bars: progress bars, whose code runs before each iteration.
    """

    arrays: tuple[weakref.ref[np.ndarray[Any, Any]], ...] = ()
    bars: tuple[weakref.ref[Any], ...] = ()
    _ends: list[weakref.ref[Any]] = field(default_factory=list)

    def given(self, iterable: Iterable[Any]) -> Iterable[Any]:
        """Return an iterable that the loop takes in place of its own, with the same elements.

        The code of a bar may raise, for example if its stream is closed, and the program may look at arrays after that.
        Python releases a loop's iterator before it looks for a handler, and before it leaves the function. So the
        iterator has an empty last part, and the end of this part brings arrays up to date. All of it is C code: frames,
        lines and tracer events stay the same. Ctrl-C at that moment is lost to the error that is being raised. A loop
        that reaches the last part calls it, so that an error from a signal handler is not lost.
        """
        if not self.bars:
            return iterable
        last = partial(_at_the_end)
        self._ends.append(weakref.ref(last, _at_the_end))
        return chain(iterable, iter(last, None))

    def are_plain(self) -> bool:
        """Whether the bars still run no code of the program's."""
        return all(iterated(bar) is not None for each in self.bars if (bar := each()) is not None)


def _at_the_end(_: object = None) -> None:
    if resident.current.is_held:
        resident.current.bring_up_to_date()


NUMBERS: frozenset[type] = frozenset(
    {int, float, bool}
    | {kind for kind in np.sctypeDict.values() if issubclass(kind, (np.bool_, np.integer, np.floating))}
)
"""Types whose values compare without an error, and are gone without a trace when a variable takes another one."""

MOST_NESTED = 8


def iterated(iterable: Any, depth: int = MOST_NESTED) -> Iterated | None:
    """Return the arrays and bars behind an iterable whose next element runs no code of the program's; None for others.

    After the first element, neither the iterable nor the assignment to a plain target raises, unless there is a bar.
    Otherwise nobody would bring arrays up to date.
    """
    if depth == 0:
        return None
    if type(iterable) is np.ndarray:
        return Iterated((weakref.ref(iterable),)) if iterable.dtype.type in NUMBERS else None
    bar = None if type(iterable) in _KNOWN else bars.bar_of(iterable)
    inside = _KNOWN.get(type(iterable), _of_others) if bar is None else bars.gone_through
    parts = inside(iterable if bar is None else bar)
    if parts is None:
        return None
    found = [each for part in parts if (each := iterated(part, depth - 1)) is not None]
    if len(found) < len(parts):
        return None
    arrays = chain.from_iterable(each.arrays for each in found)
    own = () if bar is None else (weakref.ref(bar),)
    return Iterated(tuple(arrays), tuple(chain(own, *(each.bars for each in found))))


def _of_others(iterable: Any) -> None:
    """Nobody knows."""


def _of_elements(elements: Any) -> list[Any] | None:
    return [] if set(map(type, elements)) <= NUMBERS else None


def _inside(iterator: Any) -> list[Any] | None:
    """Return the iterators inside an `enumerate` or `zip`, as its `__reduce__` gives them."""
    _, given, *strict = iterator.__reduce__()
    if type(iterator) is zip and strict:  # it raises if one of them ends early
        return None
    return list(given if type(iterator) is zip else given[:1])


_SEQUENCE_ITERATOR: type = type(iter(np.empty(0)))

_KNOWN: dict[type, Callable[[Any], list[Any] | None]] = {
    range: lambda _: [],
    type(iter(range(0))): lambda _: [],
    type(iter(range(1 << 70))): lambda _: [],
    list: _of_elements,
    tuple: _of_elements,
    type(iter([])): lambda iterator: _of_elements(_rest(iterator)),
    type(iter(())): lambda iterator: _of_elements(_rest(iterator)),
    _SEQUENCE_ITERATOR: lambda iterator: [_rest(iterator)],
    enumerate: _inside,
    zip: _inside,
}
"""Functions by type of an iterable: each returns the iterables inside one, or None if they are unknown."""


def _rest(iterator: Any) -> Any:
    """Return the sequence behind an iterator, from its start, as the iterator's `__reduce__` gives it."""
    return iterator.__reduce__()[1][0]


def iterations_of(iterable: Any, depth: int = MOST_NESTED) -> int | None:
    """Return the number of iterations of a loop over an iterable, if known without running code of the program's."""
    if depth == 0:
        return None
    kind = type(iterable)
    if kind in _SIZED or (kind is _SEQUENCE_ITERATOR and type(_rest(iterable)) is np.ndarray):
        return length_hint(iterable)
    bar = None if kind in _KNOWN else bars.bar_of(iterable)
    if bar is None and kind not in (enumerate, zip):
        return None
    parts = _inside(iterable) if bar is None else bars.gone_through(bar)
    counts = [iterations_of(part, depth - 1) for part in parts or ()]
    known = [count for count in counts if count is not None]
    return min(known) if known and len(known) == len(counts) else None


_EXAMPLES: tuple[Any, ...] = (
    [],
    (),
    {},
    {}.items(),
    {}.values(),
    set(),
    "",
    "\xff",
    b"",
    range(0),
    range(1 << 70),
    deque(),
)
_SIZED = {frozenset, np.ndarray, *map(type, _EXAMPLES), *(type(iter(each)) for each in _EXAMPLES)}
"""Types of iterables that know their length, or what is left of it."""


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
