"""Where the rounds of a nest find what they compute with: whole numbers, parts of arrays, registers.

A compiled program has fixed shapes. So a value has the largest shape of all rounds, and each round says which part of
it counts: from an *offset*, so many elements, along each axis: its `Layout`. A slice is read where the array has
enough elements for the largest; the offset says where in it the slice begins: a `Cut`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.ir.tape import Node
from accel.ir.views import Index, per_axis
from accel.lower.passes.nests.nest import Block, Carry, Irregular, Register, Site
from accel.lower.passes.value_store import ValueStore
from accel.rules import fusion


@dataclass(slots=True)
class Layout:
    """shape: as computed. lengths, offsets: what of it counts, (rounds, axes).

    `a[:i]` for i in 1, 2, 3 has shape (3,), lengths [[1], [2], [3]] and offsets 0.
    """

    shape: tuple[int, ...]
    lengths: Any
    offsets: Any

    def is_ragged(self, axis: int) -> bool:
        return bool((self.lengths[:, axis] != self.shape[axis]).any())

    @property
    def uniform(self) -> bool:
        return not any(map(self.is_ragged, range(len(self.shape))))

    @property
    def padded(self) -> list[int]:
        return [axis for axis in range(len(self.shape)) if self.is_ragged(axis)]


def even(shape: tuple[int, ...], rounds: int) -> Layout:
    lengths = np.tile(np.array(shape, int).reshape(1, -1), (rounds, 1))
    return Layout(shape, lengths, np.zeros_like(lengths))


def joined(axes: list[tuple[Layout, int]], rounds: int) -> Layout:
    """The layout that has these axes."""
    return Layout(
        tuple(layout.shape[axis] for layout, axis in axes),
        np.array([layout.lengths[:, axis] for layout, axis in axes], int).reshape(-1, rounds).T,
        np.array([layout.offsets[:, axis] for layout, axis in axes], int).reshape(-1, rounds).T,
    )


class RoundInt:
    """A whole number for each round of a block: start + step * (round of this entry), or else looked up.

    The starts are whole numbers for each round of the block around it: a `RoundInt` again. So the bounds of most loops
    are arithmetic on round counters, and need no table.

    values: one for each round, over all entries. known: where the number matters (default: everywhere); elsewhere any
    will do. tables: gets what has to be looked up.
    """

    def __init__(
        self,
        values: NDArray[Any] | list[Any],
        block: Block | None,
        tables: list[Any],
        known: NDArray[Any] | None = None,
    ) -> None:
        self.block = block
        values = np.asarray(values)
        known = np.ones(len(values), bool) if known is None else known
        self.constant = int(values[known][0]) if known.any() else 0
        self.is_constant = bool((values[known] == self.constant).all())
        self._table: Any = None
        self._start: RoundInt | None = None
        self._step = 0
        if self.is_constant or block is None:
            return
        trips = np.array(block.trips)
        # By entry of the block: the number of its first round. By round: its entry, and which round of that it is.
        begins = np.concatenate(([0], np.cumsum(trips)[:-1]))
        entry = np.repeat(np.arange(len(trips)), trips)
        rounds = np.arange(len(values)) - begins[entry]
        # The step, from any two neighbouring rounds of one entry; then whether all rounds of each entry agree with it.
        both = np.flatnonzero(known[1:] & known[:-1] & (entry[1:] == entry[:-1]))
        self._step = int(values[both[0] + 1] - values[both[0]]) if len(both) else 0
        starts = np.zeros(len(trips), np.int64)
        started = np.zeros(len(trips), bool)
        rest = values - self._step * rounds
        starts[entry[known]] = rest[known]
        started[entry[known]] = True
        if (starts[entry][known] == rest[known]).all():
            # A block has as many entries as the block around it has rounds. Without a known round any start will do.
            self._start = RoundInt(starts, block.parent, tables, started)
            return
        self._first = RoundInt(begins, block.parent, tables)
        self._table = values.astype(np.int32)
        tables.append(self._table)

    def traced(self, frame: Frame) -> Any:
        if self.is_constant or self.block is None:
            return np.int32(self.constant)
        if self._start is not None:
            return self._start.traced(frame) + np.int32(self._step) * frame.rounds[self.block]
        return frame.table(self._table)[self._first.traced(frame) + frame.rounds[self.block]]


@dataclass(slots=True, eq=False)
class Cut:
    """What a slice takes of an array in each round: boxes of one size, of which a part counts.

    XLA's slices have a fixed size. With `a[i, :i]` for i = 0, 1, 2, of an array of shape (3, 2), the slices of the
    second axis begin at 0 and have 0, 1 and 2 elements: slice_starts 0 0 0, slice_counts 0 1 2. The boxes have the
    size of the largest slice, 2, and begin at box_starts 0 0 0. With `a[i, i:]` slices begin at 0, 1, 2; a box of two
    elements that began at 1 would not fit, so that box_starts are 0 0 0 again, and the layout's offsets say that the
    slice begins at 0, 1, 2 in its box.

    box_starts, slice_starts, slice_counts: numbers, (rounds, axes). traced_starts: the box_starts of each axis as the
    compiled loop has them. box_sizes: of each axis. kept: for each axis of the layout the array's, None for a new one.
    layout: of what is read. base: the array's shape.
    """

    traced_starts: list[RoundInt]
    box_sizes: tuple[int, ...]
    kept: list[int | None]
    layout: Layout
    base: tuple[int, ...]
    block: Block
    box_starts: Any
    slice_starts: Any
    slice_counts: Any

    def equals(self, other: Cut) -> bool:
        """Whether both look at the same elements in each round, and at no others."""
        same = self.block is other.block and self.kept == other.kept and self.box_sizes == other.box_sizes
        uniform = self.layout.uniform and other.layout.uniform
        return same and uniform and bool((self.box_starts == other.box_starts).all())

    def disjoint(self, other: Cut) -> bool:
        """Whether their boxes have no element in common in any round."""
        if self.block is not other.block:
            return False  # their rounds are not the same ones: nothing to compare
        before = self.box_starts + self.box_sizes <= other.box_starts
        after = other.box_starts + other.box_sizes <= self.box_starts
        return bool((before | after).any(axis=1).all())

    def read(self, array: Any, frame: Frame) -> Any:
        from jax import lax

        if self.box_sizes != self.base:
            array = lax.dynamic_slice(array, self.corner(frame), self.box_sizes)
        return array.reshape(self.layout.shape)

    def write(self, array: Any, value: Any, frame: Frame) -> Any:
        from jax import lax

        value = value.reshape(self.box_sizes)
        return value if self.box_sizes == self.base else lax.dynamic_update_slice(array, value, self.corner(frame))

    def corner(self, frame: Frame) -> list[Any]:
        """Where this round's box begins."""
        return [start.traced(frame) for start in self.traced_starts]


class _AxisCut(NamedTuple):
    """What a slice takes of one axis, each an array by round but for the size. See `Cut`."""

    slice_start: NDArray[Any]
    slice_count: NDArray[Any]
    box_start: NDArray[Any]
    box_size: int


def _axis_cut(start: NDArray[Any], count: NDArray[Any], length: int) -> _AxisCut:
    """The boxes for slices of an axis. length: of the axis, as computed."""
    size = max(1, int(count.max()))  # where there is never anything: one element that does not count
    if size > length:
        raise Irregular
    # The largest box has to fit. Near the end of the array it begins earlier than the slice, and the layout's offset
    # says by how much. (`dynamic_slice` would move it as well, but nobody would know.)
    return _AxisCut(start, count, np.clip(start, 0, length - size), size)


def cut_of(layout: Layout, steps: Sequence[Index], bases: Sequence[Node], block: Block, tables: list[Any]) -> Cut:
    """What reading `steps` of `bases`, round by round, takes of an array with this layout."""
    found = [list(_entries(base.shape, step.key)) for base, step in zip(bases, steps, strict=True)]
    forms = {tuple(kind for kind, _, _ in entries) for entries in found}
    if len(forms) != 1:
        raise Irregular
    rounds = len(found)
    axes: list[_AxisCut] = []
    kept: list[int | None] = []
    for i, kind in enumerate(forms.pop()):
        if kind == "new":
            kept.append(None)
            continue
        axis = len(axes)
        if kind == "kept":
            kept.append(axis)
        start = np.array([entries[i][1] for entries in found]) + layout.offsets[:, axis]
        axes.append(_axis_cut(start, np.array([entries[i][2] for entries in found]), layout.shape[axis]))

    def table(columns: list[NDArray[Any]]) -> Any:
        return np.array(columns, int).reshape(-1, rounds).T

    new = _AxisCut(np.zeros(rounds, int), np.ones(rounds, int), np.zeros(rounds, int), 1)
    seen = [new if axis is None else axes[axis] for axis in kept]
    return Cut(
        traced_starts=[RoundInt(each.box_start, block, tables) for each in axes],
        box_sizes=tuple(each.box_size for each in axes),
        kept=kept,
        layout=Layout(
            tuple(each.box_size for each in seen),
            table([each.slice_count for each in seen]),
            table([each.slice_start - each.box_start for each in seen]),
        ),
        base=layout.shape,
        block=block,
        box_starts=table([each.box_start for each in axes]),
        slice_starts=table([each.slice_start for each in axes]),
        slice_counts=table([each.slice_count for each in axes]),
    )


def _entries(shape: tuple[int, ...], key: tuple[Any, ...]) -> Iterator[tuple[str, int, int]]:
    """What a key does with each axis: its kind, the start and how many elements."""
    for entry, length in per_axis(shape, key):
        if entry is None:
            yield "new", 0, 1
        elif isinstance(entry, slice):
            start, stop, step = entry.indices(length)
            if step != 1:
                raise Irregular  # no box; reversals of a whole axis come another way (see `pad`)
            yield "kept", start, max(0, stop - start)
        else:
            yield "dropped", entry + length if entry < 0 else entry, 1


Computed = Callable[["Frame"], Any]
"""What computes a value of a round, in a frame that is in that round."""

NestCompute = Callable[[Node, tuple[Any, ...], dict[str, Any], tuple[int, ...]], Any]
"""From an operation of a nest, its arguments in the form of the call, and the shape of its padded result: the value."""


@dataclass(slots=True)
class BoxWrite:
    """A write to a box, not yet made. value: (*layout). mask: where it counts; None for everywhere.

    Writes wait, so that later reads of the round can have the value itself, or the array as it was before: see
    `Frame.read`.
    """

    cut: Cut
    value: Any
    mask: Any = None


@dataclass(slots=True)
class Frame:
    """Where a running nest is: in which round of each block.

    values: of the program around it. compute: computes an operation. rounds: of each block, since it was entered last.
    registers: their contents, but for writes of this round that are pending. columns: of collected sites, the values of
    all rounds so far. written: those to which this round's writes have been made. owned: those that all rounds write to
    at once (see accel.lower.passes.nests.vectorize): there this round's writes stay pending. cuts: what this round
    reads, where it is known: in the shape of the cut's boxes.
    """

    values: ValueStore
    compute: NestCompute
    rounds: dict[Block, Any]
    registers: dict[Register, Any]
    columns: dict[Site, Any]
    pending: dict[Register, list[BoxWrite]] = field(default_factory=dict)
    written: set[Register] = field(default_factory=set)
    owned: frozenset[Register] = frozenset()
    cuts: Mapping[Cut, Any] = field(default_factory=dict)

    def inside(self, block: Block, round_: object, **about: Any) -> Frame:
        """The frame of a round of a block that is entered here."""
        rounds = {**self.rounds, block: round_}
        return Frame(self.values, self.compute, rounds, dict(self.registers), dict(self.columns), **about)

    def set(self, carried: Carry, contents: tuple[list[Any], list[Any]]) -> None:
        """Set what a loop carries: the registers' contents, and the columns."""
        self.registers.update(zip(carried.registers, contents[0], strict=True))
        self.columns.update(zip(carried.columns, contents[1], strict=True))

    def perform(self, site: Site) -> None:
        """Compute a site's operation, and let its register hold the value.

        A plan that gives None has written to the register in place (`Frame.write`).
        """
        from jax import numpy as jnp

        assert site.plan is not None
        value = site.plan(self)
        if value is not None:
            self.pending.pop(site.register, None)
            self.registers[site.register] = jnp.asarray(value)

    def flushed(self, register: Register) -> Any:
        """What a register holds, once its pending writes have been made."""
        for write in self.pending.pop(register, ()):
            self.registers[register] = write.cut.write(self.registers[register], write.value, self)
            self.written.add(register)
        return self.registers[register]

    def look(self, cut: Cut, array: Computed) -> Any:
        """A box of an array that no round writes to."""
        found = self.cuts.get(cut)
        return cut.read(array(self), self) if found is None else found.reshape(cut.layout.shape)

    def read(self, register: Register, cut: Cut) -> Any:
        """A box of what a register holds: of what a round wrote there, or of what was there before.

        Reads and writes of one array that XLA need not put in order cost no copies of it.
        """
        for write in reversed(self.pending.get(register, ())):
            if cut.equals(write.cut):
                return write.value
            if not cut.disjoint(write.cut):  # part of it was written: read the array after the writes
                self.flushed(register)
                break
        if cut in self.cuts:
            return self.cuts[cut].reshape(cut.layout.shape)
        array = self.registers[register]
        if register in self.written:  # in this round: a fused read would make XLA copy the array
            return fusion.read_separately(lambda whole: cut.read(whole, self), array)
        return cut.read(array, self)

    def write(self, register: Register, cut: Cut, value: Any, mask: Any) -> None:
        from jax import numpy as jnp

        if mask is not None and register not in self.owned:  # the padding keeps what is there
            value, mask = jnp.where(mask, value, self.read(register, cut)), None
        writes = self.pending.setdefault(register, [])
        if writes and writes[-1].cut.equals(cut):
            writes.pop()  # covered by the new one
        writes.append(BoxWrite(cut, value, mask))

    def flush(self) -> None:
        """Make all pending writes."""
        for register in list(self.pending):
            self.flushed(register)

    def table(self, values: NDArray[Any]) -> Any:
        from jax import numpy as jnp

        return jnp.asarray(self.values.table(values))
