"""Positions that are known: boxes at them are static views again, as if the program had been recorded with numbers.

A recorded integer in a key is an operand of the read or write (`core.READ_AT`, `core.WRITE_AT`). Where folding knows
it before launch, XLA need not look it up, and the other passes see where the box lies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accel.compiler.lower.passes.rewriting import rewritten
from accel.ir.tape import Node
from accel.rules import core


def settled(body: Sequence[Node], value_of: Callable[[Node], Any]) -> Sequence[Node]:
    """The operations with static views in the place of boxes at known positions.

    value_of: a node's value where it is known before launch, else None.
    """
    return rewritten(body, lambda node: _static(node, value_of) if node.rule in (core.READ_AT, core.WRITE_AT) else None)


def _static(node: Node, value_of: Callable[[Node], Any]) -> Node | None:
    base, extent, *value, starts = node.args
    known = tuple([value_of(start) if isinstance(start, Node) else start for start in starts])
    if any(start is None for start in known):
        return None
    args = base, extent.at(base.shape, known), *value
    if node.rule is core.WRITE_AT:
        return node.replaced(rule=core.WRITE, args=args)
    return node.replaced(rule=core.READ, args=args)
