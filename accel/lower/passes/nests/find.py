"""Nests: loops in loops whose numbers of rounds, and whose slices, change from round to round.

`for i in range(n): for j in range(i): a[i, j] -= a[i, :j] @ a[:j, j]` repeats nothing that
`accel.lower.passes.loops.reroll` finds: no two rounds of `i` have as many operations, no two of `j` operands of the
same shape. Here operations are equal if the same instruction of the program wrote them down.

Takes a program's operations; gives them with a `Nest` in the place of each loop in loops. Step by step: value numbering
is undone (`program_order`), reads move to their users (`sinking`), equal sequences become rounds (`loop_tree`), and
values become registers (`registers`). How values of changing shape are computed, `pad` plans. Does nothing where fewer
than `OPERATIONS` operations repeat, and leaves operations as they are where one of the steps finds them irregular.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from accel.ir.tape import Node
from accel.lower.passes.loops.reroll import OPERATIONS
from accel.lower.passes.nests import pad
from accel.lower.passes.nests.loop_tree import Run, fold, nodes_of
from accel.lower.passes.nests.nest import Irregular, Nest
from accel.lower.passes.nests.program_order import ProgramOrder, last_readers
from accel.lower.passes.nests.registers import Body, nest_of
from accel.lower.passes.nests.sinking import sinkable


def find(
    body: Sequence[Node],
    used: frozenset[int],
    value_of: Callable[[Node], Any],
) -> list[Node | Nest]:
    """The operations with nests found in them.

    used: indices of nodes that are results. value_of: a node's value where it is known before launch, else None.
    """
    order = ProgramOrder(body)
    # From here on nodes go by the indices of their copies. Results that are no operations (inputs) drop out.
    used = frozenset(order.placed[index] for index in used if index in order.placed)
    virtual = sinkable(order.nodes, used)
    whole = Body(order, virtual, last_readers(order, virtual), used, value_of)
    sequence = [node for node in order.nodes if node.index not in virtual]
    parts: list[Node | Nest] = []
    # Virtual reads are not in the sequence. Outside of nests each is put back before the first operation that needs it.
    hidden = {order.origin(node).index for node in order.nodes if node.index in virtual}
    shown: set[int] = set()
    for run in fold(sequence, virtual):
        nest = None
        if isinstance(run, Run) and len(run.nodes) >= OPERATIONS:
            try:
                nest = nest_of(run, whole)
                nest = nest if pad.plan(nest) else None
            except Irregular:  # decided by any of the steps, the last of them `pad.plan`: the run stays straight code
                nest = None
        if nest is not None:
            parts.append(nest)
            continue
        for node in nodes_of(run):
            if not order.is_repeat(node):  # the tape's own operations again: a repeated one is computed once
                parts += [*_reads_of(order.origin(node), hidden, shown), order.origin(node)]
    return parts


def _reads_of(node: Node, virtual: set[int], shown: set[int]) -> Iterator[Node]:
    """The virtual reads that an operation outside of nests needs, those before it left out."""
    for operand in node.operands():
        if operand.index in virtual and operand.index not in shown:
            shown.add(operand.index)
            yield from _reads_of(operand, virtual, shown)
            yield operand
