"""Arguments: the nodes whose values the device is given instead of computing them, and how each comes into the program.

They are inputs, numbers that Python computes before launch, and what does not change (see
accel.compiler.lower.folding). In the order of their use, since positions are part of the program's fingerprint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.compiler.lower.folding import Folding
from accel.compiler.lower.operations import as_array
from accel.compiler.lower.program import PACKS, pack_of
from accel.ir.fingerprint import Indescribable
from accel.ir.tape import Node

EMBEDDED = 8
"""Maximum number of elements of a constant that is written into the program, where XLA computes with it. Larger
constants are arguments, so that one compiled program serves any values; their values are no part of its fingerprint."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """A value that is written into the program."""

    value: Any


@dataclass(frozen=True, slots=True)
class Constant:
    """The constant at a position, which each launch is given anew."""

    position: int


@dataclass(frozen=True, slots=True)
class HostScalar:
    """An element of the vector `pack` (see PACKS) of numbers that Python computes before a launch."""

    pack: str
    position: int


@dataclass(frozen=True, slots=True)
class InputArray:
    """The input array at a position."""

    position: int


Way = Embedded | Constant | HostScalar | InputArray
"""Way in which an argument comes into the program."""


class ProgramArguments:
    """The arguments of one program.

    slots: of the input arrays. constants: what the device keeps. scalars: host nodes by pack.
    """

    def __init__(self, folding: Folding) -> None:
        self.slots: list[int] = []
        self.constants: list[NDArray[Any]] = []
        self.scalars: dict[str, list[Node]] = {pack: [] for pack in PACKS}
        self._folding = folding
        self._ways: dict[int, Way] = {}
        self._tables: dict[int, int] = {}  # by id of a loop's table: its position among the constants

    def includes(self, node: Node) -> bool:
        """Whether the device is given the node's value."""
        if node.is_input or node.host:
            return True
        # What is one number repeated (`np.zeros(shape)`) the device makes faster than it reads it.
        return self._folding.is_fixed(node) and not (node.rule.cost.by_shape and node.constant)

    def holds(self, node: Node) -> bool:
        """Whether the device is given the node's value in this program."""
        return node.index in self._ways

    def add(self, node: Node) -> None:
        """Give an argument its way into the program."""
        if self.includes(node) and node.index not in self._ways:
            self._ways[node.index] = self._way_of(node)

    def add_table(self, table: NDArray[Any]) -> None:
        """Make an argument of what a loop's iterations look up, if it is large."""
        if table.size > EMBEDDED:
            self._tables[id(table)] = len(self.constants)
            self.constants.append(table)

    @property
    def tables(self) -> list[NDArray[Any]]:
        """The tables that are arguments."""
        return [self.constants[position] for position in self._tables.values()]

    def _way_of(self, node: Node) -> Way:
        if self._folding.is_fixed(node):
            return self._fixed(node)
        if node.host:
            pack = pack_of(node.dtype)
            self.scalars[pack].append(node)
            return HostScalar(pack, len(self.scalars[pack]) - 1)
        slot = node.args[0]
        if slot not in self.slots:
            self.slots.append(slot)
        return InputArray(self.slots.index(slot))

    def _fixed(self, node: Node) -> Way:
        value = self._folding.computed(node)
        if not isinstance(value, np.ndarray) or value.size <= EMBEDDED:
            return Embedded(self._folding.value(node))
        self.constants.append(np.ascontiguousarray(value))
        return Constant(len(self.constants) - 1)

    @property
    def computed(self) -> dict[int, int]:
        """Positions of the constants that are values of nodes, by index of the node."""
        return {index: way.position for index, way in self._ways.items() if isinstance(way, Constant)}

    # -- for the fingerprint, and inside the program ------------------------------------------------------------------

    def described(self, node: Node) -> Any:
        """Describe a value that the device does not compute, in the form of the fingerprint.

        Raises Indescribable for values that it computes.
        """
        match self._ways.get(node.index):
            case Embedded(value):
                return "value", value
            case Constant(position):
                return "constant", position
            case HostScalar(pack, position):
                return "host", (pack, position)
            case InputArray(position):
                return "array", position
        if not self._folding.is_fixed(node):
            raise Indescribable("an operand that is no argument of it")
        return "value", self._folding.value(node)  # iterations of a loop look it up, as what stands at its place there

    def value(self, node: Node, arrays: list[Any], constants: list[Any], scalars: dict[str, Any]) -> Any:
        """An argument's value inside the program."""
        match self._ways[node.index]:
            case Embedded(value):
                return as_array(value)
            case Constant(position):
                return constants[position]
            case HostScalar(pack, position):
                return scalars[pack][position].astype(node.dtype)
            case InputArray(position):
                return arrays[position]

    def table(self, values: NDArray[Any], constants: list[Any]) -> Any:
        """A loop's table inside the program."""
        position = self._tables.get(id(values))
        return values if position is None else constants[position]
