"""Sinking: reads of parts of arrays move to the operations that use them.

`a[i, :j]` is an operation of its own on the tape, and a slice of changing length would be a value of changing shape.
Where it is read by its users instead, only they need to know about its length. Takes the operations; gives the reads
that can move, called *virtual*. A read stays where it is if its array is written to before the last use, if it is a
result of the program, or if it is a view other than consecutive elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from accel.ir.tape import Node
from accel.ir.views import is_window
from accel.rules import core


def is_window_read(node: Node) -> bool:
    """Whether a node only shows consecutive elements of another."""
    return node.rule is core.SCALAR or (node.rule is core.READ and is_window(node.args[1]))


def sinkable(body: Sequence[Node], used: frozenset[int]) -> set[int]:
    """Indices of the reads that can move to their users, as the array is not written to before the last use."""
    # By node: the first write to it. A write makes a new node, and the old one is the array as it was before: a read
    # that moved past the write would keep XLA from writing in place.
    written: dict[int, int] = {}
    for node in body:
        if node.rule is core.WRITE:
            written.setdefault(node.args[0].index, node.index)
    last = {operand.index: node.index for node in body for operand in node.operands()}
    virtual: set[int] = set()
    until: dict[int, int] = {}
    for node in body:
        # The conversion of one element to a number moves along with its read.
        looks = is_window_read(node) and (node.rule is core.READ or node.args[0].index in virtual)
        if looks and node.index not in used and node.index in last:
            base = node.args[0]
            # A read of a virtual read looks at the same array, and must not move any further.
            end = until[base.index] if base.index in virtual else written.get(base.index)
            if end is None or last[node.index] <= end:
                virtual.add(node.index)
                until[node.index] = end if end is not None else 1 << 62  # never written to: further than any index
    return virtual
