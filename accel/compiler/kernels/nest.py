"""Loop nests: the LLVM IR of one stage, a function that computes stored values over their common shape.

The innermost loop works on vectors. A loop is cut where its reads pass from one piece to another. Rows of pieces that
are computed alike are not cut: the row's address and constants are selected.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from accel.compiler.kernels import machine_code
from accel.compiler.kernels.finite import Check, check_of
from accel.compiler.kernels.graph import (
    BLOCK,
    CONSTANT,
    GATHER,
    HALO,
    HALOED,
    INPUT,
    IOTA,
    MOVES,
    PIECES,
    RESHAPE,
    VIEW,
    Axis,
    KernelNode,
    identity,
    through,
)
from accel.compiler.kernels.ir import Emitter, Scope, Value
from accel.compiler.kernels.memory import INT64, Addressing, Location, Pointer, level_of
from accel.compiler.kernels.operations import OPERATIONS, as_integer
from accel.compiler.kernels.plan import Index, NestStage, placed, shifted

_MOST_ROWS = 0.75
"""Minimum share of the rows for which a value is computed, to compute it for all. Guess."""

_POINTER = re.compile(r"%p\d+\.\d+")
"""The name of a pointer, see `Addressing.pointer`."""


class _Cut(Exception):
    """A loop has to be cut at index `at`: before and after it, reads come from different pieces."""

    def __init__(self, loop: int, at: int) -> None:
        super().__init__(loop, at)
        self.loop, self.at = loop, at


class _Part(NamedTuple):
    """A range of rows in a loop, and the node and index that are read in them."""

    rows: tuple[int, int]
    node: KernelNode
    at: Index


class LoopNest:
    """The function of one stage.

    places: locations of inputs and stored values, by node. results: locations to which a stored value is written.
    divided: the function computes one chunk of the outermost loop; its last arguments are its number and that of all.
    checked: numbers of locations. If NaN or infinity is written to one, the byte at the location `flag` becomes 1.
    emitter: has the functions and declarations that it needs.
    """

    def __init__(
        self,
        stage: NestStage,
        places: Mapping[int, Location],
        results: Mapping[int, Sequence[Location]],
        lanes: int,
        divided: bool,
        checked: Collection[int],
        flag: int,
    ) -> None:
        self._stage, self._places, self._results = stage, places, results
        self._lanes, self._is_divided = lanes, divided
        self._checked, self._flag, self._check = checked, flag, Check()
        self._rank = len(stage.shape)
        self.emitter = Emitter(innermost=self._rank)
        self._memory = Addressing(self.emitter, places, math.prod(stage.shape))
        self._region: dict[int, tuple[int, int]] = {}
        self._labels = 0

    def text(self) -> tuple[str, str, list[Pointer]]:
        """Return the function's name, its definition, and the pointers that it takes.

        Functions that do the same have the same name, whichever memory they are for.
        """
        inner, taken = self._nest(0), dict[str, str]()
        body = _POINTER.sub(
            lambda found: taken.setdefault(found[0], f"%p{len(taken)}"),
            "\n".join([*self.emitter.scopes[0].lines, *inner]),
        )
        given = ", ".join([*(f"ptr noalias {name}" for name in taken.values()), "i64 %chunk", "i64 %chunks"])
        quick = machine_code.holds_vectors() or not self._is_divided
        rest = f"({given}) #{2 if quick else 0} {{\n{body}\nret void\n}}"
        name = f"nest_{hashlib.blake2b(rest.encode(), digest_size=16).hexdigest()}"
        return name, f"define internal void @{name}{rest}", [self._memory.used[each] for each in taken]

    # -- loops --------------------------------------------------------------------------------------------------------

    def _nest(self, loop: int) -> list[str]:
        """Write the loops from this one inwards."""
        if loop == self._rank:
            self._compute()
            return []
        is_innermost = loop == self._rank - 1
        pieces, lines = deque([(0, self._stage.shape[loop])]), []
        while pieces:
            first, last = pieces.popleft()
            try:
                lines += self._loop(loop, first, last)
            except _Cut as cut:
                if cut.loop != loop:
                    raise
                pieces.extendleft([(cut.at, last), (first, cut.at)])
        return [*lines, *self._halos()] if is_innermost else lines

    def _loop(self, loop: int, first: int, last: int) -> list[str]:
        emitter = self.emitter
        self._region[loop] = first, last
        is_innermost = loop == self._rank - 1
        lanes = self._lanes if is_innermost and last - first >= self._lanes else 1
        if is_innermost:
            emitter.lanes = lanes
        self._labels += 1
        label = self._labels
        counter = self._memory.loops[loop] = f"%i{label}"
        del emitter.scopes[loop + 1 :]
        emitter.scopes.append(Scope())
        try:
            inner = self._nest(loop + 1)
        finally:
            scope = emitter.scopes[loop + 1]
            del emitter.scopes[loop + 1 :]
        check = self._check if is_innermost else Check()
        rounds, is_divided = -(-(last - first) // lanes), loop == 0 and self._is_divided
        if rounds == 1 and not is_divided:
            return [f"{counter} = add i64 0, {first}", *check.alone, *scope.lines, *check.body, *inner, *check.end]
        step = f"{counter} = add i64 %k{label}, {first}"
        if lanes > 1:
            # the last vector may overlap the one before: it gives the same values
            emitter.declared.add("declare i64 @llvm.smin.i64(i64, i64)")
            step = (
                f"%m{label} = mul i64 %k{label}, {lanes}\n%a{label} = add i64 %m{label}, {first}\n"
                f"{counter} = call i64 @llvm.smin.i64(i64 %a{label}, i64 {last - lanes})"
            )
        body = [*check.carried, step, *scope.lines, *check.body, *inner]
        end = check.end or [f"br label %after{label}", f"after{label}:"]
        return [*_repeated(label, rounds, body, is_divided=is_divided), *end]

    def _compute(self) -> None:
        own, checked = identity(self._rank), list[Value]()
        for node in self._stage.stored:
            value = self._value(node, own, is_first=True)
            self._scope(self._rank).known[node.index, own] = value
            for place in self._results[node.index]:
                address = self._memory.address(place, node.dtype, own, {})
                self.emitter.store(value, address, self._rank)
                if place.number in self._checked:
                    checked.append(value)
        if checked:
            self._check = check_of(self.emitter, checked, self._memory.pointer(self._flag), self._labels)

    def _scope(self, level: int) -> Scope:
        return self.emitter.scopes[level]

    # -- values -------------------------------------------------------------------------------------------------------

    def _value(self, node: KernelNode, index: Index, *, is_first: bool = False) -> Value:
        """Return the value of a node at an index. is_first: compute it although it is a stored value.

        Raises _Cut if it comes from several pieces that are not computed alike.
        """
        try:
            source, at = self._source(node, index, self._region, is_first=is_first)
        except _Cut as cut:
            if cut.loop == self._rank - 1:
                raise
            return self._merged(self._parts(node, index, cut.loop, self._region[cut.loop], is_first=is_first), cut.loop)
        for scope in reversed(self.emitter.scopes):
            if (source.index, at) in scope.known:
                return scope.known[source.index, at]
        is_loaded = self._is_stored(source) and not (is_first and source is node)
        found = self._memory.loaded(source, at, {}) if is_loaded else self._computed(source, at)
        # by the loops of its index: in another piece of one of these it may be another value
        self._scope(max(found.level, level_of(at))).known[source.index, at] = found
        return found

    def _is_stored(self, node: KernelNode) -> bool:
        """Whether a node has memory: an input's, or its own."""
        return node.index in self._places

    def _computed(self, node: KernelNode, index: Index) -> Value:
        if node.op == CONSTANT:
            return self.emitter.literal(np.frombuffer(node.about, node.dtype)[0], node.dtype)
        if node.op == RESHAPE:
            return self._memory.loaded(node, index, {}, self._memory.place_of_part(node))
        if node.op == HALOED:
            return self._value(node.operands[0], index)
        if node.op == IOTA:
            return as_integer(self._memory.position(index[node.about]), node.dtype)
        if node.op == GATHER:
            source, *places = node.operands
            return self._memory.gathered(source, [self._value(each, index) for each in places])
        if node.op == BLOCK:
            source, *starts = node.operands
            offsets = {
                dim: self._value(start, ()) + index[dim].offset for dim, start in zip(node.about, starts, strict=True)
            }
            return self._memory.loaded(source, index, offsets, self._memory.place_to_gather(source, placed(source)))
        return OPERATIONS[node.op].emit(node, [self._value(each, index) for each in node.operands])

    def _source(
        self, node: KernelNode, index: Index, region: Mapping[int, tuple[int, int]], *, is_first: bool = False
    ) -> tuple[KernelNode, Index]:
        """Follow moves to a node that is computed or loaded. is_first: follow the first one even if it is stored.
        Raises _Cut."""
        while node.op in MOVES and (is_first or not self._is_stored(node)):
            node, index = self._step(node, index, region)
            is_first = False
        return node, index

    def _step(self, node: KernelNode, index: Index, region: Mapping[int, tuple[int, int]]) -> tuple[KernelNode, Index]:
        """Follow one move. Raises _Cut."""
        if node.op == VIEW:
            return node.operands[0], tuple(through(axis, index) for axis in node.about)
        if node.op == PIECES:
            dim, ends = node.about
            low, high = index[dim].ends(region)
            start = 0
            for part, end in zip(node.operands, ends, strict=True):
                if start <= low and high < end:
                    return part, shifted(index, dim, -start)
                if low < end <= high:
                    raise _cut(index[dim], end, region)
                start = end
            raise AssertionError(f"{node} is read outside of its pieces")
        source, (dim, shift) = node.operands[0], node.about
        moved = shifted(index, dim, shift)
        length = source.shape[dim]
        low, high = moved[dim].ends(region)
        if source.op == HALOED and moved[dim].step == 1 and low >= -HALO and high < length + HALO:
            return source, moved
        rounds = low // length
        if high // length != rounds:
            raise _cut(moved[dim], (rounds + 1) * length, region)
        return source, shifted(moved, dim, -rounds * length)

    # -- rows that come from several pieces ---------------------------------------------------------------------------

    def _parts(
        self, node: KernelNode, index: Index, loop: int, rows: tuple[int, int], *, is_first: bool = False
    ) -> list[_Part]:
        """Return the sources of a node's rows: each range of rows, with the node and index read in it."""
        region = {**self._region, loop: rows}
        try:
            return [_Part(rows, *self._source(node, index, region, is_first=is_first))]
        except _Cut as cut:
            if cut.loop != loop:
                raise
            first, last = rows
            return [
                part
                for each in ((first, cut.at), (cut.at, last))
                for part in self._parts(node, index, loop, each, is_first=is_first)
            ]

    def _merged(self, parts: Sequence[_Part], loop: int) -> Value:
        """Return one value for all rows. Raises _Cut if they are not computed alike."""
        key = loop, *((rows, node.index, index) for rows, node, index in parts)
        for scope in reversed(self.emitter.scopes):
            if key in scope.known:
                return scope.known[key]
        (_, first, index), *others = parts
        if all(node is first and each == index for _, node, each in others):
            return self._value(first, index)
        try:
            found = self._merged_alike(parts, loop)
        except _Cut:
            if not self._may_select(parts, loop):
                raise
            found = self._chosen([self._value(node, each) for _, node, each in parts], parts, loop)
        self._scope(max(found.level, *(level_of(part.at) for part in parts))).known[key] = found
        return found

    def _merged_alike(self, parts: Sequence[_Part], loop: int) -> Value:
        """Return one value that one load or operation computes for all rows. Raises _Cut."""
        (rows, first, _), *others = parts
        cut = _Cut(loop, rows[1])
        if self._is_stored(first) or first.op == INPUT or first.op == RESHAPE:
            return self._loaded_rows(parts, loop, cut)
        # of a stored one, the operands may be gone: their memory is used again after its last planned reader
        if first.op in OPERATIONS and all(first.is_like(node) and not self._is_stored(node) for _, node, _ in others):
            return self._merged_operation(parts, loop)
        raise cut

    def _may_select(self, parts: Sequence[_Part], loop: int) -> bool:
        """Whether to compute all parts for all rows and select: most rows have the same part, and the others cost
        no more than a load in a row."""
        first, last = self._region[loop]
        for rows, node, index in parts:
            if node.op == CONSTANT:
                continue
            is_cheap = level_of(index) <= loop or self._is_stored(node)
            if not is_cheap and rows[1] - rows[0] < _MOST_ROWS * (last - first):
                return False
            for axis, length in zip(index, node.shape, strict=True):
                low, high = axis.ends(self._region)
                if low < 0 or high >= length:
                    return False
        return True

    def _merged_operation(self, parts: Sequence[_Part], loop: int) -> Value:
        given = []
        for position in range(len(parts[0][1].operands)):
            operands = [
                part for rows, node, index in parts for part in self._parts(node.operands[position], index, loop, rows)
            ]
            given.append(self._merged(operands, loop))
        return OPERATIONS[parts[0][1].op].emit(parts[0][1], given)

    def _loaded_rows(self, parts: Sequence[_Part], loop: int, cut: _Cut) -> Value:
        """Load from an address that depends on the row. Raises `cut` if more than the offset along one axis differs."""
        _, first, index = parts[0]
        if any(node is not first for _, node, _ in parts):
            raise cut
        differing = {dim for _, _, each in parts for dim in range(len(index)) if each[dim] != index[dim]}
        if len(differing) != 1:
            raise cut
        (dim,) = differing
        if any(each[dim][:2] != index[dim][:2] for _, _, each in parts) or index[dim].dim not in (loop, None):
            raise cut
        offsets = [self.emitter.literal(each[dim].offset, INT64) for _, _, each in parts]
        chosen = self._chosen(offsets, parts, loop)
        return self._memory.loaded(first, index, {dim: chosen})

    def _chosen(self, values: Sequence[Value], parts: Sequence[_Part], loop: int) -> Value:
        """Select the value of the part that contains the row."""
        found = values[-1]
        row = Value(self.emitter, self._memory.loops[loop], INT64, loop + 1)
        for value, (rows, _, _) in reversed(list(zip(values[:-1], parts[:-1], strict=True))):
            if value.text != found.text:
                found = row.compare("lt", rows[1]).where(value, found)
        return found

    # -- borders ------------------------------------------------------------------------------------------------------

    def _halos(self) -> list[str]:
        """Write the copies of a row's ends around it."""
        haloed = [node for node in self._stage.stored if node.op == HALOED]
        length = self._stage.shape[-1]
        return [line for node in haloed for line in self._memory.ends(self._results[node.index][0], node.dtype, length)]


def _repeated(label: int, rounds: int, body: Sequence[str], *, is_divided: bool) -> list[str]:
    """Return the loop that counts `%k` in this many rounds. is_divided: in those of this chunk, if it has any."""
    begin, end, entered = "0", str(rounds), [f"br label %loop{label}"]
    if is_divided:
        begin, end = f"%begin{label}", f"%end{label}"
        entered = [
            f"%first{label} = mul i64 %chunk, {rounds}",
            f"%last{label} = add i64 %first{label}, {rounds}",
            f"{begin} = udiv i64 %first{label}, %chunks",
            f"{end} = udiv i64 %last{label}, %chunks",
            f"%any{label} = icmp slt i64 {begin}, {end}",
            f"br i1 %any{label}, label %loop{label}, label %after{label}",
        ]
    return [
        f"br label %before{label}",
        f"before{label}:",
        *entered,
        f"loop{label}:",
        f"%k{label} = phi i64 [ {begin}, %before{label} ], [ %n{label}, %next{label} ]",
        *body,
        f"br label %next{label}",
        f"next{label}:",
        f"%n{label} = add i64 %k{label}, 1",
        f"%c{label} = icmp slt i64 %n{label}, {end}",
        f"br i1 %c{label}, label %loop{label}, label %done{label}",
        f"done{label}:",
    ]


def _cut(axis: Axis, place: int, region: Mapping[int, tuple[int, int]]) -> _Cut:
    """Return the cut of the loop whose reads lie on both sides of `place`."""
    assert axis.dim is not None
    if axis.step > 0:
        return _Cut(axis.dim, -((axis.offset - place) // axis.step))
    return _Cut(axis.dim, (axis.offset - place) // -axis.step + 1)
