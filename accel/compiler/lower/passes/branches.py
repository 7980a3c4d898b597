"""Branches: values that only one side of a choice reads are computed only if that side is chosen.

On a merged tape (accel.compiler.merge) phis choose among values, all of which stand on the tape. The phis of one choice
become the results of one conditional (`lax.switch`). Each of its *sides* has the operations that nothing but its phis
reads. Conditionals may be nested. If a side would have little to do, the phi stays a selection. XLA fuses nothing
across the border of a conditional, and stores what goes in and out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from accel.ir.tape import Node
from accel.rules import core
from accel.rules.columns import fact

LEAST_WORK = 8.0
"""Minimum work that a side must save to be worth a conditional: simple operations per element of its phis."""


@dataclass(slots=True)
class Conditional:
    """The phis of one choice, with what only each side of it needs.

    choice: the node whose value is the side. sides: the operations of each, loops and further conditionals among them.
    inside: indices of all that they compute.
    """

    choice: Node
    phis: list[Node]
    sides: list[list[Any]]
    inside: frozenset[int]

    @property
    def tables(self) -> list[Any]:
        """Lookup tables of the loops in its sides."""
        return [table for side in self.sides for part in side if not isinstance(part, Node) for table in part.tables]

    def operands(self) -> Iterator[Node]:
        """The values that it takes, and those that its sides hand on to one another."""
        yield self.choice
        for side in self.sides:
            for part in side:
                yield from part.operands()
        for phi in self.phis:
            yield from (side for side in phi.args[1] if side is not None)


def branched(body: Sequence[Node], used: frozenset[int]) -> list[Node | Conditional]:
    """The operations with their conditionals. used: indices of nodes that are results."""
    found = _Branches(body, used)
    items: list[Node | Conditional] = list(body)
    while (conditional := found.last()) is not None:
        first, *rest = (phi.index for phi in conditional.phis)
        gone = conditional.inside.union(rest)
        items = [conditional if _index(item) == first else item for item in items if _index(item) not in gone]
        for place, side in enumerate(conditional.sides):
            conditional.sides[place] = list(branched(side, chosen_at(conditional.phis, place)))
    return items


def _index(item: Node | Conditional) -> int:
    return item.index if isinstance(item, Node) else item.phis[0].index


def chosen_at(phis: Sequence[Node], place: int) -> frozenset[int]:
    """Indices of what these phis choose at a place."""
    return frozenset(phi.args[1][place].index for phi in phis if phi.args[1][place] is not None)


class _Branches:
    """Finds the conditionals of a body from its end: an outer one comes after those in its sides."""

    def __init__(self, body: Sequence[Node], used: frozenset[int]) -> None:
        self._body = {node.index: node for node in body}
        self._place = {node.index: place for place, node in enumerate(body)}
        self._used = used
        self._phis = [node for node in body if node.rule is core.PHI]
        self._readers: dict[int, list[Node]] = {}
        for node in body:
            for operand in node.operands():
                self._readers.setdefault(operand.index, []).append(node)

    def last(self) -> Conditional | None:
        """The last conditional that is left. Its operations are not looked at again."""
        while self._phis:
            choice = self._phis[-1].args[0]
            group, sides = self._group([phi for phi in self._phis if phi.args[0].index == choice.index])
            taken = {phi.index for phi in group}
            self._phis = [phi for phi in self._phis if phi.index not in taken]
            if self._is_worth(group, sides):
                inside = frozenset(node.index for side in sides for node in side)
                for index in (*taken, *inside):
                    del self._body[index]
                self._phis = [phi for phi in self._phis if phi.index in self._body]
                return Conditional(choice, group, [list(side) for side in sides], inside)
        return None

    def _group(self, phis: list[Node]) -> tuple[list[Node], list[list[Node]]]:
        """The last of a choice's phis, with those before it that can be computed where the first of them stands.

        That is where all that their sides need from outside is there already.
        """
        rest = phis
        while True:
            group = rest
            later: list[Node] = []
            while True:
                sides = [self._only_for(group, place) for place in range(len(group[0].args[1]))]
                late = [phi for phi in group[1:] if self._latest(phi, sides) >= self._place[group[0].index]]
                if not late:
                    break
                later = sorted([*later, *late], key=lambda phi: self._place[phi.index])
                group = [phi for phi in group if phi not in late]
            if not later:
                return group, sides
            rest = later

    def _only_for(self, phis: Sequence[Node], place: int) -> list[Node]:
        """The operations that are read by nothing but these phis at a place, and by one another, in order."""
        group, found = {phi.index for phi in phis}, set[int]()
        stack = [phi.args[1][place] for phi in phis if phi.args[1][place] is not None]
        # from the end: when an operation's turn comes, all its readers have had theirs
        waiting = {node.index for node in stack if node.index in self._body}
        while waiting:
            index = max(waiting, key=self._place.__getitem__)
            waiting.discard(index)
            if index in self._used or index in group:
                continue
            readers = self._readers[index]
            if all(each.index in found or (each.index in group and _only_at(each, index, place)) for each in readers):
                found.add(index)
                operands = self._body[index].operands()
                waiting |= {each.index for each in operands if each.index in self._body}
        return [self._body[index] for index in sorted(found, key=self._place.__getitem__)]

    def _latest(self, phi: Node, sides: Sequence[Sequence[Node]]) -> int:
        """The place of the last operation outside the sides that a phi needs."""
        inside = {node.index for side in sides for node in side}
        latest, seen, stack = -1, set[int](), list(phi.operands())
        while stack:
            node = stack.pop()
            if node.index in seen:
                continue
            seen.add(node.index)
            if node.index in inside:
                stack.extend(self._body[node.index].operands())
            else:
                latest = max(latest, self._place.get(node.index, -1))
        return latest

    def _is_worth(self, group: Sequence[Node], sides: Sequence[Sequence[Node]]) -> bool:
        work = sum(fact(node.rule.cost.work, node) * math.prod(node.shape) for side in sides for node in side)
        return work >= LEAST_WORK * sum(math.prod(phi.shape) for phi in group)


def _only_at(phi: Node, index: int, place: int) -> bool:
    """Whether a phi reads a node at one place only."""
    choice, values = phi.args
    places = [at for at, value in enumerate(values) if value is not None and value.index == index]
    return bool(choice.index != index and places == [place])
