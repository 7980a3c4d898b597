"""Dependences: the kind of each operand of a rolled loop, found by comparing the iterations.

The iterations of a candidate are equally long parts of a tape, with operations of the same kinds in order. The result
is a row of operands for each operation of an iteration (see `accel.compiler.lower.passes.loops.operands`). It is None
if some operand cannot occur in a loop, such as a value from two iterations before, or keys of different forms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accel.compiler.lower.passes.loops.moving_box import moving_box
from accel.compiler.lower.passes.loops.operands import (
    LARGEST_TABLE,
    Carried,
    Invariant,
    LoopOperand,
    MovingRead,
    SameIteration,
    Stacked,
    Table,
    is_box_read,
    leaves_of,
    may_vary,
)
from accel.ir.tape import Node
from accel.ir.template import frozen_static
from accel.ir.views import Index


def operand_rows(parts: Sequence[Sequence[Node]], value_of: Callable[[Node], Any]) -> list[list[LoopOperand]] | None:
    """The operands of each operation of an iteration, from the second iteration on; None if the iterations are no loop.

    value_of: a node's value where it is known before launch, else None.
    """
    # Iteration and position. Rows begin with iteration 1: iteration 0 is computed as it stands, and gives what
    # iteration 1 carries on.
    positions = {node.index: (k, j) for k, part in enumerate(parts) for j, node in enumerate(part)}
    rows = []
    for j in range(len(parts[0])):
        columns = zip(*(leaves_of(part[j]) for part in parts[1:]), strict=True)
        row = []
        for column in columns:
            operand = _operand(column, positions, parts[1][j], value_of)
            if operand is None:  # one is enough: iterations that differ otherwise are no loop
                return None
            row.append(operand)
        rows.append(row)
    return rows


def _operand(
    column: tuple[Any, ...], positions: dict[int, tuple[int, int]], node: Node, value_of: Callable[[Node], Any]
) -> LoopOperand | None:
    """Return the operand that one leaf is over iterations 1, 2, ...; None if a loop cannot have it."""
    first = column[0]
    if isinstance(first, Node):
        return _value(column, positions, value_of)
    if all(frozen_static(leaf) == frozen_static(first) for leaf in column):
        return Invariant(first)
    if isinstance(first, Index):
        return moving_box(node.args[0].shape, list(column))
    if may_vary(node) and len({type(leaf) for leaf in column}) == 1:
        return Table(np.array(column))
    return None


def _value(
    column: tuple[Any, ...], positions: dict[int, tuple[int, int]], value_of: Callable[[Node], Any]
) -> LoopOperand | None:
    """Return the loop operand for a value, the cheapest to compute first.

    A moving read costs a slice, stacking a copy of each value.
    """
    found = [positions.get(leaf.index) for leaf in column]
    return _by_origin(column, found, value_of) or _moving_read(column, positions) or _stacked(column, found)


def _by_origin(
    column: tuple[Any, ...], found: list[tuple[int, int] | None], value_of: Callable[[Node], Any]
) -> LoopOperand | None:
    """found: iteration and position of the operation that computes the value; None if it is from before the loop."""
    if all(leaf is column[0] for leaf in column) and (found[0] is None or found[0][0] == 0):
        return Invariant(column[0])  # from before the loop, or from its first iteration, which is computed as it stands
    if all(position is None for position in found):  # other values from before the loop: a table, if they are known
        if len(column) * math.prod(column[0].shape) > LARGEST_TABLE:
            return None
        known = [value_of(leaf) for leaf in column]
        return None if any(value is None for value in known) else Table(np.array(known, column[0].dtype))
    if any(position is None for position in found):
        return None  # neither always from before the loop nor always from inside it
    # How many iterations before, in each iteration; and which operation of that iteration.
    distances = {k + 1 - position[0] for k, position in enumerate(found) if position is not None}
    operations = {position[1] for position in found if position is not None}
    if len(operations) != 1 or len(distances) != 1 or not distances <= {0, 1}:
        return None
    position = operations.pop()
    return SameIteration(position) if distances == {0} else Carried(position)


def _moving_read(column: tuple[Any, ...], positions: dict[int, tuple[int, int]]) -> LoopOperand | None:
    # The tape holds equal reads once, wherever the first of them was made. So the iterations' reads may be parts of
    # another loop, in another order, and none of them in this loop's own iterations (see `MovingRead`).
    if not all(is_box_read(leaf) and leaf.args[0] is column[0].args[0] for leaf in column):
        return None
    base = column[0].args[0]
    if positions.get(base.index, (0, 0))[0]:
        return None  # the array is computed by a later iteration than the first: not there yet when the loop begins
    found = moving_box(base.shape, [leaf.args[1] for leaf in column])
    return None if found is None else MovingRead(base, found)


def _stacked(column: tuple[Any, ...], found: list[tuple[int, int] | None]) -> LoopOperand | None:
    if any(position is not None and position[0] for position in found):
        return None  # as above
    return Stacked(tuple(column)) if len(column) * math.prod(column[0].shape) <= LARGEST_TABLE else None
