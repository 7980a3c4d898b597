"""Following: the values that a merged tape computes for one call.

A phi chooses by an outcome. So what a merged node stands for follows from the outcomes of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from accel.compiler.merge.outputs import OutputPlaces
from accel.compiler.merge.writer import form_of, outcome_key
from accel.ir.tape import Node, Tape
from accel.record.run.outputs import Outputs
from accel.rules import core

T = TypeVar("T")


class Computing:
    """Gives the merged nodes that compute what a recorded one does, if their operands are what they should be."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._alike: dict[Hashable, list[Node]] = {}

    def __call__(self, node: Node) -> Sequence[Node]:
        if not self._alike:
            for each in self._tape.nodes:
                if not each.is_input and each.rule is not core.PHI and each.rule is not core.CHOICE:
                    self._alike.setdefault(_operation(each), []).append(each)
        return self._alike.get(_operation(node), [])


class NotThere(Exception):
    """The merged tape does not compute a path."""


class MergedWay:
    """Values that a merged tape computes for one call, as far as the call's outcomes determine them. Raises nothing.

    A phi is followed if its decision is known already. An outcome is known if following has led to its node. So every
    step holds for any call with the outcomes that the steps before have relied on.

    outcomes, on_host: the call's outcomes, as in `Placement`.
    """

    def __init__(self, tape: Tape) -> None:
        self.outcomes: dict[int, Any] = {}
        self.on_host: dict[int, Any] = {}
        self._tape = tape
        self._known: dict[int, Any] = {}  # by index of a merged node

    def follow(self, node: Node) -> Node | None:
        """Return the node that a merged node stands for; None if it is not known."""
        while node.rule is core.PHI:
            choice, sides = node.args
            decision, cases = choice.args
            by = self.follow(decision)
            if by is None or by.index not in self._known:
                return None
            value = self._known[by.index]
            side = next((side for side, case in zip(sides, cases, strict=True) if value in case), None)
            if side is None:
                return None
            node = side
        return node

    def leads_to(self, node: Node, index: int) -> bool:
        """Whether a merged node is known to stand for the one of this index."""
        found = self.follow(node)
        return found is not None and found.index == index

    def computes(self, merged: Node, operands: Sequence[int]) -> bool:
        """Whether a merged node is computed from these, by their indices."""
        own = merged.operands()
        return len(own) == len(operands) and all(map(self.leads_to, own, operands))

    def shows(self, merged: Node, expected: Any) -> bool:
        """Whether a run shows the value of a merged node. If so, it is known from here on to be the expected one."""
        if merged.host:
            is_shown = _same(self.on_host.setdefault(merged.index, expected), expected)
        else:
            positions = range(len(self._tape.outcomes))
            found = next((at for at in positions if self.leads_to(self._tape.outcomes[at].node, merged.index)), None)
            is_shown = found is not None and _same(self.outcomes.setdefault(found, expected), expected)
        if is_shown:
            self._known[merged.index] = outcome_key(expected)
        return is_shown

    def settle(self, waiting: dict[int, T], is_shown: Callable[[T], bool]) -> None:
        """Take out what is shown, as far as following leads to it by now. What is known then may lead to more."""
        while found := [key for key, each in waiting.items() if is_shown(each)]:
            for key in found:
                del waiting[key]

    def places(
        self, own: Outputs, slots: Sequence[int], merged: Outputs, value_of: Callable[[Node], Node]
    ) -> OutputPlaces:
        """Return the positions of a recording's outputs among the merged ones. Raises NotThere.

        slots: the merged slot of each of its own. value_of: gives the merged node that computes one of its own.
        """

        def place(node: Node, outputs: Sequence[Node | None]) -> int:
            return self._place(node, value_of(node), outputs)

        arrays: list[int] = []
        for node in own.arrays:  # each is an array of its own, also where two of them hold the same
            arrays.append(place(node, [None if at in arrays else each for at, each in enumerate(merged.arrays)]))
        return OutputPlaces(
            arrays,
            [place(node, merged.numbers) for node in own.numbers],
            [
                place(node, [each if into == slots[slot] else None for into, each in merged.changed])
                for slot, node in own.changed
            ],
        )

    def _place(self, node: Node, computed: Node, outputs: Sequence[Node | None]) -> int:
        """Return the position of a node's value among some merged outputs.

        computed: the merged node that computes it.
        """
        for at, output in enumerate(outputs):
            if output is not None and form_of(output) == form_of(node) and self.leads_to(output, computed.index):
                return at
        raise NotThere(f"an output of line {node.where[1]}")


def _operation(node: Node) -> Hashable:
    return id(node.rule), node.form, node.shape, node.dtype, node.scalar, node.host


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)
