"""Batching: a rolled loop whose rounds do not depend on one another is computed at once, along a new first axis.

`for i in range(n): out[i] = f(a[i])` is one vectorized `f`. Rounds may read and write parts of the same arrays: each
read must see what was there before the loop, or what its own round wrote; and no two rounds may write to one element.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.ir.views import Index, box_of
from accel.lower.passes.loops import scan
from accel.lower.passes.loops.loop import Loop
from accel.lower.passes.loops.moving_box import MovingBox
from accel.lower.passes.loops.operands import (
    Carried,
    Invariant,
    LoopOperand,
    MovingRead,
    SameRound,
    Stacked,
    Table,
    is_box_read,
)
from accel.lower.passes.value_store import Compute, ValueStore
from accel.rules import core, fusion

LARGEST = 1 << 17
"""Elements that a value may have, all rounds together: what a core's cache holds. Beyond, the loop is the better way:
ten bands of 121x240 take 4 ms round by round, and 9 at once."""

MOST_ROUNDS = 4096
"""Rounds whose boxes are compared, each with each: 16 million pairs for each two writes."""


@dataclass(slots=True)
class Batch:
    """A loop to compute at once.

    A *thread* is all writes to one array. What the rounds read is read for all of them at once, before; what they write
    is written for all at once, afterwards.

    reads: by position, the boxes of arrays from outside the loop, or of threads, as they were before it. forwarded:
    reads of what the same round wrote, by position: the position of that write. sites: by position of each write,
    where; dropped: writes that a later one of the round covers. threads: positions of the writes to one array, in
    order.
    """

    loop: Loop
    reads: dict[int, MovingBox]
    forwarded: dict[int, int]
    sites: dict[int, MovingBox]
    dropped: set[int]
    threads: list[list[int]]


class _Dependent(Exception):
    """The rounds depend on one another, or in a way that is not looked into."""


def plan(loop: Loop) -> Batch | None:
    """How to compute a loop at once, or None."""
    try:
        return _plan(loop)
    except _Dependent:
        return None


def _require(truth: bool) -> None:
    if not truth:
        raise _Dependent


def _plan(loop: Loop) -> Batch:
    operations, count = loop.rounds[1], len(loop.rounds) - 1
    _require(count <= MOST_ROUNDS)
    _require(all(count * math.prod(node.shape) <= LARGEST for node in operations if node.rule is not core.WRITE))
    writes = [position for position, node in enumerate(operations) if node.rule is core.WRITE]
    sites = {position: _site(loop, position) for position in writes}
    threads = _threads(loop, writes)
    batch = Batch(loop, {}, {}, sites, set(), threads)
    for thread in threads:
        _check_writes(batch, thread)
    for position, node in enumerate(operations):
        _check_uses(batch, position, node)
    # There are no versions of an array in between: only its last may be used outside.
    lasts = {thread[-1] for thread in threads}
    _require(not set(writes) & set(loop.collected))
    _require(all(position in lasts for position in writes if position in loop.carried))
    return batch


def _site(loop: Loop, position: int) -> MovingBox:
    """The boxes that a read or write looks at in each round."""
    node, operand = loop.rounds[1][position], loop.rows[position][1]
    count = len(loop.rounds) - 1
    if isinstance(operand, MovingBox):
        site = operand
    else:  # the same place in every round
        _require(isinstance(operand, Invariant) and isinstance(operand.leaf, Index))
        box = box_of(node.args[0].shape, node.args[1].key)
        _require(box is not None)
        assert box is not None
        site = MovingBox(np.repeat(np.array([box.starts], np.int32).reshape(1, -1), count, axis=0), box)
    _require(site.is_simple())
    return site


def _threads(loop: Loop, writes: list[int]) -> list[list[int]]:
    """The writes of a round, those to one array together: each goes on from the one before."""
    threads: list[list[int]] = []
    for position in writes:
        base = loop.rows[position][0]
        if isinstance(base, SameRound):
            _require(any(thread[-1] == base.position for thread in threads))
            next(thread for thread in threads if thread[-1] == base.position).append(position)
        else:
            _require(isinstance(base, Carried))
            threads.append([position])
    # The first write of a round goes on from the last of the round before: to the same array.
    for thread in threads:
        _require(loop.rows[thread[0]][0] == Carried(thread[-1]))
    return threads


def _check_writes(batch: Batch, thread: list[int]) -> None:
    """Two rounds must not write to one element. Two writes of one round must be disjoint, or one cover the other."""
    for i, earlier in enumerate(thread):
        for later in thread[i:]:
            # (rounds, rounds). Off the diagonal: another round's.
            meets = batch.sites[earlier].meets(batch.sites[later])
            own = np.diagonal(meets)
            _require(not meets[~np.eye(len(own), dtype=bool)].any())
            if earlier != later and own.any():
                _require(batch.sites[earlier].equals(batch.sites[later]))
                batch.dropped.add(earlier)


def _check_uses(batch: Batch, position: int, node: Node) -> None:
    """What an operation takes from other rounds, or from arrays that the loop writes to."""
    operands = batch.loop.rows[position]
    reads = is_box_read(node) or node.rule is core.WRITE
    for i, operand in enumerate(operands):
        if isinstance(operand, (SameRound, Carried)) and operand.position in batch.sites:
            _require(reads and i == 0)  # an array that the loop writes to: only parts of it are followed
        else:
            _require(not isinstance(operand, Carried))  # any other value of the round before: rounds in order
        if isinstance(operand, MovingBox):
            _require(reads and i == 1)
        if isinstance(operand, MovingRead):
            _require(operand.at.is_simple())
    if not is_box_read(node):
        return
    base = operands[0]
    if isinstance(base, (SameRound, Carried)) and base.position in batch.sites:
        _check_read(batch, position, base)
    elif isinstance(operands[1], MovingBox):
        _require(isinstance(base, Invariant))
        batch.reads[position] = _site(batch.loop, position)


def _check_read(batch: Batch, position: int, base: SameRound | Carried) -> None:
    """A read of an array that the loop writes to: of what was there before the loop, or of its own round's value."""
    site = _site(batch.loop, position)
    thread = next(thread for thread in batch.threads if base.position in thread)
    _require(isinstance(base, SameRound) or base.position == thread[-1])
    # No earlier round may have written there. Later ones may: the read is made before all writes.
    for write in thread:
        earlier = site.meets(batch.sites[write])
        _require(not np.tril(earlier, -1).any())
    # Of the own round's writes before the read, the last one that meets it must be the same box: its value is read.
    own = thread[: thread.index(base.position) + 1] if isinstance(base, SameRound) else []
    for write in reversed(own):
        if site.equals(batch.sites[write]):
            batch.forwarded[position] = write
            return
        _require(not np.diagonal(site.meets(batch.sites[write])).any())
    batch.reads[position] = site


# -- computing --------------------------------------------------------------------------------------------------------


def run(batch: Batch, values: ValueStore, compute: Compute) -> None:
    """Compute the rounds after the first, in a traced program; arguments as in `scan.run`."""
    import jax

    loop = batch.loop
    rounds, count = loop.rounds, len(loop.rounds) - 1
    # The arrays that are written to, as the first round (computed as it stands) leaves them.
    before = {position: values.fetch(rounds[0][thread[-1]]) for thread in batch.threads for position in thread}
    values.ensure(loop.from_outside())

    def base_of(position: int) -> Any:
        operand = loop.rows[position][0]
        return before[operand.position] if isinstance(operand, (SameRound, Carried)) else values.fetch(operand.leaf)  # type: ignore[union-attr]

    stacked = {position: site.read(base_of(position)) for position, site in batch.reads.items()}
    tables = [_table(operand, values) for operand in _looked_up(batch)]
    kept = [position for position in {*loop.carried, *loop.collected} if position not in batch.sites]
    written = [position for position in batch.sites if position not in batch.dropped]

    def body(read: dict[int, Any], entries: list[Any]) -> Any:
        own = _round(batch, read, iter(entries), values, compute)
        return {position: own[position] for position in kept}, {position: own[position] for position in written}

    # made: values that are used outside; new: what is written. Both of all rounds, along a first axis.
    made, new = jax.vmap(body, axis_size=count)(stacked, tables)
    for thread in batch.threads:
        array = before[thread[0]]
        for position in thread:  # in the order of a round: the last write to an element stays
            if position in new:
                value = fusion.snapshot(new[position]) if rounds[-1][position].endangered else new[position]
                array = batch.sites[position].write(array, value)
        values.set(rounds[-1][thread[-1]], array)
    for position in kept:
        if position in loop.collected:
            for k in range(1, count):
                values.set_row(rounds[k][position], made[position], k - 1)
        values.set(rounds[-1][position], made[position][-1])


def _round(
    batch: Batch,
    read: dict[int, Any],
    looked_up: Iterator[Any],
    values: ValueStore,
    compute: Compute,
) -> list[Any]:
    """What the operations of one round give. read: what its reads do; looked_up: what differs from round to round."""
    own: list[Any] = []
    loop = batch.loop
    for position, (node, operands) in enumerate(zip(loop.rounds[1], loop.rows, strict=True)):
        if position in read:
            own.append(read[position])
        elif position in batch.forwarded:
            own.append(own[batch.forwarded[position]])
        elif position in batch.sites:  # a write: the value stands for it until all rounds are written at once
            own.append(_resolve(operands[2], own, values, looked_up))
        else:
            own.append(compute(node, [_resolve(operand, own, values, looked_up) for operand in operands]))
    return own


def _looked_up(batch: Batch) -> Iterator[LoopOperand]:
    """The relations that differ from round to round, in the order in which the body asks for them."""
    for position, operands in enumerate(batch.loop.rows):
        if position not in batch.reads and position not in batch.forwarded:
            for operand in operands[2:] if position in batch.sites else operands:
                if isinstance(operand, (Table, MovingRead, Stacked)):
                    yield operand


def _table(operand: LoopOperand, values: ValueStore) -> Any:
    if isinstance(operand, (Table, Stacked)):
        return scan.looked_up(operand, values)
    assert isinstance(operand, MovingRead)
    return operand.at.read(values.fetch(operand.base))


def _resolve(operand: LoopOperand, own: list[Any], values: ValueStore, looked_up: Iterator[Any]) -> Any:
    match operand:
        case SameRound(position):
            return own[position]
        case Invariant(leaf):
            return values.fetch(leaf) if isinstance(leaf, Node) else leaf
        case _:
            return next(looked_up)
