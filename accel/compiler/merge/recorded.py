"""Recorded: what merging needs to know of one recording, and of the values that it held at joins."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from accel.ir.tape import Node, Tape
from accel.record import Trace
from accel.record.state.inputs import Inputs
from accel.record.state.joins import Join


class Recorded:
    """A recording whose tape is merged. slots: the merged slots of its own."""

    def __init__(self, trace: Trace, slots: Sequence[int]) -> None:
        self.tape, self.joins = trace.tape, trace.joins
        self.slots = slots
        aliases = {slot for pair in trace.aliases for slot in pair}
        # an argument is read once; under another name, if it has one, it is an alias
        self._arguments = {
            position
            for position, slot in enumerate(trace.inputs.slots, Inputs.ROOTS)
            if slot.fetch.parent is not None and slot.fetch.parent < Inputs.ROOTS and position not in aliases
        }

    def may_be_read_again(self, node: Node) -> bool:
        """Whether a node is an input that the program can reach under its own name at any time."""
        return node.is_input and node.args[0] not in self._arguments


class Alone(Recorded):
    """A tape by itself, without joins: that of a loop's iteration."""

    def __init__(self, tape: Tape, slots: Sequence[int]) -> None:
        self.tape, self.joins, self.slots = tape, [], slots

    def may_be_read_again(self, node: Node) -> bool:
        return False


def likeness(join: Join) -> Hashable:
    """Equal for joins at one place where the program holds recorded values of the same forms."""
    return join.point, tuple((node.shape, node.dtype, node.scalar) for node in join.values)
