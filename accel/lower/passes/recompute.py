"""Recompute: which values of a program are better stored, because XLA would compute them again for each reader.

How they are stored: see accel.rules.fusion.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.ir.vast import VAST
from accel.ir.views import box_of
from accel.rules import core, fusion
from accel.rules.columns import fact

RECOMPUTED = 8.0
"""Work (in simple operations for each element) that is stored before a shifting operation reads it.

Measured on PyGCM's whole steps (ocean and atmosphere) at 121x240: 0.8 and 1.2 ms with 8; 1.1 and 1.6 ms where nothing
is stored, or where 100 is the limit. A join counts as more."""

SLICED = 64.0
"""The same before a slice reads it. Slices are cheaper to compute again: XLA reads them with whole vectors. A
limited diffusion on 64x64x60 takes 0.4 ms so, and 0.85 with 8."""

SHARED = 20.0
"""Work that several kernels do, beyond the first of them, before the value is stored for all.

Measured on a whole round of PyGCM's loop at 121x240: 8.6 to 8.8 ms with 6 to 25, 9.9 with 150, 10.6 where nothing is
stored for this reason."""

COSTLY = 20.0
"""Work of an operation that is worth having whole vectors: exponentials and the like."""

FEW = 1024
"""Elements for which one more kernel costs more than whole vectors save."""


def _writes_part(node: Node) -> bool:
    return node.rule in (core.WRITE, core.WRITE_AT) and node.args[2].shape != node.shape


Cone = Mapping[Any, float]
"""What is computed again with a value: work, by the node that stands for it and the moves from here to there."""


@dataclass(frozen=True, slots=True)
class Storing:
    """Operands that are better stored before an operation reads them.

    copy: first, as a copy, apart from the operation: so that this gets whole vectors. materialize: then, so that they
    are not computed again.
    """

    copy: list[Node]
    materialize: list[Node]


class Recomputation:
    """How much work each value of a program stands for, if whatever reads it computes it again.

    What is read at one place counts once, however many operations look at it. And whether XLA would compute a value
    element by element: code that looks at several places seldom gets whole vectors, which costs little in sums of
    neighbours and five times as much in a tangent.
    """

    def __init__(
        self,
        *,
        looping: bool = False,
        kernels: Mapping[int, int] = MappingProxyType({}),
        padded: Collection[int] = frozenset(),
        read_apart: Collection[int] = frozenset(),
        moving: Collection[int] = frozenset(),
    ) -> None:
        """looping: for the rounds of a loop (see `in_loop`). kernels, padded, read_apart: see
        accel.lower.passes.sharing. moving: inputs that each run finds at another place."""
        self._cones: dict[int, Cone] = {}
        self._unvectorized: set[int] = set()  # values that XLA computes element by element
        self._moving = set(moving)  # values of which a run tells where to read what they are computed from
        self._read_apart = read_apart
        self._looping = looping
        self._kernels = kernels
        self._padded = padded

    @contextlib.contextmanager
    def in_loop(self, stored: Iterable[Node]) -> Iterator[None]:
        """While a loop's rounds are traced. stored: values that it takes and carries: there they are in memory.

        So is an array of which a round writes a part: the loop carries it, and XLA writes in place.
        """
        before = self._looping
        with self.in_side():  # here, too, what is computed exists only there
            for node in stored:
                self.stored(node)
            self._looping = True
            try:
                yield
            finally:
                self._looping = before

    @contextlib.contextmanager
    def in_side(self) -> Iterator[None]:
        """While a side of a conditional is traced: what it computes exists only there."""
        outside = dict(self._cones), set(self._unvectorized), set(self._moving)
        try:
            yield
        finally:
            self._cones, self._unvectorized, self._moving = outside

    def enter(self, node: Node) -> Storing:
        """Register an operation that is about to be traced: once per node, in tape order."""
        copied = self._copy(node)  # first: it changes what counts as stored, and so the node's own cone
        return Storing(copied, self.enter_in_loop(node))

    def enter_in_loop(self, node: Node) -> list[Node]:
        """The same for an operation of a loop's rounds, where nothing is copied: the operands to materialize."""
        operands = {operand.index: operand for operand in node.operands() if operand.shape}
        looks_around = fact(node.rule.locality.shifts, node)
        most = SLICED if node.rule in (core.READ, core.READ_AT) else RECOMPUTED
        found = [each for each in operands.values() if self._of(each) > most] if looks_around else []
        for each in found:
            self.stored(each)
        stored = node.rule.cost.stored or (self._looping and _writes_part(node))
        self._cones[node.index] = {} if stored else self._cone(node, operands)
        # Without whole vectors: what looks at several places, and what is fused with it.
        if looks_around or self._unvectorized.intersection(operands):
            self._unvectorized.add(node.index)
        if node.rule is core.READ_AT or (not stored and self._moving.intersection(operands)):
            self._moving.add(node.index)
        return found

    def _holds_back(self, node: Node) -> bool:
        """Whether what reads the value would be computed element by element.

        What is read from more than one place, XLA computes in a function of its own within a kernel. Where that reads
        from an array is looked up there for each element, so that LLVM does not know that they stand side by side.
        """
        if node.index not in self._moving or node.index not in self._read_apart:
            return False
        size = math.prod(node.shape)
        return size > FEW and size * np.dtype(node.dtype).itemsize < VAST

    def _copy(self, node: Node) -> list[Node]:
        """The operands to copy, which count as stored from now on."""
        is_costly = node.rule.cost.work >= COSTLY and math.prod(node.shape) > FEW
        found = [
            each
            for each in {operand.index: operand for operand in node.operands()}.values()
            if self._holds_back(each) or (is_costly and each.index in self._unvectorized)
        ]
        for each in found:
            self.stored(each)
        return found

    def is_costly(self, node: Node) -> bool:
        """Whether the value is better stored than computed again and again."""
        return self._of(node) > RECOMPUTED

    def is_shared(self, node: Node) -> bool:
        """Whether the value is better stored than computed anew in each of the kernels that need it."""
        others = self._kernels.get(node.index, 1) - 1
        return others > 0 and math.prod(node.shape) > fusion.SMALL and self._of(node) * others > SHARED

    def is_padded(self, node: Node) -> bool:
        """Whether some operation reads the value from a padded copy: all others may."""
        return node.index in self._padded

    def stored(self, node: Node) -> None:
        """Count the value as stored from now on."""
        self._cones[node.index] = {}
        self._unvectorized.discard(node.index)
        self._moving.discard(node.index)

    def _of(self, node: Node) -> float:
        return sum(self._cones.get(node.index, {}).values())

    def _cone(self, node: Node, operands: Mapping[int, Node]) -> Cone:
        """The node and what is computed again with it; beyond what is stored anyway, in one number."""
        cone: dict[Any, float] = {(node.index, ()): node.rule.cost.work}
        move = _move(node)
        for index in operands:
            for (origin, moves), work in self._cones.get(index, {}).items():
                cone[origin, _added(moves, move)] = work  # by one key: the same node at the same place counts once
        # Beyond SLICED it will be stored before any reader: what it is made of does not matter any more.
        total = sum(cone.values())
        return cone if total <= SLICED else {(node.index, ()): total}


Move = tuple[int, ...] | str
"""How an operation's elements lie to those that it reads: by so many per axis, or in a way of its own."""


def _move(node: Node) -> Move:
    if not fact(node.rule.locality.shifts, node):
        return ()
    box = box_of(node.args[0].shape, node.args[1].key) if node.rule is core.READ else None
    if box is None or len(box.given) != len(box.sizes):  # no move by so many elements per axis: unlike any other
        return str(node.index)
    return box.starts if any(box.starts) else ()


def _added(moves: tuple[Move, ...], move: Move) -> tuple[Move, ...]:
    """Where something is read from, after one more move."""
    if not move:
        return moves
    last = moves[-1] if moves else None
    # Two moves in a row are one: `x[1:][:-1]` and `x[:-1][1:]` look at the same places.
    if isinstance(last, tuple) and isinstance(move, tuple) and len(last) == len(move):
        both = tuple(map(operator.add, last, move))
        return (*moves[:-1], both) if any(both) else moves[:-1]
    return (*moves, move)
