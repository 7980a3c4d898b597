"""Webs: nodes that belong together, directly or by way of others (a union-find)."""

from __future__ import annotations

from accel.ir.tape import Node


class Webs:
    """Nodes in webs; one that was joined with no other is a web of its own."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}

    def of(self, node: Node) -> int:
        """The web that the node is in: the same number for all that are in it, until webs are joined."""
        index = node.index
        while self._above.get(index, index) != index:
            self._above[index] = self._above.get(self._above[index], self._above[index])
            index = self._above[index]
        return index

    def join(self, node: Node, other: Node) -> None:
        self._above[self.of(node)] = self.of(other)
