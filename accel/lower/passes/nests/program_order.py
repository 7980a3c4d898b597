"""Program order: value numbering undone.

The tape has what the program computes again only once (value numbering). That hides loops: if `x * 2` is the same in
two rounds, the second round has an operation less than the first, and the rounds look different. Takes the tape's
operations; gives them with a copy of a node wherever the program computed it again. Does nothing where no
node was computed twice. What becomes no nest is computed once, as the tape has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from accel.ir.tape import Node
from accel.ir.template import fill
from accel.lower.passes.nests.sinking import is_window_read


class ProgramOrder:
    """The operations in the order of the program, those that it computes again in each of their positions.

    nodes: the tape's; if any is repeated, copies of them with indices of their own. placed: by index of the tape's
    node, the index of its copy in the place where the tape has it.
    """

    def __init__(self, body: Sequence[Node]) -> None:
        self.nodes = list(body)
        self.placed = {node.index: node.index for node in body}
        self._origin: dict[int, Node] = {}
        self._repeats: set[int] = set()
        repeats = [(index, node, site) for node in body for index, site in node.repeats or ()]
        if repeats:  # otherwise the tape is the program's order
            self.nodes, self.placed = [], {}
            self._first = body[-1].index + 1 + len(repeats)
            self._latest: dict[int, Node] = {}  # by index of the tape's node: its last copy so far
            self._lay_out(body, sorted(repeats, key=lambda repeat: repeat[0]))

    def origin(self, node: Node) -> Node:
        """The tape's node that a copy stands for."""
        return self._origin.get(node.index, node)

    def is_repeat(self, node: Node) -> bool:
        """Whether the tape does not have the operation in this position."""
        return node.index in self._repeats

    def _lay_out(self, body: Sequence[Node], repeats: list[tuple[int, Node, int]]) -> None:
        """Copy the operations in the program's order. repeats: sorted; those after the last operation are of no use."""
        position = 0
        for node in body:
            while position < len(repeats) and repeats[position][0] <= node.index:
                _, again, site = repeats[position]
                self._repeats.add(self._append(again, site).index)
                position += 1
            self.placed[node.index] = self._append(node, node.site).index

    def _append(self, node: Node, site: int) -> Node:
        args, kwargs = fill((node.args, node.kwargs), self._current, Node)
        placed = node.replaced(args=args, kwargs=kwargs, site=site, index=self._first + len(self.nodes))
        self.nodes.append(placed)
        self._origin[placed.index] = node
        self._latest[node.index] = placed
        return placed

    def _current(self, node: Node) -> Node:
        """What stands for an operand: where the program last computed it."""
        placed = self._latest.get(node.index)
        if placed is None:
            return node
        # Where the array was computed again since, the read is made again too: of the copy of the array.
        if is_window_read(node) and self._current(node.args[0]) is not placed.args[0]:
            placed = self._append(node, node.site)
            self._repeats.add(placed.index)
        return placed


def last_readers(order: ProgramOrder, virtual: set[int]) -> dict[int, int]:
    """By node: the last operation that takes it, or takes what a virtual read sees of it."""
    last: dict[int, int] = {}
    for node in reversed(order.nodes):  # users before what they use: what reads a virtual node is known when it comes
        end = last.get(node.index, -1) if node.index in virtual else node.index
        for operand in node.operands():
            # The copy that is read, and the one that outside of nests stands for all of them (see `find`).
            for index in {operand.index, order.placed.get(order.origin(operand).index, operand.index)}:
                last[index] = max(end, last.get(index, -1))
    return last
