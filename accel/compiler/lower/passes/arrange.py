"""Arrangement: a program's operations with their loops, and whether they are few enough for XLA."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accel.compiler.lower.passes.branches import Conditional, chosen_at
from accel.compiler.lower.passes.loops import reroll
from accel.compiler.lower.passes.loops.loop import Loop
from accel.ir.loop import body_of
from accel.ir.tape import Node
from accel.rules.rule import Unsupported

MAX_OPERATIONS = 4000
"""A program of more operations, loops rolled, would take XLA a minute and more."""


def is_worth(nodes: list[Node]) -> bool:
    """Whether a recording that has come so far may still become a program: what of it is no loop must be short."""

    # While recording it is not known yet what will be constant. Zeros do as well: only the number of operations counts.
    def value_of(node: Node) -> Any:
        return np.zeros(node.shape, node.dtype) if node.dtype is not None and (node.host or node.constant) else None

    body = [node for node in nodes if not node.is_input and not node.host]
    return size_of(arranged(body, frozenset(), value_of)) <= MAX_OPERATIONS


Part = Node | Loop | Conditional


def arranged(body: Sequence[Node | Conditional], used: frozenset[int], value_of: Callable[[Node], Any]) -> list[Part]:
    """The operations with their loops, which stand between two conditionals or in a side of one.

    used: indices of nodes that are results. value_of: a node's value where it is known before launch, else None.
    """
    parts: list[Part] = []
    rest = list(body)
    while rest:
        run = list(itertools.takewhile(_is_plain, rest))
        here = {id(item) for item in run}
        read = {operand.index for item in body if id(item) not in here for operand in item.operands()}
        parts += reroll.roll(run, used | read, value_of)  # type: ignore[arg-type]
        rest = rest[len(run) :]
        if rest:
            conditional = rest.pop(0)
            if isinstance(conditional, Node):  # a loop by data, whose iterations are arranged when it is traced
                parts.append(conditional)
                continue
            for place, side in enumerate(conditional.sides):
                conditional.sides[place] = list(arranged(side, chosen_at(conditional.phis, place), value_of))
            parts.append(conditional)
    return parts


def _is_plain(item: Node | Conditional) -> bool:
    return isinstance(item, Node) and body_of(item) is None


def check_size(parts: Sequence[Part]) -> None:
    """Raise Unsupported if there are too many operations for XLA."""
    size = size_of(parts)
    if size > MAX_OPERATIONS:
        raise Unsupported("limit.compile", f"{size} operations, loops rolled; at most {MAX_OPERATIONS}")


def size_of(parts: Sequence[Part]) -> int:
    """Return a program's compile cost, in operations. Loops count twice: a rolled one has its first iteration too."""
    return sum(map(_size, parts))


def _size(part: Part) -> int:
    if isinstance(part, Conditional):
        return sum(map(size_of, part.sides))
    if isinstance(part, Node):
        body = body_of(part)
        return 1 if body is None else 1 + body.size
    return 2 * part.size
