"""Batching: a rolled loop with independent iterations is computed at once, along a new first axis.

`for i in range(n): out[i] = f(a[i])` is one vectorized `f`. Iterations may read and write parts of the same arrays.
Each read must see the content from before the loop, or what its own iteration wrote. No two iterations may write to one
element.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.compiler.lower.passes.loops import scan
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
    is_box_read,
)
from accel.ir.tape import Node
from accel.ir.views import Index, box_of
from accel.rules import core
from accel.rules.tracing import stored

if TYPE_CHECKING:
    from accel.compiler.lower.values import Values

LARGEST_BATCH = 1 << 17
"""Elements that a value may have, all iterations together: what a core's cache holds. Beyond, the loop is the better
way: ten bands of 121x240 take 4 ms iteration by iteration, and 9 at once."""

MOST_ITERATIONS = 4096
"""Iterations whose boxes are compared, each with each: 16 million pairs for each two writes."""


@dataclass(slots=True)
class LoopBatch:
    """A loop to compute at once.

    A *write chain* is all writes of an iteration to one array, each of which goes on from the one before. What the
    iterations read is read for all of them at once, before; what they write is written for all at once, afterwards.

    reads: by position, the boxes that are read of arrays as they were before the loop. forwarded: reads of what the
    same iteration wrote, by position: the position of that write. written: by position of each write, its boxes.
    dropped: writes that a later one of the iteration covers. chains: the positions of each write chain.
    """

    loop: Loop
    reads: dict[int, MovingBox]
    forwarded: dict[int, int]
    written: dict[int, MovingBox]
    dropped: set[int]
    chains: list[list[int]]


class _Dependent(Exception):
    """The iterations depend on one another, or in a way that is not looked into."""


def plan(loop: Loop) -> LoopBatch | None:
    """Return a plan to compute a loop at once, or None."""
    try:
        return _plan(loop)
    except _Dependent:
        return None


def _require(truth: bool) -> None:
    if not truth:
        raise _Dependent


def _plan(loop: Loop) -> LoopBatch:
    operations, count = loop.operations, loop.count
    _require(count <= MOST_ITERATIONS)
    _require(all(count * math.prod(node.shape) <= LARGEST_BATCH for node in operations if node.rule is not core.WRITE))
    writes = [position for position, node in enumerate(operations) if node.rule is core.WRITE]
    written = {position: _boxes_of(loop, position) for position in writes}
    chains = _chains(loop, writes)
    batch = LoopBatch(loop, {}, {}, written, set(), chains)
    for chain in chains:
        _check_writes(batch, chain)
    for position, node in enumerate(operations):
        _check_uses(batch, position, node)
    # There are no versions of an array in between: only its last may be used outside.
    lasts = {chain[-1] for chain in chains}
    _require(not set(writes) & set(loop.collected))
    _require(all(position in lasts for position in writes if position in loop.carried))
    return batch


def _boxes_of(loop: Loop, position: int) -> MovingBox:
    """The boxes that a read or write looks at, one for each iteration."""
    node, operand = loop.operations[position], loop.rows[position][1]
    if isinstance(operand, MovingBox):
        boxes = operand
    else:  # the same place in every iteration
        _require(isinstance(operand, Invariant) and isinstance(operand.leaf, Index))
        box = box_of(node.args[0].shape, node.args[1].key)
        _require(box is not None)
        assert box is not None
        boxes = MovingBox(np.repeat(np.array([box.starts], np.int32).reshape(1, -1), loop.count, axis=0), box)
    _require(boxes.is_simple())
    return boxes


def _chains(loop: Loop, writes: list[int]) -> list[list[int]]:
    """The writes of an iteration, those to one array together: each goes on from the one before."""
    chains: list[list[int]] = []
    for position in writes:
        base = loop.rows[position][0]
        if isinstance(base, SameIteration):
            _require(any(chain[-1] == base.position for chain in chains))
            next(chain for chain in chains if chain[-1] == base.position).append(position)
        else:
            _require(isinstance(base, Carried))
            chains.append([position])
    # The first write of an iteration goes on from the last of the iteration before: to the same array.
    for chain in chains:
        _require(loop.rows[chain[0]][0] == Carried(chain[-1]))
    return chains


def _check_writes(batch: LoopBatch, chain: list[int]) -> None:
    """Require that no two iterations write to one element.

    Two writes of one iteration must be disjoint, or one cover the other.
    """
    for i, earlier in enumerate(chain):
        for later in chain[i:]:
            # (iterations, iterations). Off the diagonal: another iteration's.
            meets = batch.written[earlier].meets(batch.written[later])
            own = np.diagonal(meets)
            _require(not meets[~np.eye(len(own), dtype=bool)].any())
            if earlier != later and own.any():
                _require(batch.written[earlier].equals(batch.written[later]))
                batch.dropped.add(earlier)


def _check_uses(batch: LoopBatch, position: int, node: Node) -> None:
    """Check an operation's uses of other iterations' values, and of arrays that the loop writes to."""
    operands = batch.loop.rows[position]
    reads = is_box_read(node) or node.rule is core.WRITE
    for i, operand in enumerate(operands):
        if isinstance(operand, (SameIteration, Carried)) and operand.position in batch.written:
            _require(reads and i == 0)  # an array that the loop writes to: only parts of it are followed
        else:
            _require(not isinstance(operand, Carried))  # any other value of the iteration before: iterations in order
        if isinstance(operand, MovingBox):
            _require(reads and i == 1)
        if isinstance(operand, MovingRead):
            _require(operand.at.is_simple())
    if not is_box_read(node):
        return
    base = operands[0]
    if isinstance(base, (SameIteration, Carried)) and base.position in batch.written:
        _check_read(batch, position, base)
    elif isinstance(operands[1], MovingBox):
        _require(isinstance(base, Invariant))
        batch.reads[position] = _boxes_of(batch.loop, position)


def _check_read(batch: LoopBatch, position: int, base: SameIteration | Carried) -> None:
    """A read of an array that the loop writes to.

    It reads the content from before the loop, or its own iteration's value.
    """
    boxes = _boxes_of(batch.loop, position)
    chain = next(chain for chain in batch.chains if base.position in chain)
    _require(isinstance(base, SameIteration) or base.position == chain[-1])
    # No earlier iteration may have written there. Later ones may: the read is made before all writes.
    for write in chain:
        earlier = boxes.meets(batch.written[write])
        _require(not np.tril(earlier, -1).any())
    # Of the own iteration's writes before the read, the last one that meets it must be the same box: its value is read.
    own = chain[: chain.index(base.position) + 1] if isinstance(base, SameIteration) else []
    for write in reversed(own):
        if boxes.equals(batch.written[write]):
            batch.forwarded[position] = write
            return
        _require(not np.diagonal(boxes.meets(batch.written[write])).any())
    batch.reads[position] = boxes


# -- computing --------------------------------------------------------------------------------------------------------


def run(batch: LoopBatch, values: Values, compute: scan.Compute) -> None:
    """Compute the iterations after the first, in a traced program; arguments as in `scan.run`."""
    import jax

    loop = batch.loop
    # The arrays that are written to, as the first iteration (computed as it stands) leaves them.
    before = {position: values.fetch(loop.first[chain[-1]]) for chain in batch.chains for position in chain}
    values.ensure(loop.from_outside())

    def base_of(position: int) -> Any:
        operand = loop.rows[position][0]
        return before[operand.position] if isinstance(operand, (SameIteration, Carried)) else values.fetch(operand.leaf)  # type: ignore[union-attr]

    stacked = {position: boxes.read(base_of(position)) for position, boxes in batch.reads.items()}
    tables = {
        key: _table(operand, values)
        for key, operand in loop.numbered_operands()
        if isinstance(operand, (Table, MovingRead, Stacked))
    }
    kept = [position for position in {*loop.carried, *loop.collected} if position not in batch.written]
    written = [position for position in batch.written if position not in batch.dropped]

    def body(read: dict[int, Any], entries: dict[tuple[int, int], Any]) -> Any:
        own = _iteration(batch, read, entries, values, compute)
        return {position: own[position] for position in kept}, {position: own[position] for position in written}

    # made: values that are used outside; new: what is written. Both of all iterations, along a first axis.
    made, new = jax.vmap(body, axis_size=loop.count)(stacked, tables)
    for chain in batch.chains:
        array = before[chain[0]]
        for position in chain:  # in the order of an iteration: the last write to an element stays
            if position in new:
                value = stored(new[position]) if loop.last[position].endangered else new[position]
                array = batch.written[position].write(array, value)
        values.set(loop.last[chain[-1]], array)
    for position in kept:
        if position in loop.collected:
            for k in range(1, loop.count):
                values.set_row(loop.iterations[k][position], made[position], k - 1)
        values.set(loop.last[position], made[position][-1])


def _iteration(
    batch: LoopBatch, read: dict[int, Any], entries: dict[tuple[int, int], Any], values: Values, compute: scan.Compute
) -> list[Any]:
    """Return the results of one iteration's operations.

    read: the results of its reads. entries: by operand, its entry in this iteration's tables (see
    `Loop.numbered_operands`).
    """
    own: list[Any] = []

    def resolved(position: int, place: int, operand: LoopOperand) -> Any:
        match operand:
            case SameIteration(earlier):
                return own[earlier]
            case Invariant(leaf):
                return values.fetch(leaf) if isinstance(leaf, Node) else leaf
            case _:
                return entries[position, place]

    for position, (node, operands) in enumerate(zip(batch.loop.operations, batch.loop.rows, strict=True)):
        if position in read:
            own.append(read[position])
        elif position in batch.forwarded:
            own.append(own[batch.forwarded[position]])
        elif position in batch.written:  # a write: the value stands for it until all iterations are written at once
            own.append(resolved(position, 2, operands[2]))
        else:
            own.append(compute(node, [resolved(position, place, operand) for place, operand in enumerate(operands)]))
    return own


def _table(operand: Table | MovingRead | Stacked, values: Values) -> Any:
    """Return an operand's values in all iterations: (iterations, ...)."""
    if isinstance(operand, MovingRead):
        return operand.at.read(values.fetch(operand.base))
    return scan.looked_up(operand, values)
