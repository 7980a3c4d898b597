"""Batching: a rolled loop whose rounds do not depend on one another is computed at once, along a new first axis.

`for i in range(n): out[i] = f(a[i])` is one vectorized `f`. Rounds may read and write parts of the same arrays: each
read must see what was there before the loop, or what its own round wrote; and no two rounds may write to one place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
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
    filled,
    is_box_read,
)
from accel.rules import core, fusion

LARGEST = 1 << 17
"""Elements that a value may have, all rounds together: what a core's cache holds. Beyond, the loop is the better way:
ten bands of 121x240 take 4 ms round by round, and 9 at once."""

MOST_ROUNDS = 4096
"""Rounds whose places are compared, each with each: 16 million pairs for each two writes."""


@dataclass(slots=True)
class Batch:
    """A loop to compute at once.

    A *thread* is all writes to one array. What the rounds read is read for all of them at once, before; what they write
    is written for all at once, afterwards.

    reads: by place, the boxes of arrays from outside the loop, or of threads, as they were before it. forwarded: reads
    of what the same round wrote, by place: the place of that write. sites: by place of each write, where; dropped:
    writes that a later one of the round covers. threads: places of the writes to one array, in order.
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
    writes = [place for place, node in enumerate(operations) if node.rule is core.WRITE]
    sites = {place: _site(loop, place) for place in writes}
    threads = _threads(loop, writes)
    batch = Batch(loop, {}, {}, sites, set(), threads)
    for thread in threads:
        _check_writes(batch, thread)
    for place, node in enumerate(operations):
        _check_uses(batch, place, node)
    # There are no versions of an array in between: only its last may be used outside.
    lasts = {thread[-1] for thread in threads}
    _require(not set(writes) & set(loop.collected))
    _require(all(place in lasts for place in writes if place in loop.carried))
    return batch


def _site(loop: Loop, place: int) -> MovingBox:
    """The boxes that a read or write looks at in each round."""
    node, operand = loop.rounds[1][place], loop.rows[place][1]
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
    for place in writes:
        base = loop.rows[place][0]
        if isinstance(base, SameRound):
            _require(any(thread[-1] == base.place for thread in threads))
            next(thread for thread in threads if thread[-1] == base.place).append(place)
        else:
            _require(isinstance(base, Carried))
            threads.append([place])
    # The first write of a round goes on from the last of the round before: to the same array.
    for thread in threads:
        _require(loop.rows[thread[0]][0] == Carried(thread[-1]))
    return threads


def _check_writes(batch: Batch, thread: list[int]) -> None:
    """Two rounds must not write to one place. Two writes of one round must be disjoint, or one cover the other."""
    for i, earlier in enumerate(thread):
        for later in thread[i:]:
            # (rounds, rounds). Off the diagonal: another round's.
            meets = batch.sites[earlier].meets(batch.sites[later])
            own = np.diagonal(meets)
            _require(not meets[~np.eye(len(own), dtype=bool)].any())
            if earlier != later and own.any():
                _require(batch.sites[earlier].equals(batch.sites[later]))
                batch.dropped.add(earlier)


def _check_uses(batch: Batch, place: int, node: Node) -> None:
    """What an operation takes from other rounds, or from arrays that the loop writes to."""
    operands = batch.loop.rows[place]
    reads = is_box_read(node) or node.rule is core.WRITE
    for i, operand in enumerate(operands):
        if isinstance(operand, (SameRound, Carried)) and operand.place in batch.sites:
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
    if isinstance(base, (SameRound, Carried)) and base.place in batch.sites:
        _check_read(batch, place, base)
    elif isinstance(operands[1], MovingBox):
        _require(isinstance(base, Invariant))
        batch.reads[place] = _site(batch.loop, place)


def _check_read(batch: Batch, place: int, base: SameRound | Carried) -> None:
    """A read of an array that the loop writes to: of what was there before the loop, or of its own round's value."""
    site = _site(batch.loop, place)
    thread = next(thread for thread in batch.threads if base.place in thread)
    _require(isinstance(base, SameRound) or base.place == thread[-1])
    # No earlier round may have written there. Later ones may: the read is made before all writes.
    for write in thread:
        earlier = site.meets(batch.sites[write])
        _require(not np.tril(earlier, -1).any())
    # Of the own round's writes before the read, the last one that meets it must be the same box: its value is read.
    own = thread[: thread.index(base.place) + 1] if isinstance(base, SameRound) else []
    for write in reversed(own):
        if site.equals(batch.sites[write]):
            batch.forwarded[place] = write
            return
        _require(not np.diagonal(site.meets(batch.sites[write])).any())
    batch.reads[place] = site


# -- computing --------------------------------------------------------------------------------------------------------


def run(batch: Batch, values: Any, compute: Callable[[Node, Any, Any], Any]) -> None:
    """Compute the rounds after the first, in a traced program; arguments as in `scan.run`."""
    import jax

    loop = batch.loop
    rounds, count = loop.rounds, len(loop.rounds) - 1
    # The arrays that are written to, as the first round (computed as it stands) leaves them.
    before = {place: values.fetch(rounds[0][thread[-1]]) for thread in batch.threads for place in thread}
    values.ensure(loop.from_outside())

    def base_of(place: int) -> Any:
        operand = loop.rows[place][0]
        return before[operand.place] if isinstance(operand, (SameRound, Carried)) else values.fetch(operand.leaf)  # type: ignore[union-attr]

    stacked = {place: site.read(base_of(place)) for place, site in batch.reads.items()}
    tables = [_table(operand, values) for operand in _looked_up(batch)]
    kept = [place for place in {*loop.carried, *loop.collected} if place not in batch.sites]
    written = [place for place in batch.sites if place not in batch.dropped]

    def body(read: dict[int, Any], entries: list[Any]) -> Any:
        own = _round(batch, read, iter(entries), values, compute)
        return {place: own[place] for place in kept}, {place: own[place] for place in written}

    # made: values that are used outside; new: what is written. Both of all rounds, along a first axis.
    made, new = jax.vmap(body, axis_size=count)(stacked, tables)
    for thread in batch.threads:
        array = before[thread[0]]
        for place in thread:  # in the order of a round: the last write to a place stays
            if place in new:
                value = fusion.snapshot(new[place]) if rounds[-1][place].endangered else new[place]
                array = batch.sites[place].write(array, value)
        values.set(rounds[-1][thread[-1]], array)
    for place in kept:
        if place in loop.collected:
            for k in range(1, count):
                values.set_row(rounds[k][place], made[place], k - 1)
        values.set(rounds[-1][place], made[place][-1])


def _round(
    batch: Batch,
    read: dict[int, Any],
    looked_up: Iterator[Any],
    values: object,
    compute: Callable[[Node, Any, Any], Any],
) -> list[Any]:
    """What the operations of one round give. read: what its reads do; looked_up: what differs from round to round."""
    own: list[Any] = []
    loop = batch.loop
    for place, (node, operands) in enumerate(zip(loop.rounds[1], loop.rows, strict=True)):
        if place in read:
            own.append(read[place])
        elif place in batch.forwarded:
            own.append(own[batch.forwarded[place]])
        elif place in batch.sites:  # a write: the value stands for it until all rounds are written at once
            own.append(_resolve(operands[2], own, values, looked_up))
        else:
            given = iter([_resolve(operand, own, values, looked_up) for operand in operands])
            own.append(compute(node, *filled((node.args, node.kwargs), given)))
    return own


def _looked_up(batch: Batch) -> Iterator[LoopOperand]:
    """The relations that differ from round to round, in the order in which the body asks for them."""
    for place, operands in enumerate(batch.loop.rows):
        if place not in batch.reads and place not in batch.forwarded:
            for operand in operands[2:] if place in batch.sites else operands:
                if isinstance(operand, (Table, MovingRead, Stacked)):
                    yield operand


def _table(operand: LoopOperand, values: Any) -> Any:
    if isinstance(operand, (Table, Stacked)):
        return scan.looked_up(operand, values)
    assert isinstance(operand, MovingRead)
    return operand.at.read(values.fetch(operand.base))


def _resolve(operand: LoopOperand, own: list[Any], values: Any, looked_up: Iterator[Any]) -> Any:
    match operand:
        case SameRound(place):
            return own[place]
        case Invariant(leaf):
            return values.fetch(leaf) if isinstance(leaf, Node) else leaf
        case _:
            return next(looked_up)
