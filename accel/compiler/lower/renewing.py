"""Renewing: the constants of a program for other values of what it takes for constant, without lowering it again.

Lowering a whole step again takes a quarter of a second, and one field of it may change every hour of a model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from accel.compiler.lower.arguments import ProgramArguments
from accel.compiler.lower.folding import Folding
from accel.compiler.lower.program import Known, Lowerable
from accel.ir.bits import same_value
from accel.ir.tape import Node


class OtherWay(Exception):
    """Another side of a branch follows from constants, so that a call with them takes another path."""


class ConstantsAnew:
    """Parts of one program that depend on its constants.

    They include all values that lowering has asked for. Values that the program is given at each launch may change. On
    any other, lowering has based a decision, or has written it into the program: it has to stay the same.
    """

    def __init__(
        self, trace: Lowerable, positions: Mapping[int, int], constants: Sequence[Any], decided: Mapping[int, Any]
    ) -> None:
        """positions: of the constants, by index of the node that each is the value of. decided: values by node."""
        self._trace = trace
        self._positions = positions
        self._constants = constants
        self._branches = {outcome.node.index for outcome in trace.tape.outcomes}
        self._decided = decided

    @classmethod
    def of(cls, trace: Lowerable, folding: Folding, arguments: ProgramArguments) -> ConstantsAnew:
        """Collect the values that lowering has asked for."""
        decided = {index: folding.computed(node) for index, node in folding.decided.items()}
        return cls(trace, arguments.computed, arguments.constants, decided)

    def packed(self) -> tuple[Any, ...]:
        """Return it as data, without the facts that the trace and the program's constants hold."""
        return self._positions, self._decided

    @classmethod
    def unpacked(cls, packed: tuple[Any, ...], trace: Lowerable, stored: Iterable[Any]) -> ConstantsAnew:
        """Restore it from data, on another process's trace. stored: the constants."""
        positions, decided = packed
        return cls(trace, positions, list(stored), decided)

    @np.errstate(all="ignore")  # it is computed again: NumPy has warned before
    def constants(self, known: Known, changed: Collection[int]) -> Mapping[int, Any] | None:
        """The constants, by position, that are others where these slots have changed; None: it is another program.

        Raises OtherWay.
        """
        nodes = self._trace.tape.nodes
        reached = _depending(nodes, changed)
        folding = Folding(self._trace, known)
        others = {
            index
            for index, value in self._decided.items()
            if index in reached and not same_value(folding.computed(nodes[index]), value)
        }
        if not others.issubset(self._branches):
            return None
        if others:
            raise OtherWay
        found: dict[int, Any] = {}
        for index, position in self._positions.items():
            if index in reached:
                value, constant = folding.computed(nodes[index]), self._constants[position]
                if (value.shape, value.dtype) != (constant.shape, constant.dtype):
                    return None
                found[position] = np.ascontiguousarray(value)
        return found


def _depending(nodes: list[Node], slots: Collection[int]) -> set[int]:
    """Indices of the nodes that follow from some slots."""
    found: set[int] = set()
    for node in nodes:
        reads = node.args[0] in slots if node.is_input else any(each.index in found for each in node.operands())
        if reads:
            found.add(node.index)
    return found
