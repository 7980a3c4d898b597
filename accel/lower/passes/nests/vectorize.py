"""Rounds vectorized: an innermost block of a nest whose rounds do not depend on one another is computed at once.

`for i in range(n): for j in range(m): b[i, j] += a[i, :i] @ b[:i, j]` has rounds of `j` that may be computed in any
order: each writes to elements of its own and reads what none of the others writes. `jax.vmap` over the rounds makes the
product of a row and a matrix of them. Boxes that move along one axis by one element from round to round are taken out
of their array, and put back, as one box: gathering and scattering them would take as long as round after round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.lower.passes.nests.layouts import Computed, Cut, Frame
from accel.lower.passes.nests.nest import Block, Nest, Register, Site

if TYPE_CHECKING:
    from jax import Array

# No measurement is known of the numbers below but what their texts say.

FEW = 4
"""Fewer rounds than this are computed one by one: vectors of two or three gain little."""

LARGEST_VECTOR = 1 << 19
"""Elements that a value may have, all rounds together: 4 MiB of float64. Round by round it stays in a cache. (Rolled
loops have a smaller limit, by a measurement: `LARGEST_BATCH`.)"""

MOST_PAIRS = 1 << 22
"""Pairs of rounds whose boxes are compared, where the rounds' boxes do not lie one after the other. Limits the memory
and time of planning: each pair is an element, for each axis, of arrays that NumPy makes."""

GATHERED = 1 << 12
"""Elements, all rounds together, that one use may gather: a gather takes them one by one, without vectors."""

GATHERED_EACH = 32
"""Elements of each round that one use may gather, however many rounds: so few cost less than the rounds of a loop."""


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A use of an array in a block. register: None where no round writes to the array, which `array` gives then.

    cut: None for all of it. write: the site that writes there in place; None for a read.
    """

    register: Register | None
    cut: Cut | None
    write: Site | None = None
    array: Computed | None = None


@dataclass(frozen=True, slots=True)
class Motion:
    """How a box moves from round to round: by one element along an axis, forward or backward."""

    rounds: int
    axis: int
    forward: bool

    def take(self, array: Array, cut: Cut, ends: tuple[Frame, Frame]) -> Any:
        """The boxes of all rounds: (rounds, *boxes without the axis)."""
        from jax import lax
        from jax import numpy as jnp

        whole = lax.dynamic_slice(array, self._corner(cut, ends), self._sizes(cut))
        return self._turned(jnp.moveaxis(whole, self.axis, 0))

    def put(self, array: Array, cut: Cut, ends: tuple[Frame, Frame], value: Array, mask: Array | None) -> Any:
        """The array with the values of all rounds, (rounds, *layout), in their boxes, where `mask` says so."""
        from jax import lax
        from jax import numpy as jnp

        sizes, corner = self._sizes(cut), self._corner(cut, ends)

        def whole(boxes: Array) -> Any:
            boxes = self._turned(boxes).reshape([self.rounds, *np.delete(sizes, self.axis)])
            return jnp.moveaxis(boxes, 0, self.axis)

        new = whole(value)
        if mask is not None:
            new = jnp.where(whole(mask), new, lax.dynamic_slice(array, corner, sizes))
        return lax.dynamic_update_slice(array, new, corner)

    def _sizes(self, cut: Cut) -> list[int]:
        return [self.rounds if axis == self.axis else size for axis, size in enumerate(cut.box_sizes)]

    def _corner(self, cut: Cut, ends: tuple[Frame, Frame]) -> list[Any]:
        return cut.corner(ends[0] if self.forward else ends[1])

    def _turned(self, boxes: Array) -> Any:
        return boxes if self.forward else boxes[::-1]


@dataclass(frozen=True, slots=True)
class Vectorized:
    """How to compute a block's rounds at once.

    rounds: how many, whenever the block is entered. uses: those whose boxes move, with how. owned: the registers that
    the rounds write to. last: those of which the last round's value is used afterwards.
    """

    rounds: int
    uses: list[tuple[Use, Motion]]
    owned: frozenset[Register]
    last: list[Register]


# -- whether it can be done -------------------------------------------------------------------------------------------


def plan(
    block: Block, uses: Sequence[Use], carried: Sequence[Register], exposed: set[Register], widest: int
) -> Vectorized | None:
    """How to compute a block's rounds at once; None where they depend on one another, or where it does not pay.

    uses: what its rounds read and write, in order. carried: the registers that a loop over them would carry; exposed:
    what a round may take from before it. widest: elements of the largest value that a round makes.
    """
    # A program has fixed shapes: as many rounds whenever the block is entered.
    rounds = block.trips[0]
    if rounds < FEW or set(block.trips) != {rounds}:
        return None
    moving = [use.cut for use in uses if use.cut is not None and _moves(use.cut, rounds)]
    if rounds * max(widest, *(int(np.prod(cut.box_sizes)) for cut in moving), 0) > LARGEST_VECTOR:
        return None
    # The registers that the rounds write to: those written in place only hold arrays that the rounds share (`owned`),
    # the others values of a single round.
    sites = list(block.sites())
    written = {site.register for site in sites}
    in_place = {use.write for use in uses}
    owned = written - {site.register for site in sites if site not in in_place}
    last = sorted(set(carried) - owned)
    # A round that takes such a value from the one before cannot be computed at the same time. And of an array that all
    # rounds share there are no versions to collect.
    if exposed.intersection(last) or any(site.collected and site.register in owned for site in sites):
        return None
    if not all(_is_independent([use for use in uses if use.register == register], rounds) for register in owned):
        return None
    # Boxes that move evenly are taken and put back as one box. Of other reads `vmap` makes gathers, which may cost more
    # than the rounds one by one; other writes cannot be put back.
    motions = []
    for use in uses:
        if use.cut is None or (use.register in written and use.register not in owned):
            continue  # no part of an array, or of a value that the round computes itself
        motion = _motion(use.cut, rounds)
        if motion is not None:
            motions.append((use, motion))
        elif use.write is not None or (
            _moves(use.cut, rounds) and _costs_more(rounds, int(np.prod(use.cut.box_sizes)))
        ):
            return None
    return Vectorized(rounds, motions, frozenset(owned), last)


def _is_independent(uses: Sequence[Use], rounds: int) -> bool:
    """Whether no round uses what another writes, and each reads of its own writes either all or nothing."""
    writes: list[Cut] = []
    for use in uses:
        if use.cut is None:
            return False
        if use.write is not None:
            writes.append(use.cut)
            continue
        for write in reversed(writes):
            if use.cut.equals(write):  # the value itself; writes before do not matter
                break
            if not use.cut.disjoint(write):
                return False
    return not any(_meet(write, use.cut, rounds) for write in writes for use in uses if use.cut is not None)


def _costs_more(rounds: int, size: int) -> bool:
    """Whether boxes of that size are better read round by round than gathered."""
    return size > GATHERED_EACH and rounds * size > GATHERED


def _meet(one: Cut, other: Cut, rounds: int) -> bool:
    """Whether a box of one round and the other's of another round have elements in common that count."""
    (first, end), (other_first, other_end) = _ends(one, rounds), _ends(other, rounds)
    # The usual case, without comparing pairs: if the hulls of both boxes, round by round, lie one after the other along
    # an axis, so do the boxes.
    if _in_turn(np.minimum(first, other_first), np.maximum(end, other_end)):
        return False
    if first.shape[0] * rounds * rounds > MOST_PAIRS:
        return True
    common = (first[:, :, None] < other_end[:, None]) & (other_first[:, None] < end[:, :, None])
    # An empty box has nothing in common with any. And what a round does to its own elements is not asked here.
    filled = (first < end).all(axis=2)[:, :, None] & (other_first < other_end).all(axis=2)[:, None]
    return bool((common.all(axis=3) & filled & ~np.eye(rounds, dtype=bool)).any())


def _ends(cut: Cut, rounds: int) -> tuple[Any, Any]:
    """Where boxes begin and end, both (entries, rounds, axes)."""
    first = cut.slice_starts.reshape(-1, rounds, cut.slice_starts.shape[1])
    return first, first + cut.slice_counts.reshape(first.shape)


def _in_turn(first: Any, end: Any) -> bool:
    """Whether along some axis what each round looks at ends where another's begins, or before. Both as in `_ends`."""
    order = np.argsort(first, axis=1, kind="stable")
    first, end = np.take_along_axis(first, order, axis=1), np.take_along_axis(end, order, axis=1)
    return bool((end[:, :-1] <= first[:, 1:]).all(axis=1).any(axis=1).all())


def _steps(cut: Cut, rounds: int) -> Any:
    """By how much a box moves from each round to the next: (entries, rounds - 1, axes)."""
    return np.diff(cut.box_starts.reshape(-1, rounds, cut.box_starts.shape[1]), axis=1)


def _moves(cut: Cut, rounds: int) -> bool:
    return bool(_steps(cut, rounds).any())


def _motion(cut: Cut, rounds: int) -> Motion | None:
    """How the boxes move; None if they do not, or otherwise."""
    steps = _steps(cut, rounds)
    axes = np.flatnonzero(steps.any(axis=(0, 1)))
    if len(axes) != 1 or cut.box_sizes[axes[0]] != 1:
        return None
    (axis,) = axes.tolist()
    for step in (1, -1):
        if (steps[:, :, axis] == step).all():
            return Motion(rounds, axis, step > 0)
    return None


# -- computing --------------------------------------------------------------------------------------------------------


def run(nest: Nest, block: Block, frame: Frame) -> None:
    """Compute all rounds of a block that is entered here."""
    import jax
    from jax import lax
    from jax import numpy as jnp

    found = nest.vectorized[block]
    ends = frame.inside(block, np.int32(0)), frame.inside(block, np.int32(found.rounds - 1))
    motions = {use.cut: motion for use, motion in found.uses}
    read = {
        use.cut: motion.take(_array(use, frame), use.cut, ends)
        for use, motion in found.uses
        if use.cut is not None and use.write is None
    }
    writes: list[tuple[Register, Cut]] = []  # as `round_` is traced: `vmap` can return arrays only

    def round_(k: Array, parts: list[Any]) -> Any:
        cuts = dict(zip(read, parts, strict=True))
        inner = frame.inside(block, k, owned=found.owned, cuts=cuts)
        collected = []
        for site in block.sites():
            inner.perform(site)
            if site.collected:
                collected.append(inner.flushed(site.register))
        pending = [(register, write) for register in sorted(found.owned) for write in inner.pending.get(register, ())]
        writes[:] = [(register, write.cut) for register, write in pending]
        made = [(write.value, write.mask) for _, write in pending]
        return made, collected, [inner.flushed(register) for register in found.last]

    values, columns, lasts = jax.vmap(round_)(jnp.arange(found.rounds, dtype=np.int32), list(read.values()))
    for (register, cut), (value, mask) in zip(writes, values, strict=True):
        frame.registers[register] = motions[cut].put(frame.registers[register], cut, ends, value, mask)
        frame.written.add(register)
    for register, value in zip(found.last, lasts, strict=True):
        frame.registers[register] = value[-1]
    for site, column in zip([site for site in block.sites() if site.collected], columns, strict=True):
        row = nest.rows[site].traced(ends[0])
        frame.columns[site] = lax.dynamic_update_slice_in_dim(frame.columns[site], column, row, 0)


def _array(use: Use, frame: Frame) -> Any:
    if use.register is None:
        assert use.array is not None
        return use.array(frame)
    return frame.flushed(use.register)
