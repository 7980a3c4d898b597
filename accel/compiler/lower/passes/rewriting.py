"""Rewriting: what passes that replace operations have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from accel.ir.tape import Node
from accel.ir.template import fill


def rewritten(body: Sequence[Node], better: Callable[[Node], Node | None]) -> list[Node]:
    """The operations with others in the place of some. better: gives what stands in a node's place; None to keep it.

    Operations that read what is replaced get the replaced node as their operand, since passes look at what an operand
    is.
    """
    replaced: dict[int, Node] = {}

    def now(node: Node) -> Node:
        return replaced.get(node.index, node)

    found: list[Node] = []
    for node in body:
        if any(operand.index in replaced for operand in node.operands()):
            args, kwargs = fill((node.args, node.kwargs), now, Node)
            replaced[node.index] = node = node.replaced(args=args, kwargs=kwargs)
        other = better(node)
        if other is not None:
            replaced[node.index] = node = other
        found.append(node)
    return found
