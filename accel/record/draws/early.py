"""What draws may take: values that are known before launch, without running the program."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from accel.ir.tape import Node
from accel.rules import core

MOST_EARLY = 16
"""So many operations on arrays may NumPy do for the arguments of one draw. The program does them too, if it needs them:
so there should be few. All of them are elementwise, which gives the same numbers however the arrays lie in memory."""


def are_early(nodes: Iterable[Node]) -> bool:
    """Whether all of them are known before launch.

    That is what Python computes, arrays of inputs as they were, and little more than that.
    """
    seen: set[int] = set()
    stack, computed = list(nodes), 0
    while stack:
        node = stack.pop()
        if node.index in seen or is_given(node):
            continue
        seen.add(node.index)
        computed += node.rule is not core.READ
        is_simple = node.rule is core.READ or node.rule.locality.elementwise
        if not is_simple or computed > MOST_EARLY:
            return False
        stack += node.operands()
    return True


def is_given(node: Node) -> bool:
    """Whether Python has the value: a number that it computes, or what comes in from outside."""
    return node.host or node.is_input


def early_nodes(roots: Iterable[Node], known: Collection[int]) -> list[Node]:
    """All that the roots are computed from before launch, in the order of the tape, less what is known already."""
    found: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.index not in found and node.index not in known:
            found[node.index] = node
            stack += node.operands()
    return [found[index] for index in sorted(found)]
