"""The memory locations of a kernel's values, and the instructions that load them and copy a row's ends around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from accel.compiler.kernels.graph import HALO, INPUT, RESHAPE, Axis, KernelNode, strides_of
from accel.compiler.kernels.ir import MEMORY, Emitter, Value
from accel.compiler.kernels.operations import as_integer
from accel.compiler.kernels.plan import Index, placed

INT64 = np.dtype(np.int64)

_LARGE = 1 << 13
"""Minimum elements of arrays to fetch ahead: 64 kB of float64. A loop nest reads dozens, a program hundreds."""

_AHEAD = 256
"""Bytes by which loads are ahead of the iteration that needs them."""


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a stored value. number: of its pointer. strides, offset: in elements."""

    number: int
    strides: tuple[int, ...]
    offset: int = 0


class Pointer(NamedTuple):
    """A pointer that a function takes: the address of the location `number`, plus `offset` bytes."""

    number: int
    offset: int

    @property
    def name(self) -> str:
        return f"%p{self.number}.{self.offset}"


def level_of(index: Index) -> int:
    """Return the level of a read at an index: that of the index's innermost loop."""
    return max((axis.dim + 1 for axis in index if axis.dim is not None), default=0)


@dataclass(slots=True)
class Addressing:
    """Writes the address computations and loads of one function.

    places: of inputs and stored values, by node. size: elements of each value that it computes. loops: names of the
    loop counters. used: the pointers that it takes.
    """

    emitter: Emitter
    places: Mapping[int, Location]
    size: int = 0
    loops: dict[int, str] = field(default_factory=dict)
    used: dict[str, Pointer] = field(default_factory=dict)

    def pointer(self, number: int, offset: int = 0) -> str:
        """Return the name of a pointer. offset: in bytes."""
        pointer = Pointer(number, offset)
        name = pointer.name
        self.used[name] = pointer
        return name

    # -- places -------------------------------------------------------------------------------------------------------

    def place(self, node: KernelNode) -> Location:
        """Return a node's location: memory of its own, or part of another node's."""
        return self.places[node.index] if node.index in self.places else self.place_of_part(node)

    def place_of_part(self, node: KernelNode) -> Location:
        """Return the location of a part or another shape of a stored node."""
        return _part_of(node, self.place(node.operands[0]))

    def place_to_gather(self, node: KernelNode, base: KernelNode) -> Location:
        """Return the location of a part of `base` inside `base`.

        Nodes between them may have a location of their own, but perhaps are not stored yet.
        """
        if node is base:
            return self.places[base.index]
        return _part_of(node, self.place_to_gather(node.operands[0], base))

    def address(
        self,
        place: Location,
        dtype: np.dtype[Any],
        index: Index,
        offsets: Mapping[int, Value],
        level: int | None = None,
    ) -> str:
        """Return the address of an element. It is computed loop by loop, so that the part common to a row is computed
        once."""
        stored = MEMORY[dtype]
        address, fixed = self.pointer(place.number), place.offset
        moves: list[tuple[int, str, int]] = []
        for dim, (stride, axis) in enumerate(zip(place.strides, index, strict=True)):
            if dim in offsets:
                moves.append((offsets[dim].level, offsets[dim].text, stride))
            else:
                fixed += stride * axis.offset
            if axis.dim is not None and stride * axis.step:
                moves.append((axis.dim + 1, self.loops[axis.dim], stride * axis.step))
        if level is None:
            level = max([0, *(each for each, _, _ in moves)])
        shared = self.emitter.shared
        for at, counter, stride in sorted(moves, key=lambda move: move[0]):
            scaled = counter if stride == 1 else shared(f"mul i64 {counter}, {stride}", at)
            address = shared(f"getelementptr {stored}, ptr {address}, i64 {scaled}", at)
        if fixed:
            address = shared(f"getelementptr {stored}, ptr {address}, i64 {fixed}", level)
        return address

    # -- reading ------------------------------------------------------------------------------------------------------

    def loaded(
        self, node: KernelNode, index: Index, offsets: Mapping[int, Value], place: Location | None = None
    ) -> Value:
        """Load the element of a stored node, or a vector of them.

        offsets: by axis, an offset known only at run time. place: by default the node's own location.
        """
        place = self.place(node) if place is None else place
        level = max([level_of(index), *(each.level for each in offsets.values())])
        emitter = self.emitter
        if level == 0 and not offsets and placed(node).op == INPUT:
            # The program's numbers are elements of one input. A pointer to each keeps their places out of the text.
            fixed = place.offset + sum(stride * axis.offset for stride, axis in zip(place.strides, index, strict=True))
            return emitter.load(self.pointer(place.number, fixed * node.dtype.itemsize), node.dtype, level)
        address = self.address(place, node.dtype, index, offsets, level)
        if not emitter.is_vector(level):
            return emitter.load(address, node.dtype, level)
        inner = [(stride, axis) for stride, axis in zip(place.strides, index, strict=True) if axis.dim == level - 1]
        step = sum(stride * axis.step for stride, axis in inner)
        if step == 1:
            self._fetch_ahead(place.number, address, level)
            return emitter.load(address, node.dtype, level)
        return self._loaded_lanes(address, node.dtype, [lane * step for lane in range(emitter.lanes)], level)

    def _fetch_ahead(self, number: int, address: str, level: int) -> None:
        """Fetch what later iterations load of this array: processors find out by themselves for few arrays at once."""
        scope, key = self.emitter.scopes[level], ("ahead", number)
        if self.size >= _LARGE and key not in scope.known:
            ahead = self.emitter.written(f"getelementptr i8, ptr {address}, i64 {_AHEAD}", level)
            scope.known[key] = Value(self.emitter, ahead, INT64, level)
            self.emitter.declared.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
            scope.lines.append(f"call void @llvm.prefetch.p0(ptr {ahead}, i32 0, i32 3, i32 1)")

    def _loaded_lanes(self, address: str, dtype: np.dtype[Any], offsets: Sequence[Any], level: int) -> Value:
        """Load a vector lane by lane. offsets: in elements."""
        written, stored = self.emitter.written, MEMORY[dtype]
        kind, found = f"<{self.emitter.lanes} x {stored}>", "poison"
        for lane, offset in enumerate(offsets):
            place = written(f"getelementptr {stored}, ptr {address}, i64 {offset}", level)
            element = written(f"load {stored}, ptr {place}, align {dtype.itemsize}", level)
            found = written(f"insertelement {kind} {found}, {stored} {element}, i64 {lane}", level)
        if dtype.kind == "b":
            found = written(f"icmp ne {kind} {found}, zeroinitializer", level)
        return Value(self.emitter, found, dtype, level)

    def position(self, axis: Axis) -> Value:
        """Return the index along an axis, as int64."""
        emitter = self.emitter
        if axis.dim is None:
            return emitter.literal(axis.offset, INT64)
        level, counter = axis.dim + 1, self.loops[axis.dim]
        if emitter.is_vector(level):
            every = emitter.repeated(counter, "i64", level)
            lanes = ", ".join(f"i64 {lane}" for lane in range(emitter.lanes))
            counter = emitter.shared(f"add <{emitter.lanes} x i64> {every}, <{lanes}>", level)
        return Value(emitter, counter, INT64, level) * axis.step + axis.offset

    def gathered(self, source: KernelNode, places: Sequence[Value]) -> Value:
        """Load elements of a stored node at computed indices, one for each of its axes."""
        place = self.place_to_gather(source, placed(source))
        emitter, stored, address = self.emitter, MEMORY[source.dtype], self.pointer(place.number)
        offset = emitter.literal(place.offset, INT64)
        for stride, at, length in zip(place.strides, places, source.shape, strict=True):
            if length - 1 > np.iinfo(at.dtype).max:
                at = as_integer(at, INT64)
            # XLA does not read outside of an array either, whatever the program says
            inside = at.compare("lt", length - 1).where(at, length - 1)
            inside = as_integer(inside if at.dtype.kind == "u" else at.compare("lt", 0).where(0, inside), INT64)
            offset = offset + (inside if stride == 1 else inside * stride)
        level = offset.level
        if not emitter.is_vector(level):
            element = emitter.written(f"getelementptr {stored}, ptr {address}, i64 {offset.text}", level)
            return emitter.load(element, source.dtype, level)
        vector = f"{emitter.type_of(INT64, level)} {offset.text}"
        lanes = [emitter.written(f"extractelement {vector}, i64 {lane}", level) for lane in range(emitter.lanes)]
        return self._loaded_lanes(address, source.dtype, lanes, level)

    # -- borders ------------------------------------------------------------------------------------------------------

    def ends(self, place: Location, dtype: np.dtype[Any], length: int) -> list[str]:
        """Return the instructions that copy a row's ends around it. length: of the row."""
        stored, lines = MEMORY[dtype], list[str]()
        kind = f"<{HALO} x {stored}>"

        def written(text: str) -> str:
            name = self.emitter.name()
            lines.append(f"{name} = {text}")
            return name

        address = self.pointer(place.number)
        for loop, stride in enumerate(place.strides[:-1]):
            scaled = written(f"mul i64 {self.loops[loop]}, {stride}")
            address = written(f"getelementptr {stored}, ptr {address}, i64 {scaled}")
        for target, source in ((length, 0), (-HALO, length - HALO)):
            read = written(f"getelementptr {stored}, ptr {address}, i64 {place.offset + source}")
            value = written(f"load {kind}, ptr {read}, align {dtype.itemsize}")
            to = written(f"getelementptr {stored}, ptr {address}, i64 {place.offset + target}")
            lines.append(f"store {kind} {value}, ptr {to}, align {dtype.itemsize}")
        return lines


def _part_of(node: KernelNode, source: Location) -> Location:
    """Return the location of a view or another shape of the node stored at `source`."""
    if node.op == RESHAPE:
        return Location(source.number, strides_of(node.shape), source.offset)
    strides = [0] * len(node.shape)
    offset = source.offset
    for stride, axis in zip(source.strides, node.about, strict=True):
        offset += stride * axis.offset
        if axis.dim is not None:
            strides[axis.dim] += stride * axis.step
    return Location(source.number, tuple(strides), offset)
