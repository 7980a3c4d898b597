"""Leaves: the parts of a plan's templates that a replay makes or finds."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from accel.ir.template import leaves
from accel.ir.views import Chain


class Leaf:
    """A part of a result or of a written value that a replay makes or finds."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class FromSlot(Leaf):
    """The very object that an input slot holds; `chain` makes a view of it, its positions ints and `Number`s."""

    slot: int
    chain: Chain = ()


@dataclass(frozen=True, slots=True)
class NewArray(Leaf):
    """New array number `index`; `chain` makes a view of it, as in `FromSlot`."""

    index: int
    chain: Chain = ()


@dataclass(frozen=True, slots=True)
class Number(Leaf):
    """A scalar of the given type. index: among the outputs' numbers."""

    index: int
    kind: type


@dataclass(frozen=True, slots=True)
class FixedValue(Leaf):
    """A value that the path fixes."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class SharedLeaf(Leaf):
    """A new object, list, dict or view that is in several places: made once. template: what makes it, itself perhaps
    among its parts."""

    template: Any


@dataclass(frozen=True, slots=True, eq=False)
class NewObject(Leaf):
    """A new object of one of the program's classes. parts: what makes each attribute, in the order of `vars`."""

    kind: type
    parts: dict[str, Any]

    def with_parts(self, parts: Any) -> NewObject:
        return NewObject(self.kind, parts)

    def empty(self, build: Callable[[Any], Any]) -> Any:
        """The object before it has any parts."""
        return self.kind.__new__(self.kind)  # type: ignore[call-overload]

    def fill(self, made: Any, parts: dict[str, Any]) -> None:
        """Past the class's own __setattr__ and __init__: the recording has followed what they do."""
        for name, value in parts.items():
            object.__setattr__(made, name, value)


@dataclass(frozen=True, slots=True, eq=False)
class NewContainer(Leaf):
    """A new deque, or dict of a kind of `collections`. about: what makes its maxlen or default factory."""

    kind: type
    about: Any
    parts: list[Any] | dict[Any, Any]

    def with_parts(self, parts: Any) -> NewContainer:
        return NewContainer(self.kind, self.about, parts)

    def empty(self, build: Callable[[Any], Any]) -> Any:
        if self.kind is deque:
            return deque(maxlen=build(self.about))
        return defaultdict(build(self.about)) if self.kind is defaultdict else self.kind()

    def fill(self, made: Any, parts: Any) -> None:
        if self.kind is deque:
            made.extend(parts)
        elif self.kind is OrderedDict:
            made.update(parts)
        else:
            dict.update(made, parts)  # that of a Counter adds


@dataclass(frozen=True, slots=True, eq=False)
class NewSet(Leaf):
    """A new set, of members that the path fixes."""

    members: set[Any]


def all_leaves(template: Any) -> Iterator[Leaf]:
    """The leaves of a template that have no parts, in order; those of what is in several places once."""
    stack, seen = [template], set()
    while stack:
        found = leaves(stack.pop(), Leaf)
        for position, leaf in enumerate(found):
            inner = _inside(leaf)
            if inner is None:
                yield leaf
            elif id(leaf) not in seen:
                seen.add(id(leaf))
                stack += [found[position + 1 :], inner]
                break


def _inside(leaf: Leaf) -> Any:
    """The template inside a leaf that has parts; None for other leaves."""
    if isinstance(leaf, SharedLeaf):
        return leaf.template
    return leaf.parts if isinstance(leaf, COMPOSITE) else None


COMPOSITE = (NewObject, NewContainer)
"""Leaves with parts: an empty object is made first, and is filled then."""
