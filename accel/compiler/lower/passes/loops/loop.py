"""Rolled loops: iterations of equal operations, with what their operands are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from accel.compiler.lower.passes.loops.operands import Invariant, LoopOperand, MovingRead, Stacked, Table
from accel.ir.tape import Node


@dataclass(slots=True)
class Loop:
    """Iterations of equal operations. The first is computed as it stands.

    A *position* is an operation's place in an iteration, counted from 0. The first iteration gives the values that the
    second takes from the one before. A loop in JAX needs these initial values, of the right shapes and dtypes.

    rows: for each operation of an iteration, its operands, in the order of `leaves`. carried: positions whose values go
    into the next iteration, or out of the last. collected: positions whose values of every iteration are used.
    """

    iterations: list[Sequence[Node]]
    rows: list[list[LoopOperand]]
    carried: list[int]
    collected: list[int]

    @property
    def size(self) -> int:
        """Operations of an iteration."""
        return len(self.rows)

    @property
    def first(self) -> Sequence[Node]:
        """The first iteration, which is computed before the loop."""
        return self.iterations[0]

    @property
    def operations(self) -> Sequence[Node]:
        """The operations of every later iteration: those of the second, as `rows` describes them."""
        return self.iterations[1]

    @property
    def last(self) -> Sequence[Node]:
        """The last iteration, whose values go by its own nodes after the loop."""
        return self.iterations[-1]

    @property
    def count(self) -> int:
        """The iterations after the first."""
        return len(self.iterations) - 1

    def numbered_operands(self) -> Iterator[tuple[tuple[int, int], LoopOperand]]:
        """Every operand, by the position of its operation and its own place among that one's operands."""
        for position, row in enumerate(self.rows):
            for place, operand in enumerate(row):
                yield (position, place), operand

    def operands(self) -> Iterator[Node]:
        """The values that it takes."""
        for node in self.first:
            yield from node.operands()
        yield from self.from_outside()
        for operand in self.all_operands():
            if isinstance(operand, Stacked):
                yield from operand.nodes

    @property
    def tables(self) -> list[Any]:
        """Lookup tables of its iterations."""
        return [operand.values for operand in self.all_operands() if isinstance(operand, Table)]

    def all_operands(self) -> Iterator[LoopOperand]:
        for row in self.rows:
            yield from row

    def from_outside(self) -> Iterator[Node]:
        """The values that the iterations take from outside the loop."""
        for operand in self.all_operands():
            if isinstance(operand, MovingRead):
                yield operand.base
            elif isinstance(operand, Invariant) and isinstance(operand.leaf, Node):
                yield operand.leaf
