"""Aliasing: writes whose value XLA:CPU might compute from elements that the write has already overwritten.

`b = a.reshape(4, 6) * 2.0; b[1:] = b[:-1]` must take all rows before it writes one. XLA:CPU makes one kernel of the
read and the write, which works in place if nothing else reads the array. It looks for such readers, but misses those
that see the array in another shape (a bug, seen in JAX 0.10.2, in plain `jax.numpy` too). XLA may move the reshape past
elementwise operations, and slices past the reshape, so `b` above is such a reader. Rows are then copied one after the
other, the first into all.

The values of writes that might meet this are copied first. A reshape that adds or drops axes of length 1 moves up past
writes. So later operations on `b` count, too: `z[::2] = b`, a scatter, or `np.array([b])`.
"""

from __future__ import annotations

from collections.abc import Sequence

from accel.compiler.lower.passes.union_find import UnionFind
from accel.ir.tape import Node
from accel.ir.views import Box, Extent, Index, box_of, per_axis
from accel.rules import core
from accel.rules.columns import fact

MOST_LOOKED_AT = 1000
"""Operations that are looked at to see what a value depends on. Limits the time for long chains of operations. Beyond,
it counts as dependent: to be wrong costs a copy."""


_READS = (core.READ, core.READ_AT)
_WRITES = (core.WRITE, core.WRITE_AT)


def copied_before_writes(body: Sequence[Node]) -> list[Node]:
    """Mark such writes as `endangered`."""
    # All three must hold for the bug: the write is in place; XLA may see the array in another shape; and the value is
    # computed from the array.
    families = _Families(body)

    def marked(node: Node) -> Node:
        if not _is_update(node):
            return node
        endangered = families.reshaped(node) and families.depends(node.args[2], node)
        return node.replaced(endangered=True) if endangered else node

    return [marked(node) for node in body]


def _is_update(node: Node) -> bool:
    return node.rule in _WRITES and _is_part(node)


def _is_part(write: Node) -> bool:
    """Whether something of the array stays: otherwise nothing is written in place, the value is the array."""
    box: Box | Extent | None = None
    if write.rule is core.WRITE_AT:
        box = write.args[1]
    elif isinstance(write.args[1], Index):
        box = box_of(write.shape, write.args[1].key)
    return box is None or box.sizes != write.shape


class _Families:
    """Nodes that may be the same memory in the program: an array, its views, and what it is after writes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._memory = UnionFind()
        self._behind_reshape: dict[int, bool] = {}
        writes = [node for node in nodes if node.rule in _WRITES]
        replaced = [node for node in writes if not _is_part(node)]  # the array is the value then
        written = {node.args[0].index for node in writes} | {node.args[2].index for node in replaced}
        for node in nodes:
            if node.rule in _READS or node.rule in _WRITES:
                self._memory.join(node, node.args[0])
            if node.rule is core.PHI:
                for side in node.operands()[1:]:
                    self._memory.join(node, side)
        # Written as a whole, the array is the value; so it may be where a write is no index but, say, a reshape.
        for node in (*replaced, *(node for node in writes if not _is_indexed(node))):
            self._memory.join(node, node.args[2])
        reshaped = [node for node in nodes if self._is_reshaped(node, written)]
        reshaped += [_origin(operand) for node in nodes for operand in _reshaped_operands(node) if operand.shape]
        self._reshaped = set(map(self._memory.of, reshaped))

    def reshaped(self, node: Node) -> bool:
        """Whether the program might see the array in several shapes."""
        return self._memory.of(node) in self._reshaped

    def depends(self, value: Node, write: Node) -> bool:
        """Whether the value is computed from the array that it is written to."""
        family, found, stack = self._memory.of(write), {value.index}, [value]
        while stack:
            node = stack.pop()
            if self._memory.of(node) == family or len(found) > MOST_LOOKED_AT:
                return True
            fresh = [operand for operand in node.operands() if operand.index not in found and not operand.constant]
            found.update(operand.index for operand in fresh)
            stack += fresh
        return False

    def _is_reshaped(self, node: Node, written: set[int]) -> bool:
        if node.rule in _WRITES:
            return not _is_indexed(node)
        if node.rule in _READS:
            return not _is_indexed(node) or (node.index in written and _changes_axes(node))
        return self._follows_reshape(node)

    def _follows_reshape(self, node: Node) -> bool:
        """Whether XLA might compute the value in another shape than its own."""
        known = self._behind_reshape.get(node.index)
        if known is None:
            stack = [node]  # not by recursion: programs are longer than Python's stack is deep
            while stack:
                top = stack[-1]
                ready = [operand for operand in top.operands() if operand.index not in self._behind_reshape]
                if ready:
                    stack += ready
                    continue
                stack.pop()
                self._behind_reshape[top.index] = _may_reshape(top) or (
                    not _is_update(top) and any(self._behind_reshape[each.index] for each in top.operands())
                )
            known = self._behind_reshape[node.index]
        return known


def _reshaped_operands(node: Node) -> Sequence[Node]:
    """Return the operands that an operation may reshape before it reads them."""
    if node.rule in _WRITES:
        value = node.args[2]
        return [value] if isinstance(value, Node) and not _is_written_as_it_is(node) else []
    if node.rule is core.READ and _is_indexed(node):
        return [node.args[0]] if _changes_axes_of_length_1(node) else []
    return node.operands() if _may_reshape(node) else []


def _is_written_as_it_is(write: Node) -> bool:
    """Whether the value, broadcast, is a box of the array."""
    if write.rule is core.WRITE_AT:
        return bool(write.args[1].given == write.args[1].sizes)
    box = box_of(write.shape, write.args[1].key) if _is_indexed(write) else None
    return box is not None and box.given == box.sizes


def _changes_axes_of_length_1(read: Node) -> bool:
    array, place = read.args
    return any(
        entry is None or (not isinstance(entry, slice) and length == 1)
        for entry, length in per_axis(array.shape, place.key)
    )


def _origin(value: Node) -> Node:
    """Return the only source of an elementwise value. XLA may find the two to be the same, as in `x * 1.0`."""
    while value.rule.locality.elementwise or value.rule is core.CAST:
        varying = [operand for operand in value.operands() if not operand.constant]
        if len(varying) != 1 or varying[0].shape != value.shape:
            break
        value = varying[0]
    return value


def _may_reshape(node: Node) -> bool:
    """Whether an operation may come down to a reshape, or end in one."""
    if not node.shape:
        return False
    if node.rule in _READS or node.rule in _WRITES:
        return not _is_indexed(node) or (node.rule in _READS and _changes_axes(node))
    return not node.rule.locality.elementwise and fact(node.rule.locality.reshapes, node)


def _is_indexed(node: Node) -> bool:
    """Whether a read or write looks at an array by basic indexing."""
    return isinstance(node.args[1], (Index, Extent))


def _changes_axes(node: Node) -> bool:
    if node.rule is core.READ_AT:
        return bool(node.args[1].given != node.args[1].sizes)
    return not all(isinstance(entry, slice) for entry in node.args[1].key)
