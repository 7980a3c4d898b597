"""Union-find: which nodes belong together, directly or by way of others."""

from __future__ import annotations

from accel.ir.tape import Node


class UnionFind:
    """Disjoint sets of nodes. A node that was joined with no other is a set of its own."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}

    def of(self, node: Node) -> int:
        """The number of the node's set, the same for all nodes in it. It may change when sets are joined."""
        index = node.index
        while self._above.get(index, index) != index:
            # Path halving: each node passed on the way points further up, so that later searches are short.
            self._above[index] = self._above.get(self._above[index], self._above[index])
            index = self._above[index]
        return index

    def join(self, node: Node, other: Node) -> None:
        """Make one set of the two nodes' sets."""
        self._above[self.of(node)] = self.of(other)
