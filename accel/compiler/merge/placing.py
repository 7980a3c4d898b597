"""Placing: the proof that a merged tape computes a path that was recorded after it was made.

The program of some paths often computes another one, too, whose branches are all among theirs. The program may be of
this process, or an earlier one's on disk. So a new path is followed through the merged tape. Each of its operations
must be there, with the right operands. Then the program in use takes its calls as well, and nothing is compiled.

A phi is followed once the value that it chooses by is known. An outcome is known once following has led to its node. So
each step holds for any call with the outcomes that the steps before have relied on.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from accel.compiler.merge.members import Placement
from accel.compiler.merge.outputs import OutputPlaces
from accel.compiler.merge.writer import form_of, outcome_key
from accel.ir.tape import Node, Outcome, Tape
from accel.record import Trace
from accel.record.run.outputs import Outputs
from accel.rules import core


class NotThere(Exception):
    """The merged tape does not compute a path."""


def operations_of(tape: Tape) -> dict[Hashable, list[Node]]:
    """The operations of a merged tape, by what each computes of its operands."""
    found: dict[Hashable, list[Node]] = {}
    for node in tape.nodes:
        if not node.is_input and node.rule is not core.PHI and node.rule is not core.CHOICE:
            found.setdefault(_operation(node), []).append(node)
    return found


def _operation(node: Node) -> Hashable:
    return id(node.rule), node.form, node.shape, node.dtype, node.scalar, node.host


class Placing:
    """Finds the place of one recorded path in a merged trace.

    slots: the merged slot of each of its own. operations: see `operations_of`.
    """

    def __init__(
        self,
        trace: Trace,
        slots: Sequence[int],
        tape: Tape,
        outputs: Outputs,
        operations: Mapping[Hashable, Sequence[Node]],
    ) -> None:
        self._trace, self._slots = trace, list(slots)
        self._tape, self._outputs, self._operations = tape, outputs, operations
        self._inputs = {node.args[0]: node for node in tape.nodes if node.is_input}
        self._computed: list[Node] = []  # the merged node of each of the path's
        self._known: dict[int, Any] = {}  # values of the path's outcomes, by index of the merged node
        self._outcomes: dict[int, Any] = {}  # as in `Placement`
        self._on_host: dict[int, Any] = {}

    def placement(self) -> Placement:
        """Return the path's placement. Raises NotThere if the merged tape does not compute it."""
        waiting = dict(enumerate(self._trace.tape.outcomes))
        assumed = {outcome.node.index for outcome in waiting.values()}
        for node in self._trace.tape.nodes:
            self._computed.append(self._input(node) if node.is_input else self._merged(node))
            # what is known by one outcome may lead to others
            while node.index in assumed and (shown := [at for at, each in waiting.items() if self._is_shown(each)]):
                for at in shown:
                    del waiting[at]
        if waiting:
            raise NotThere(f"the branch of line {next(iter(waiting.values())).where[1]}")
        node_of = [node.index for node in self._computed]
        return Placement(self._slots, self._places(), self._outcomes, self._observed(), self._on_host, node_of)

    def _input(self, node: Node) -> Node:
        found = self._inputs.get(self._slots[node.args[0]])
        if found is None or form_of(found) != form_of(node):
            raise NotThere(f"an input of line {node.where[1]}")
        return found

    def _merged(self, node: Node) -> Node:
        """The merged node that computes one of the path's operations."""
        operands = [self._computed[operand.index].index for operand in node.operands()]
        for found in self._operations.get(_operation(node), ()):
            own = found.operands()
            if len(own) == len(operands) and all(map(self._leads_to, own, operands)):
                return found
        raise NotThere(f"{node.rule.name} of line {node.where[1]}")

    def _followed(self, node: Node) -> Node | None:
        """The node that a merged node stands for; None if it is not known."""
        while node.rule is core.PHI:
            choice, sides = node.args
            decision, cases = choice.args
            by = self._followed(decision)
            if by is None or by.index not in self._known:
                return None
            value = self._known[by.index]
            side = next((side for side, case in zip(sides, cases, strict=True) if value in case), None)
            if side is None:
                return None
            node = side
        return node

    def _leads_to(self, node: Node, index: int) -> bool:
        """Whether a merged node is known to stand for the one of this index."""
        found = self._followed(node)
        return found is not None and found.index == index

    def _is_shown(self, outcome: Outcome) -> bool:
        """Whether a run shows an outcome of the path. If so, its value is known from here on."""
        if outcome.node.index >= len(self._computed):
            return False
        merged, expected = self._computed[outcome.node.index], outcome.expected
        if merged.host:
            is_shown = _same(self._on_host.setdefault(merged.index, expected), expected)
        else:
            outcomes = enumerate(self._tape.outcomes)
            found = next((at for at, each in outcomes if self._leads_to(each.node, merged.index)), None)
            is_shown = found is not None and _same(self._outcomes.setdefault(found, expected), expected)
        if is_shown:
            self._known[merged.index] = outcome_key(expected)
        return is_shown

    def _observed(self) -> dict[int, int]:
        """The positions of the outcomes on the device, by index of the merged node that each shows."""
        observed: dict[int, int] = {}
        for position, expected in self._outcomes.items():
            outcome = self._tape.outcomes[position]
            # a program does not check what all of its paths assume where that depends on its constants alone
            if outcome.expected is not None and repr(outcome.expected) != repr(expected):
                raise NotThere(f"the branch of line {outcome.where[1]}")
            shown = self._followed(outcome.node)
            assert shown is not None
            observed[shown.index] = position
        return observed

    def _places(self) -> OutputPlaces:
        own, merged = self._trace.outputs, self._outputs
        places = OutputPlaces(numbers=[self._place(node, merged.numbers) for node in own.numbers])
        for node in own.arrays:  # each is an array of its own, also where two of them hold the same
            free = [None if at in places.arrays else each for at, each in enumerate(merged.arrays)]
            places.arrays.append(self._place(node, free))
        for slot, node in own.changed:
            here = [each if into == self._slots[slot] else None for into, each in merged.changed]
            places.changed.append(self._place(node, here))
        return places

    def _place(self, node: Node, outputs: Sequence[Node | None]) -> int:
        """The position of a value of the path's among some merged outputs."""
        index = self._computed[node.index].index
        for at, output in enumerate(outputs):
            if output is not None and form_of(output) == form_of(node) and self._leads_to(output, index):
                return at
        raise NotThere(f"an output of line {node.where[1]}")


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)
