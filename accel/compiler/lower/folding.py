"""Folding: what a program takes for constant, and all that follows from that, computed once by NumPy itself.

A program that takes an input for constant is compiled again when it changes. Parameters of models change rarely, and
late: a tuned coefficient, a shorter time step. By then several paths have been compiled for the old value. So numbers
are constants only where a program gains by that.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from accel.compiler.lower.program import Known, Lowerable
from accel.ir.loop import body_of
from accel.ir.tape import Node
from accel.record import Trace
from accel.rules.evaluation import evaluate

_HANDED_BYTES = 4096
"""Minimum size of arrays that are handed to a program rather than compared in each call. Guess."""


class Folding:
    """The fixed nodes of a trace, which depend on constants alone, and their values.

    decided: nodes whose values lowering has asked for, so that the program may be another one for other values.
    """

    def __init__(self, trace: Lowerable, known: Known) -> None:
        self._trace = trace
        self._known = known
        self._fixed: dict[int, bool] = {}
        self._values: dict[int, Any] = {}
        self.decided: dict[int, Node] = {}

    @property
    def count(self) -> int:
        """Nodes whose values were computed."""
        return len(self._values)

    def is_fixed(self, node: Node) -> bool:
        """Whether the node's value is known before launch, on any later call."""
        if node.index >= len(self._trace.tape.nodes):  # made by the lowering itself
            return all(map(self.is_fixed, node.operands()))
        # For all nodes up to this one, in their order: operands come first, and no recursion is needed.
        for other in self._trace.tape.nodes[len(self._fixed) : node.index + 1]:
            self._fixed[other.index] = (
                other.args[0] in self._known or other.args[0] in self._trace.pinned
                if other.is_input
                # the iterations of a loop by data are computed by the device alone
                else body_of(other) is None and all(self._fixed[operand.index] for operand in other.operands())
            )
        return self._fixed[node.index]

    def value(self, node: Node) -> Any:
        """The value of a fixed node, for whoever decides something by it, or writes it into the program."""
        self.decided[node.index] = node
        return self.computed(node)

    def computed(self, node: Node) -> Any:
        """The value of a fixed node, for whoever takes it as it is."""
        for other in self._missing(node):
            self._values[other.index] = (
                self._input_value(other.args[0])
                if other.is_input
                else evaluate(other, lambda operand: self._values[operand.index])
            )
        return self._values[node.index]

    def _input_value(self, slot: int) -> Any:
        pinned = self._trace.pinned.get(slot)  # an array whose elements decided the path: guards compare it
        return self._known.value(slot) if pinned is None else pinned

    def _missing(self, node: Node) -> list[Node]:
        """The nodes that a fixed node's value needs and that are not computed yet, in order."""
        needed: dict[int, Node] = {}
        stack = [node]
        while stack:
            top = stack.pop()
            if top.index not in self._values and top.index not in needed:
                needed[top.index] = top
                stack.extend(top.operands())
        return [needed[index] for index in sorted(needed)]


def foldable(trace: Trace) -> frozenset[int]:
    """Slots that may be taken for constant: numbers, and arrays that are no direct arguments and are never written."""
    changed = {slot for slot, _ in trace.outputs.changed}
    arguments = {slot for key, slot in trace.inputs.entries() if key[0] in ("arg", "kwarg")}
    arrays = set(trace.array_slots) - changed - arguments - set(trace.pinned)
    return frozenset(arrays | set(trace.scalar_slots))


def not_worth_folding(trace: Lowerable, known: Known, *, are_arrays_free: bool) -> Collection[int]:
    """The slots of floats, and of arrays of them, that no program gains by knowing.

    are_arrays_free: whether programs read NumPy's arrays where they are. Constants stay on a device.

    They meet arrays that change, in plain arithmetic alone. What is computed from numbers before that, Python computes,
    and only when one of them has changed.
    """
    folding = Folding(trace, known)
    floats: set[int] = set()
    needed: set[int] = set()
    behind: dict[int, frozenset[int]] = {}  # the slots of floats that a node's value depends on
    for node in trace.tape.nodes:
        if node.is_input:
            slot = node.args[0]
            # NumPy's float64 among them
            is_float = isinstance(known.scalars.get(slot), float) or (
                are_arrays_free and _is_of_floats(known.arrays.get(slot))
            )
            behind[node.index] = frozenset({slot} if is_float else ())
            floats |= behind[node.index]
            continue
        behind[node.index] = frozenset().union(*(behind[operand.index] for operand in node.operands()))
        if node.host:  # Python computes it before launch: nothing is decided yet
            continue
        if folding.is_fixed(node) or not node.rule.cost.arithmetic:
            needed |= behind[node.index]
        behind[node.index] = frozenset()  # beyond, it is an array's value, which changes anyway
    return floats - needed


def _is_of_floats(array: Any) -> bool:
    """Whether to compare an array with its constant in each call takes longer than to hand it over."""
    return array is not None and array.dtype.kind == "f" and array.nbytes >= _HANDED_BYTES
