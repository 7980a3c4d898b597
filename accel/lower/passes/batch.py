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
from accel.ir.views import Box, Index, box_of
from accel.lower.passes import reroll
from accel.lower.passes.reroll import Before, Boxes, Loop, Own, Reads, Relation, Same, Stacked, Table
from accel.rules import core, fusion

LARGEST = 1 << 17
"""Elements that a value may have, all rounds together: what a core's cache holds. Beyond, the loop is the better way:
ten bands of 121x240 take 4 ms round by round, and 9 at once."""

MOST_ROUNDS = 4096
"""Rounds whose places are compared, each with each."""


@dataclass(frozen=True, slots=True)
class MovingBox:
    """Where the rounds read or write a box. starts: (rounds, axes)."""

    starts: Any
    box: Box

    def meets(self, other: MovingBox) -> Any:
        """(rounds, rounds): whether this box of one round and the other's of another have elements in common."""
        mine, theirs = self.starts[:, None, :], other.starts[None, :, :]
        return ((mine < theirs + other.box.sizes) & (theirs < mine + self.box.sizes)).all(axis=2)

    def equals(self, other: MovingBox) -> bool:
        same_form = (self.box.sizes, self.box.given) == (other.box.sizes, other.box.given)
        return same_form and bool((self.starts == other.starts).all())

    @property
    def moving(self) -> tuple[int, ...]:
        """The axes along which the box moves."""
        return tuple(np.flatnonzero((self.starts != self.starts[0]).any(axis=0)).tolist())

    def is_simple(self) -> bool:
        return all(self.box.sizes[axis] == 1 for axis in self.moving)

    def read(self, base: Any) -> Any:
        """The boxes of all rounds, stacked: (rounds, *given)."""
        from jax import numpy as jnp

        found = self._front(base)[self._key()]
        if not self.moving:
            return jnp.broadcast_to(found.reshape(self.box.given), (len(self.starts), *self.box.given))
        return found.reshape((len(self.starts), *self.box.given))

    def write(self, base: Any, values: Any) -> Any:
        """The array with the values of all rounds, (rounds, *given), in their boxes."""
        from jax import numpy as jnp

        rest = [size for axis, size in enumerate(self.box.sizes) if axis not in self.moving]
        values = values.reshape((len(self.starts), *rest))
        if self._is_block():
            (axis,) = self.moving
            forward = values if self.starts[0, axis] < self.starts[-1, axis] else values[::-1]
            block = jnp.moveaxis(forward, 0, axis)
            return Box(tuple(self.starts.min(axis=0).tolist()), block.shape, block.shape).write(base, block)
        moved = self._front(base).at[self._key()].set(values)
        return jnp.moveaxis(moved, range(len(self.moving)), self.moving)

    def _is_block(self) -> bool:
        """Whether the boxes lie side by side, in order or in reverse."""
        if len(self.moving) != 1:
            return False
        steps = np.diff(self.starts[:, self.moving[0]])
        return bool((steps == 1).all() or (steps == -1).all())

    def _front(self, base: Any) -> Any:
        from jax import numpy as jnp

        return jnp.moveaxis(base, self.moving, range(len(self.moving)))

    def _key(self) -> tuple[Any, ...]:
        first = self.starts[0]
        rest = [
            slice(int(first[axis]), int(first[axis]) + size)
            for axis, size in enumerate(self.box.sizes)
            if axis not in self.moving
        ]
        return (*_positions([self.starts[:, axis] for axis in self.moving]), *rest)


def _positions(columns: list[Any]) -> list[Any]:
    """Indices along the moving axes: a slice where one axis moves evenly, which is much faster."""
    if len(columns) == 1:
        column = columns[0]
        steps = np.unique(np.diff(column))
        if len(steps) == 1 and steps[0]:
            step, stop = int(steps[0]), int(column[-1]) + int(steps[0])
            return [slice(int(column[0]), stop if stop >= 0 else None, step)]
    return columns


@dataclass(slots=True)
class Batch:
    """A loop to compute at once.

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


def _require(truth: Any) -> None:
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
    lasts = {thread[-1] for thread in threads}
    _require(not set(writes) & set(loop.collected))
    _require(all(place in lasts for place in writes if place in loop.carried))
    return batch


def _site(loop: Loop, place: int) -> MovingBox:
    """The boxes that a read or write looks at in each round."""
    node, relation = loop.rounds[1][place], loop.relations[place][1]
    count = len(loop.rounds) - 1
    if isinstance(relation, Boxes):
        site = MovingBox(relation.starts, relation.box)
    else:
        _require(isinstance(relation, Same) and isinstance(relation.leaf, Index))
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
        base = loop.relations[place][0]
        if isinstance(base, Own):
            _require(any(thread[-1] == base.place for thread in threads))
            next(thread for thread in threads if thread[-1] == base.place).append(place)
        else:
            _require(isinstance(base, Before))
            threads.append([place])
    for thread in threads:
        _require(loop.relations[thread[0]][0] == Before(thread[-1]))
    return threads


def _check_writes(batch: Batch, thread: list[int]) -> None:
    """Two rounds must not write to one place. Two writes of one round must be disjoint, or one cover the other."""
    for i, earlier in enumerate(thread):
        for later in thread[i:]:
            meets = batch.sites[earlier].meets(batch.sites[later])
            own = np.diagonal(meets)
            _require(not meets[~np.eye(len(own), dtype=bool)].any())
            if earlier != later and own.any():
                _require(batch.sites[earlier].equals(batch.sites[later]))
                batch.dropped.add(earlier)


def _check_uses(batch: Batch, place: int, node: Node) -> None:
    """What an operation takes from other rounds, or from arrays that the loop writes to."""
    relations = batch.loop.relations[place]
    reads = reroll.is_box_read(node) or node.rule is core.WRITE
    for i, relation in enumerate(relations):
        if isinstance(relation, (Own, Before)) and relation.place in batch.sites:
            _require(reads and i == 0)
        else:
            _require(not isinstance(relation, Before))
        if isinstance(relation, Boxes):
            _require(reads and i == 1)
        if isinstance(relation, Reads):
            _require(MovingBox(relation.starts, relation.box).is_simple())
    if not reroll.is_box_read(node):
        return
    base = relations[0]
    if isinstance(base, (Own, Before)) and base.place in batch.sites:
        _check_read(batch, place, base)
    elif isinstance(relations[1], Boxes):
        _require(isinstance(base, Same))
        batch.reads[place] = _site(batch.loop, place)


def _check_read(batch: Batch, place: int, base: Own | Before) -> None:
    """A read of an array that the loop writes to: of what was there before the loop, or of its own round's value."""
    site = _site(batch.loop, place)
    thread = next(thread for thread in batch.threads if base.place in thread)
    _require(isinstance(base, Own) or base.place == thread[-1])
    for write in thread:
        earlier = site.meets(batch.sites[write])
        _require(not np.tril(earlier, -1).any())
    own = thread[: thread.index(base.place) + 1] if isinstance(base, Own) else []
    for write in reversed(own):
        if site.equals(batch.sites[write]):
            batch.forwarded[place] = write
            return
        _require(not np.diagonal(site.meets(batch.sites[write])).any())
    batch.reads[place] = site


# -- computing --------------------------------------------------------------------------------------------------------


def run(batch: Batch, values: Any, compute: Callable[[Node, Any, Any], Any]) -> None:
    """Compute the rounds after the first, in a traced program; arguments as in `roll.run`."""
    import jax

    loop = batch.loop
    rounds, count = loop.rounds, len(loop.rounds) - 1
    before = {place: values[rounds[0][thread[-1]]] for thread in batch.threads for place in thread}
    for leaf in reroll.from_outside(loop):
        values[leaf]

    def base_of(place: int) -> Any:
        relation = loop.relations[place][0]
        return before[relation.place] if isinstance(relation, (Own, Before)) else values[relation.leaf]  # type: ignore[union-attr]

    stacked = {place: site.read(base_of(place)) for place, site in batch.reads.items()}
    tables = [_table(relation, values) for relation in _looked_up(batch)]
    kept = [place for place in {*loop.carried, *loop.collected} if place not in batch.sites]
    written = [place for place in batch.sites if place not in batch.dropped]

    def body(read: dict[int, Any], entries: list[Any]) -> Any:
        own = _round(batch, read, iter(entries), values, compute)
        return {place: own[place] for place in kept}, {place: own[place] for place in written}

    made, new = jax.vmap(body, axis_size=count)(stacked, tables)
    for thread in batch.threads:
        array = before[thread[0]]
        for place in thread:
            if place in new:
                value = fusion.taken(new[place]) if rounds[-1][place].endangered else new[place]
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
    values: Any,
    compute: Callable[[Node, Any, Any], Any],
) -> list[Any]:
    """What the operations of one round give. read: what its reads do; looked_up: what differs from round to round."""
    own: list[Any] = []
    loop = batch.loop
    for place, (node, relations) in enumerate(zip(loop.rounds[1], loop.relations, strict=True)):
        if place in read:
            own.append(read[place])
        elif place in batch.forwarded:
            own.append(own[batch.forwarded[place]])
        elif place in batch.sites:
            own.append(_resolve(relations[2], own, values, looked_up))
        else:
            filled = iter([_resolve(relation, own, values, looked_up) for relation in relations])
            own.append(compute(node, *reroll.filled((node.args, node.kwargs), filled)))
    return own


def _looked_up(batch: Batch) -> Iterator[Relation]:
    """The relations that differ from round to round, in the order in which the body asks for them."""
    for place, relations in enumerate(batch.loop.relations):
        if place not in batch.reads and place not in batch.forwarded:
            for relation in relations[2:] if place in batch.sites else relations:
                if isinstance(relation, (Table, Reads, Stacked)):
                    yield relation


def _table(relation: Relation, values: Any) -> Any:
    if isinstance(relation, (Table, Stacked)):
        return reroll.looked_up(relation, values)
    assert isinstance(relation, Reads)
    return MovingBox(relation.starts, relation.box).read(values[relation.base])


def _resolve(relation: Relation, own: list[Any], values: Any, looked_up: Iterator[Any]) -> Any:
    match relation:
        case Own(place):
            return own[place]
        case Same(leaf):
            return values[leaf] if isinstance(leaf, Node) else leaf
        case _:
            return next(looked_up)
