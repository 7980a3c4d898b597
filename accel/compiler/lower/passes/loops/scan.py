"""Rolled loops in a traced program: the iterations after the first are one `lax.scan`, or straight code for kernels.

Takes a `Loop` whose first iteration is computed, and sets the values that are used after it. Numbers and slices that
differ from iteration to iteration are looked up in tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from accel.compiler.lower.passes.loops.loop import Loop
from accel.compiler.lower.passes.loops.moving_box import MovingBox
from accel.compiler.lower.passes.loops.operands import (
    Carried,
    Invariant,
    LoopOperand,
    MovingRead,
    SameIteration,
    Stacked,
    Table,
)
from accel.ir.tape import Node
from accel.rules.tracing import current

if TYPE_CHECKING:
    from accel.compiler.lower.values import Values

Compute = Callable[[Node, Sequence[Any]], Any]
"""Function that computes a loop operation's value from its operands, in the order of their leaves."""

STRAIGHT = 512
"""Maximum number of operations, all iterations together, that kernels compute as straight code. They fuse iterations,
where a loop copies every array that it writes to. Convection of 40 levels, 560 operations: 1.1 ms for 2.2 ms of 8000
columns, and 1.5 s for 1.3 s to compile; of 20 levels, 0.35 ms for 1.1 ms, and 0.7 s for 1.1 s."""


def run(loop: Loop, values: Values, compute: Compute) -> None:
    """Compute the iterations after the first, in a traced program.

    values: the program's values by node; those that are used later are set. compute: from an operation and its
    operands, its value.
    """
    from jax import lax

    moving = [
        (key, operand)
        for key, operand in loop.numbered_operands()
        if isinstance(operand, (Table, MovingBox, MovingRead, Stacked))
    ]

    def body(carry: list[Any], entries: dict[tuple[int, int], Any]) -> Any:
        before = dict(zip(loop.carried, carry, strict=True))
        own: list[Any] = []
        for position, (node, operands) in enumerate(zip(loop.operations, loop.rows, strict=True)):
            resolved = [
                _resolve(operand, own, before, values, entries.get((position, place)))
                for place, operand in enumerate(operands)
            ]
            own.append(compute(node, resolved))
        return [own[position] for position in loop.carried], [own[position] for position in loop.collected]

    values.ensure(loop.from_outside())
    carry = [values.fetch(loop.first[position]) for position in loop.carried]
    if current().for_kernels and loop.count * loop.size <= STRAIGHT:
        for k, iteration in enumerate(loop.iterations[1:]):
            carry, found = body(carry, {key: _entry(operand, k, values) for key, operand in moving})
            for position, value in zip((*loop.carried, *loop.collected), (*carry, *found), strict=True):
                values.set(iteration[position], value)
        return
    # by the operand, so that an iteration's entries come in a dict with the same keys: `scan` takes any tree of arrays
    tables = {key: looked_up(operand, values) for key, operand in moving}
    carry, collected = lax.scan(body, carry, tables, length=loop.count)
    for position, value in zip(loop.carried, carry, strict=True):
        values.set(loop.last[position], value)
    for position, column in zip(loop.collected, collected, strict=True):
        for k in range(1, loop.count):  # iterations 1, 2, ...; of the last the value was set above if it is used
            values.set_row(loop.iterations[k][position], column, k - 1)


def looked_up(operand: Table | MovingBox | MovingRead | Stacked, values: Values) -> Any:
    """Return the values that the iterations look up: (iterations, ...)."""
    match operand:
        case Table(table):
            return values.table(table)
        case Stacked(nodes):
            return values.stack(nodes)
        case MovingRead(_, moving):
            return moving.starts
        case MovingBox(starts):
            return starts


def _entry(operand: Table | MovingBox | MovingRead | Stacked, k: int, values: Values) -> Any:
    """Return what iteration `k` after the first looks up, as plain numbers where they are known."""
    match operand:
        case Table(table):
            return values.table(table)[k]
        case Stacked(nodes):
            return values.fetch(nodes[k])
        case MovingRead(_, MovingBox(starts)) | MovingBox(starts):
            return tuple(starts[k].tolist())


def _resolve(operand: LoopOperand, own: list[Any], before: dict[int, Any], values: Values, entry: Any) -> Any:
    """An operand in an iteration.

    own: the iteration's values so far. before: those carried into it. entry: what it looks up.
    """
    match operand:
        case SameIteration(position):
            return own[position]
        case Carried(position):
            return before[position]
        case Table() | Stacked():
            return entry
        case MovingBox(_, box):
            return box.moved(entry)
        case MovingRead(base, moving):
            return moving.box.moved(entry).read(values.fetch(base))
        case Invariant(leaf):
            return values.fetch(leaf) if isinstance(leaf, Node) else leaf
