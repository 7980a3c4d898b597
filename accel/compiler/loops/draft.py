"""Drafts: a tape that is being rewritten. Nodes go by numbers: their index on the tape, and beyond it for new ones."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import Any, NamedTuple

from accel.ir.tape import Node, Outcome, Place, Tape
from accel.ir.template import fill


class Assumed(NamedTuple):
    """An outcome, its node by number."""

    number: int
    expected: Any
    where: Place


class Draft:
    """A tape whose stretches may be replaced.

    A *time* is the number of nodes that the recording had written by then. outcomes: by their position on the tape;
    None where one is gone. read: slots of what recorded code may read at any time, as attributes and globals, and not
    only from variables of its own.
    """

    def __init__(self, tape: Tape, read: frozenset[int] = frozenset()) -> None:
        self._read = read
        self.nodes: dict[int, Node] = {node.index: node for node in tape.nodes}
        self.outcomes: list[Assumed | None] = [
            Assumed(each.node.index, each.expected, each.where) for each in tape.outcomes
        ]
        self._order = [node.index for node in tape.nodes]
        self._times = list(self._order)
        self._in_place: dict[int, int] = {}  # what took the place of a node, by numbers
        self._gone: set[int] = set()
        self._next = len(tape.nodes)

    def now(self, number: int) -> int | None:
        """Return the node that replaces a node now; None if it is gone."""
        while number in self._in_place:
            number = self._in_place[number]
        return None if number in self._gone else number

    def operands(self, number: int) -> list[int | None]:
        """Return the operands of an operation, in order."""
        return [self.now(operand.index) for operand in self.nodes[number].operands()]

    def between(self, start: int, stop: int) -> list[int]:
        """The nodes of a stretch of time."""
        return self._order[bisect.bisect_left(self._times, start) : bisect.bisect_left(self._times, stop)]

    def since(self, start: int) -> list[int]:
        return self._order[bisect.bisect_left(self._times, start) :]

    def add(self, rule: Any, args: tuple[Any, ...], kwargs: dict[str, Any], **about: Any) -> Node:
        """A new node, which is in no place yet."""
        return self._added(Node(self._next, rule, args, kwargs, host=False, **about))

    def copy(self, model: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        """A node like another one, with these arguments, which is in no place yet."""
        return self._added(model.replaced(index=self._next, args=args, kwargs=kwargs))

    def _added(self, made: Node) -> Node:
        self.nodes[made.index] = made
        self._next += 1
        return made

    def is_read(self, number: int) -> bool:
        """Whether a node is the value of something that recorded code may read at any time."""
        node = self.nodes[number]
        return node.is_input and node.args[0] in self._read

    def replace(self, start: int, stop: int, new: Iterable[Node], in_place: dict[int, int]) -> None:
        """Put new nodes in the place of a stretch. in_place: what stands for the nodes of it that are still used."""
        first, last = bisect.bisect_left(self._times, start), bisect.bisect_left(self._times, stop)
        numbers = [node.index for node in new]
        self._gone.update(self._order[first:last])
        self._gone.difference_update(in_place, numbers)
        self._order[first:last] = numbers
        self._times[first:last] = [stop - 1] * len(numbers)
        self._in_place.update(in_place)

    def guard(self, number: int, entry: Node) -> None:
        """Let a loop be entered only if a new truth holds."""
        loop = self.nodes[number]
        begin, _, moving, fixed = loop.args
        self.nodes[number] = loop.replaced(args=(begin, entry, moving, fixed))
        place = self._order.index(number)
        self._order.insert(place, entry.index)
        self._times.insert(place, self._times[place])

    def tape(self) -> tuple[Tape, dict[int, Node]]:
        """The tape as it is now, and what stands on it for each of the former nodes that are left."""
        made: dict[int, Node] = {}
        nodes: list[Node] = []

        def placed(leaf: Node) -> Node:
            number = self.now(leaf.index)
            assert number is not None, "a node that is still used is gone"
            return made[number]

        for number in self._order:
            node = self.nodes[number]
            args, kwargs = fill((node.args, node.kwargs), placed, Node)
            made[number] = node.replaced(index=len(nodes), args=args, kwargs=kwargs)
            nodes.append(made[number])
        outcomes = [self._outcome(each, made) for each in self.outcomes if each is not None]
        former = {number: made[found] for number in self.nodes if (found := self.now(number)) in made}
        return Tape(nodes, outcomes), former

    def _outcome(self, assumed: Assumed, made: dict[int, Node]) -> Outcome:
        number = self.now(assumed.number)
        assert number is not None, "an outcome that is still checked is gone"
        return Outcome(made[number], assumed.expected, assumed.where)
