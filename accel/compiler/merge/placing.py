"""Placing: the proof that a merged tape computes a path that was recorded after it was made.

The program of some paths often computes another one, too, whose branches are all among theirs. The program may be of
this process, or an earlier one's on disk. So a new path is followed through the merged tape, as walks are (see
accel.compiler.merge.following). Each of its operations must be there, with the right operands. Then the program in use
takes its calls as well, and nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence

from accel.compiler.merge.following import Computing, MergedWay, NotThere
from accel.compiler.merge.members import Placement
from accel.compiler.merge.writer import form_of
from accel.ir.tape import Node, Outcome, Tape
from accel.record import Trace
from accel.record.run.outputs import Outputs


class Placing:
    """Finds the place of one recorded path in a merged trace. slots: the merged slot of each of its own."""

    def __init__(self, trace: Trace, slots: Sequence[int], tape: Tape, outputs: Outputs, computing: Computing) -> None:
        self._trace = trace
        self._slots = list(slots)
        self._tape = tape
        self._merged_outputs = outputs
        self._computing = computing
        self._inputs = {node.args[0]: node for node in tape.nodes if node.is_input}
        self._way = MergedWay(tape)
        self._computed: list[Node] = []  # the merged node of each of the path's

    def placement(self) -> Placement:
        """Return the path's placement. Raises NotThere if the merged tape does not compute it."""
        waiting = dict(enumerate(self._trace.tape.outcomes))
        assumed = {outcome.node.index for outcome in waiting.values()}
        for node in self._trace.tape.nodes:
            self._computed.append(self._input(node) if node.is_input else self._operation(node))
            if node.index in assumed:
                self._way.settle(waiting, self._is_shown)
        if waiting:
            raise NotThere(f"the branch of line {next(iter(waiting.values())).where[1]}")
        return Placement(
            self._slots,
            self._way.places(self._trace.outputs, self._slots, self._merged_outputs, self._merged),
            self._way.outcomes,
            self._observed(),
            self._way.on_host,
            [node.index for node in self._computed],
        )

    def _input(self, node: Node) -> Node:
        found = self._inputs.get(self._slots[node.args[0]])
        if found is None or form_of(found) != form_of(node):
            raise NotThere(f"an input of line {node.where[1]}")
        return found

    def _operation(self, node: Node) -> Node:
        operands = [self._merged(operand).index for operand in node.operands()]
        found = next((each for each in self._computing(node) if self._way.computes(each, operands)), None)
        if found is None:
            raise NotThere(f"{node.rule.name} of line {node.where[1]}")
        return found

    def _is_shown(self, outcome: Outcome) -> bool:
        computed = outcome.node.index < len(self._computed)
        return computed and self._way.shows(self._merged(outcome.node), outcome.expected)

    def _observed(self) -> dict[int, int]:
        """The positions of the outcomes on the device, by index of the merged node that each shows."""
        observed: dict[int, int] = {}
        for position, expected in self._way.outcomes.items():
            common = self._tape.outcomes[position].expected
            # a program does not check what all of its paths assume where that depends on its constants alone
            if common is not None and repr(common) != repr(expected):
                raise NotThere(f"the branch of line {self._tape.outcomes[position].where[1]}")
            shown = self._way.follow(self._tape.outcomes[position].node)
            assert shown is not None
            observed[shown.index] = position
        return observed

    def _merged(self, node: Node) -> Node:
        return self._computed[node.index]
