"""Following: the proof that a merged tape computes a walk.

A walk is a way of the program, but that does not make the merged tape compute it. Its phis may choose by an outcome
that told the recorded paths apart by chance. So a walk is followed through the tape. Each of its operations must be
there, with the right operands, where phis choose by the walk's own assumptions. Only then the walk is accepted, with
these assumptions. So each accepted walk is proved as the recorded paths are (`Writer.check`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from accel.ir.tape import Node, Outcome, Tape
from accel.merge.alignment import static_form
from accel.merge.members import Member
from accel.merge.outputs import OutputPlaces
from accel.merge.walks import Part, Walks
from accel.merge.writer import outcome_key
from accel.record import Trace
from accel.record.run.outputs import Outputs
from accel.rules import core

T = TypeVar("T")


@dataclass(slots=True)
class CrossedTrace(Trace):
    """Outputs of a walk: those of the recording in which it ends. Its tape has the walk's outcomes.

    ends_in: that recording. edges: where the walk goes on as no recording did. Each edge is named by the last
    assumption before it and the next one.
    """

    ends_in: Trace | None = None
    edges: frozenset[Hashable] = frozenset()


@dataclass(slots=True)
class Accepted:
    """A walk that the merged tape computes.

    trace: what it returns and leaves. slots: the merged slots of its own. members: a mask of those that it consists of.
    outcomes: what it assumes on the device, by position. on_host: the same of what Python computes, by index of the
    node. outputs: where its outputs are. host: indices of what Python computes for it. changed, arrays: merged slots of
    the arrays from outside that are written to, and of all that are read.
    """

    trace: CrossedTrace
    slots: list[int]
    members: int
    outcomes: dict[int, Any]
    on_host: dict[int, Any]
    outputs: OutputPlaces
    host: frozenset[int]
    changed: list[int]
    arrays: list[int]


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
    """The merged tape does not compute a walk."""


class MergedWay:
    """Values that a merged tape computes for one call, as far as the call's outcomes determine them. Raises nothing.

    A phi is followed if its decision is known already. An outcome is known if following has led to its node. So every
    step holds for any call with the outcomes that the steps before have relied on.

    outcomes, on_host: the call's outcomes, as in `Accepted`.
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

    def shows(self, merged: Node, expected: Any, likely: int | None = None) -> bool:
        """Whether a run shows the value of a merged node. If so, it is known from here on to be the expected one.

        likely: the position of the outcome that probably shows it.
        """
        if merged.host:
            is_shown = _same(self.on_host.setdefault(merged.index, expected), expected)
        else:
            positions = range(len(self._tape.outcomes))
            order = positions if likely is None else (likely, *positions)
            found = next((at for at in order if self.leads_to(self._tape.outcomes[at].node, merged.index)), None)
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
        self,
        own: Outputs,
        slots: Sequence[int],
        merged: Outputs,
        value_of: Callable[[Node], Node],
        likely: OutputPlaces | None = None,
    ) -> OutputPlaces:
        """Return the positions of a recording's outputs among the merged ones. Raises NotThere.

        slots: the merged slot of each of its own. value_of: gives the merged node that computes one of its own. likely:
        where the outputs probably are.
        """

        def place(node: Node, outputs: Sequence[Node | None], at: int | None) -> int:
            return self._place(node, value_of(node), outputs, at)

        arrays, numbers, changed = (
            ([None] * len(own.arrays), [None] * len(own.numbers), [None] * len(own.changed))
            if likely is None
            else (likely.arrays, likely.numbers, likely.changed)
        )
        return OutputPlaces(
            [place(node, merged.arrays, at) for node, at in zip(own.arrays, arrays, strict=True)],
            [place(node, merged.numbers, at) for node, at in zip(own.numbers, numbers, strict=True)],
            [
                place(node, [each if into == slots[slot] else None for into, each in merged.changed], at)
                for (slot, node), at in zip(own.changed, changed, strict=True)
            ],
        )

    def _place(self, node: Node, computed: Node, outputs: Sequence[Node | None], likely: int | None) -> int:
        """Return the position of a node's value among some merged outputs.

        computed: the merged node that computes it.
        """
        positions = range(len(outputs))
        for at in positions if likely is None else (likely, *positions):
            output = outputs[at]
            if output is not None and form_of(output) == form_of(node) and self.leads_to(output, computed.index):
                return at
        raise NotThere(f"an output of line {node.where[1]}")


class Following:
    """Follows one walk through the merged tape. Raises NotThere."""

    def __init__(self, walks: Walks, tape: Tape, outputs: Outputs, computing: Computing, walk: list[Part]) -> None:
        self._walks = walks
        self._walk = walk
        self._tape = tape
        self._merged_outputs = outputs
        self._computing = computing
        self._way = MergedWay(tape)
        self._values: dict[int, Node] = {}  # of the part's recording, by index of the node
        self._doubtful: dict[int, int | None] = {}  # as in Substitution
        self._host: set[int] = set()

    def accepted(self) -> Accepted:
        before: Part | None = None
        for part in self._walk:
            if before is not None:
                self._cross(before, part)
            self._part(part)
            before = part
        last = self._walks.member(self._walk[-1].member)
        members = 0
        for part in self._walk:
            members |= 1 << part.member
        places = self._places(last)
        return Accepted(
            self._trace(last),
            last.placement.slots,
            members,
            self._way.outcomes,
            self._way.on_host,
            places,
            frozenset(self._host),
            sorted(self._walks.recorded(self._walk[-1].member).changed),
            sorted(set().union(*(self._walks.recorded(part.member).arrays for part in self._walk))),
        )

    def _trace(self, last: Member) -> CrossedTrace:
        own = {each.name: getattr(last.trace, each.name) for each in fields(Trace)}
        outcomes = [
            Outcome(node, expected, node.where) for part in self._walk for node, expected in self._walks.assumed(part)
        ]
        own["tape"] = Tape(last.trace.tape.nodes, outcomes)
        pairs = zip(self._walk[:-1], self._walk[1:], strict=True)
        edges = frozenset(self._walks.edge(before, after) for before, after in pairs)
        return CrossedTrace(**own, ends_in=last.trace, edges=edges)

    def _cross(self, before: Part, after: Part) -> None:
        crossed, recorded = self._walks.crossed(before, after), self._walks.recorded(after.member)
        # what was in doubt for the recording before is for this one: it compares itself with that one only
        still = {memory.number: self._doubtful[at] for memory, at in crossed.memories if at in self._doubtful}
        for memory, at in crossed.memories:
            if at in self._doubtful and not recorded.leaves_alone(memory, self._doubtful[at]):
                raise NotThere
        self._doubtful = crossed.doubtful | still
        values: dict[int, Node] = {}
        for index, value in crossed.values.items():
            if isinstance(value, Node):
                values[index] = self._value(before.member, value)
            else:
                values[index] = self._input(value)
        self._values = values

    def _input(self, slot: int) -> Node:
        found = next((node for node in self._tape.nodes if node.is_input and node.args[0] == slot), None)
        if found is None:
            raise NotThere
        return found

    def _value(self, number: int, node: Node) -> Node:
        """The merged node of what a recorded one stands for on the walk. number: the member's."""
        member = self._walks.member(number)
        found = self._values.get(node.index)
        if found is None and (node.constant or self._walks.recorded(number).may_be_read_again(node)):
            found = self._tape.nodes[member.placement.node_of[node.index]]
        if found is None:
            raise NotThere  # computed before a join, and not held there
        return found

    def _part(self, part: Part) -> None:
        member = self._walks.member(part.member)
        start, end = self._walks.joins(part)
        nodes = member.trace.tape.nodes[start.nodes if start else 0 : end.nodes if end else None]
        waiting: dict[int, tuple[Node, Any]] = {node.index: (node, v) for node, v in self._walks.assumed(part)}
        self._assume(part.member, waiting)
        for node in nodes:
            self._compute(part.member, node)
            if node.index in waiting:
                self._assume(part.member, waiting)
        if waiting:
            raise NotThere

    def _compute(self, member: int, node: Node) -> None:
        merged = self._tape.nodes[self._walks.member(member).placement.node_of[node.index]]
        if not node.is_input and not node.constant:
            wanted = [self._value(member, operand).index for operand in node.operands()]
            found = next((each for each in (merged, *self._computing(node)) if self._way.computes(each, wanted)), None)
            if found is None:
                raise NotThere
            merged = found
        self._values[node.index] = merged
        if merged.host:
            self._host.add(merged.index)

    def _assume(self, member: int, waiting: dict[int, tuple[Node, Any]]) -> None:
        """Note what is known once the run has shown it, as far as following leads to it by now."""
        observed = self._walks.member(member).placement.observed

        def is_shown(assumed: tuple[Node, Any]) -> bool:
            node, expected = assumed
            merged = self._values.get(node.index)
            if merged is None and self._walks.recorded(member).may_be_read_again(node):
                merged = self._value(member, node)
            return merged is not None and self._way.shows(merged, expected, observed.get(merged.index))

        self._way.settle(waiting, is_shown)

    def _places(self, last: Member) -> OutputPlaces:
        """Return the positions of the walk's outputs among the merged ones."""
        place, number = last.placement, self._walk[-1].member
        return self._way.places(
            last.trace.outputs,
            place.slots,
            self._merged_outputs,
            lambda node: self._value(number, node),
            place.outputs,
        )


def _operation(node: Node) -> Hashable:
    form = static_form((node.args, node.kwargs), _nothing)
    return id(node.rule), form, node.shape, node.dtype, node.scalar, node.host


def _nothing(node: Node) -> None:
    return None


def form_of(node: Node) -> Hashable:
    """Return the properties that two values must share for one to replace the other."""
    return node.shape, node.dtype, node.scalar


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)
