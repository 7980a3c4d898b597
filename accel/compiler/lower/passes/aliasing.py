"""Aliasing: writes whose value XLA:CPU might compute from elements that the write has already overwritten.

`b = a.reshape(4, 6) * 2.0; b[1:] = b[:-1]` must take all rows before it writes one. XLA:CPU makes one kernel of the
read and the write, which works in place if nothing else reads the array. It looks for such readers, but misses those
that see the array in another shape (a bug, seen in JAX 0.10.2, in plain `jax.numpy` too). Rows are then copied one
after the other, the first into all. XLA moves reshapes far past other operations, so each value that is computed from
the array that it is written to is copied first.
"""

from __future__ import annotations

from collections.abc import Sequence

from accel.ir.tape import Node
from accel.ir.views import Box, Extent, Index, box_of
from accel.rules import core

MOST_LOOKED_AT = 1000
"""Operations that are looked at to see what a value depends on. Limits the time for long chains of operations. Beyond,
it counts as dependent: to be wrong costs a copy."""


_READS = (core.READ, core.READ_AT)
_WRITES = (core.WRITE, core.WRITE_AT)


def copied_before_writes(body: Sequence[Node]) -> list[Node]:
    """Mark such writes as `endangered`."""
    memory = _Memory(body)

    def marked(node: Node) -> Node:
        endangered = node.rule in _WRITES and _is_part(node) and _depends(node, memory)
        return node.replaced(endangered=True) if endangered else node

    return [marked(node) for node in body]


def _is_part(write: Node) -> bool:
    """Whether something of the array stays: otherwise nothing is written in place, the value is the array."""
    box: Box | Extent | None = None
    if write.rule is core.WRITE_AT:
        box = write.args[1]
    elif isinstance(write.args[1], Index):
        box = box_of(write.shape, write.args[1].key)
    return box is None or box.sizes != write.shape


class _Memory:
    """Sets of nodes that may be the same memory in the program: an array, its views, and what it is after writes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._above: dict[int, int] = {}
        for node in nodes:
            if node.rule in _READS or node.rule in _WRITES:
                self._join(node, node.args[0])
            # Written as a whole, the array is the value; so it may be where a write is no index but, say, a reshape.
            if node.rule in _WRITES and not (_is_part(node) and isinstance(node.args[1], (Index, Extent))):
                self._join(node, node.args[2])
            if node.rule is core.PHI:
                for side in node.operands()[1:]:
                    self._join(node, side)

    def of(self, node: Node) -> int:
        """The number of the node's set, the same for all nodes in it."""
        index = node.index
        while index in self._above:
            # Path halving: each node passed on the way points further up, so that later searches are short.
            self._above[index] = self._above.get(self._above[index], self._above[index])
            index = self._above[index]
        return index

    def _join(self, node: Node, other: Node) -> None:
        one, two = self.of(node), self.of(other)
        if one != two:
            self._above[one] = two


def _depends(write: Node, memory: _Memory) -> bool:
    """Whether the value of a write is computed from the array that it is written to."""
    family, value = memory.of(write), write.args[2]
    stack = [value] if isinstance(value, Node) else []
    found = {node.index for node in stack}
    while stack:
        node = stack.pop()
        if memory.of(node) == family or len(found) > MOST_LOOKED_AT:
            return True
        fresh = [operand for operand in node.operands() if operand.index not in found and not operand.constant]
        found.update(operand.index for operand in fresh)
        stack += fresh
    return False
