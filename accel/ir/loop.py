"""The body of a loop by data: what one iteration computes, as a small tape of its own.

`accel.loop` is one operation of a tape. It takes the values that the first iteration begins with, and gives those that
the last one leaves. Its body is an argument, as a lambda is: it says what an iteration computes, and is data like any
other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from accel.ir.tape import Node, template_key
from accel.ir.template import fill


@dataclass(frozen=True, eq=False)
class LoopBody:
    """One iteration of a loop, and when there is another.

    nodes: the operations, and the parameters, as inputs whose slots are their positions. updates: for each of the first
    parameters, its value for the next iteration; those that have none are the same in every iteration. asked, stay:
    there is another iteration while the value is this. assumed: values that say which way an iteration takes. kinds:
    the ways that were recorded; for each, what the assumed values are on it, or None where it does not come to one.
    limit: the most iterations.
    """

    nodes: Sequence[Node]
    updates: Sequence[Node]
    asked: Node
    stay: bool
    assumed: Sequence[Node]
    kinds: Sequence[tuple[Any, ...]]
    limit: int
    _key: Hashable = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows = [
            (id(node.rule), _form((node.args, node.kwargs)), node.shape, str(node.dtype), node.scalar)
            for node in self.nodes
        ]
        results = tuple(node.index for node in self.roots)
        kinds = tuple(tuple(map(repr, kind)) for kind in self.kinds)
        object.__setattr__(self, "_key", (tuple(rows), results, self.stay, kinds, self.limit))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoopBody) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> Any:
        # row by row: nodes that hold one another may be more than Python's stack is deep
        places = [node.index for node in self.updates], self.asked.index, [node.index for node in self.assumed]
        return _rebuilt, ([_row(node) for node in self.nodes], *places, self.stay, self.kinds, self.limit)

    @property
    def parameters(self) -> list[Node]:
        """The inputs of an iteration, in order."""
        return sorted((node for node in self.nodes if node.is_input), key=lambda node: node.args[0])

    @property
    def operations(self) -> list[Node]:
        """The operations of an iteration, in order."""
        return [node for node in self.nodes if not node.is_input]

    @property
    def roots(self) -> list[Node]:
        """All that an iteration has to compute."""
        return [*self.updates, self.asked, *self.assumed]

    @property
    def size(self) -> int:
        """Operations of an iteration, those of the loops in it among them."""
        inner = (body_of(node) for node in self.operations)
        return sum(1 if body is None else 1 + body.size for body in inner)


@dataclass(frozen=True, slots=True)
class _Ref:
    """A placeholder for a node among another node's arguments."""

    index: int


def _row(node: Node) -> tuple[Any, ...]:
    args, kwargs = fill((node.args, node.kwargs), lambda operand: _Ref(operand.index), Node)
    about = {name: getattr(node, name) for name in ("shape", "dtype", "scalar", "host", "where", "site")}
    return node.rule, args, kwargs, about


def _rebuilt(
    rows: list[Any], updates: list[int], asked: int, assumed: list[int], stay: bool, kinds: Any, limit: int
) -> LoopBody:
    nodes: list[Node] = []
    for index, (rule, args, kwargs, about) in enumerate(rows):
        args, kwargs = fill((args, kwargs), lambda ref: nodes[ref.index], _Ref)
        nodes.append(Node(index, rule, args, kwargs, **about))
    return LoopBody(
        nodes, [nodes[each] for each in updates], nodes[asked], stay, [nodes[each] for each in assumed], kinds, limit
    )


def body_of(node: Node) -> LoopBody | None:
    """The body of a loop; None for any other operation."""
    body = node.kwargs.get("body")
    return body if isinstance(body, LoopBody) else None


def _form(template: object) -> Any:
    return template_key(template, lambda node: node.index)
