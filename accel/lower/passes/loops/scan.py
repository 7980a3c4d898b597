"""Rolled loops in a traced program: the rounds after the first are one `lax.scan`.

Takes a `Loop` whose first round is computed, and sets the values that are used after it. Numbers and slices that differ
from round to round are looked up in tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from accel.ir.tape import Node
from accel.lower.passes.loops.loop import Loop
from accel.lower.passes.loops.moving_box import MovingBox
from accel.lower.passes.loops.operands import (
    LARGEST_TABLE,
    Carried,
    Invariant,
    LoopOperand,
    MovingRead,
    SameRound,
    Stacked,
    Table,
    filled,
    is_box_read,
)
from accel.rules import core, fusion

FEW_ELEMENTS = 32
"""Reads of so many elements of an array that the loop does not change are made before it. What all rounds
read is copied together, so that more would be a copy of much of the array. No measurement is known."""


SMALL_PART = 4
"""A read of a part so many times smaller than its array is made separately: that copies the part, where a fusion with
the write might copy the array in every round."""


def run(loop: Loop, values: Any, compute: Callable[[Node, Any, Any], Any]) -> None:
    """Compute the rounds after the first, in a traced program.

    values: the program's values by node; those that are used later are set. compute: from an operation and its filled
    arguments, its value.
    """
    from jax import lax

    rounds = loop.rounds
    tables = [
        looked_up(operand, values)
        for operand in loop.all_operands()
        if isinstance(operand, (Table, MovingBox, MovingRead, Stacked))
    ]

    def body(carry: list[Any], entries: tuple[Any, ...]) -> Any:
        before = dict(zip(loop.carried, carry, strict=True))
        own: list[Any] = []
        entry, small = iter(entries[0]), entries[1]
        for place, (node, operands) in enumerate(zip(rounds[1], loop.rows, strict=True)):
            # Resolved in any case: this takes the round's entries of the tables, in their order.
            given = iter([_resolve(operand, own, before, values, entry) for operand in operands])
            if place in small:
                own.append(small[place])
                continue
            args, kwargs = filled((node.args, node.kwargs), given)
            if _reads_written(node, operands, rounds[1]):  # its second argument is the box
                args = (args[0], fusion.SeparateRead(args[1]))
            own.append(compute(node, args, kwargs))
        return [own[place] for place in loop.carried], [own[place] for place in loop.collected]

    values.ensure(loop.from_outside())
    first = [values.fetch(rounds[0][place]) for place in loop.carried]
    carry, collected = lax.scan(body, first, (tables, _small_parts(loop, values)), length=len(rounds) - 1)
    for place, value in zip(loop.carried, carry, strict=True):
        values.set(rounds[-1][place], value)
    for place, column in zip(loop.collected, collected, strict=True):
        for k in range(1, len(rounds) - 1):  # rounds 1, 2, ...; of the last the value was set above if it is used
            values.set_row(rounds[k][place], column, k - 1)


def _small_parts(loop: Loop, values: Any) -> dict[int, Any]:
    """By place, what reads of a few elements give, all rounds together: taken before the loop, which otherwise holds
    the whole array; one that comes in a span would have to be copied.
    """
    import jax

    found = {}
    for place, (node, operands) in enumerate(zip(loop.rounds[1], loop.rows, strict=True)):
        size = math.prod(node.shape)
        if not is_box_read(node) or size > FEW_ELEMENTS or size * len(loop.rounds) > LARGEST_TABLE:
            continue
        match operands:
            case [Invariant(leaf), MovingBox(starts, box)]:
                base = values.fetch(leaf)
                found[place] = jax.vmap(lambda start, box=box, base=base: box.moved(start).read(base))(starts)
    return found


def looked_up(operand: Table | MovingBox | MovingRead | Stacked, values: Any) -> Any:
    """What the rounds look up: (rounds, ...)."""
    match operand:
        case Table(table):
            return values.table(table)
        case Stacked(nodes):
            return values.stack(nodes)
        case MovingRead(_, moving):
            return moving.starts
        case MovingBox(starts):
            return starts


def _reads_written(node: Node, operands: list[LoopOperand], operations: Sequence[Node]) -> bool:
    """Whether an operation looks at a small part of an array that the loop writes to."""
    if not is_box_read(node) or not isinstance(operands[0], (SameRound, Carried)):
        return False
    base = operations[operands[0].place]
    return base.rule is core.WRITE and math.prod(base.shape) >= SMALL_PART * math.prod(node.shape)


def _resolve(operand: LoopOperand, own: list[Any], before: dict[int, Any], values: Any, entry: Iterator[Any]) -> Any:
    match operand:
        case SameRound(place):
            return own[place]
        case Carried(place):
            return before[place]
        case Table() | Stacked():
            return next(entry)
        case MovingBox(_, box):
            return box.moved(next(entry))
        case MovingRead(base, moving):
            return moving.box.moved(next(entry)).read(values.fetch(base))
        case Invariant(leaf):
            return values.fetch(leaf) if isinstance(leaf, Node) else leaf
