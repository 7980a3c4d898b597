"""Crossings: calls that none of the recorded paths takes, but that go from one of them to another where these join.

A *walk* is such a way: parts of recordings, each from a join to a join or to an end, where certificates
(accel.merge.certificates) allow one to go on as another. `walks` finds those that agree with what a run has shown.

That a walk is a way of the program does not make the merged tape compute it: its phis may choose by an outcome that told
the recorded paths apart by chance. So a walk is *followed* through the tape: each of its operations must be there, with
the right operands, where phis choose by what the walk has been seen to assume. Only then it is accepted, with what it
assumes; so each accepted walk is proved as the recorded paths are (`Writer.check`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from accel.ir.tape import Node, Outcome, Tape
from accel.merge.alignment import static_form
from accel.merge.certificates import Classes, Recorded, Substitution, expected_of, substitution
from accel.merge.members import Member
from accel.merge.outputs import OutputPlaces
from accel.merge.writer import outcome_key
from accel.record import Trace
from accel.record.outputs import Outputs
from accel.record.parts.joins import Join
from accel.rules import core

MOST_TRIED = 16
"""So many walks that agree with a run are followed."""


class Part(NamedTuple):
    """A part of a walk: a member's recording from a join (0: its start) to a join, by number, or to its end."""

    member: int
    first: int
    last: int


@dataclass(slots=True)
class CrossedTrace(Trace):
    """What a walk returns and leaves: what the recording does in which it ends. Its tape has the walk's outcomes.

    ends_in: that recording. edges: where it goes on as no recording did, each by what it had assumed last, and assumes
    next.
    """

    ends_in: Trace | None = None
    edges: frozenset[Hashable] = frozenset()


@dataclass(slots=True)
class Accepted:
    """A walk that the merged tape computes.

    trace: what it returns and leaves. slots: the merged slots of its own. members: a mask of those
    that it consists of. outcomes: what it assumes on the device, by position. on_host: the same of what Python computes,
    by index of the node. outputs: where its outputs are. host: indices of what Python computes for it. changed, arrays:
    merged slots of the arrays from outside that are written to, and of all that are read.
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


Shown = Callable[[int, Node], Any]
"""What a run has shown of a member's node; None where that is not known."""


class Crossings:
    """The walks of a merged trace: its tape, its outputs and its members."""

    def __init__(self, tape: Tape, outputs: Outputs, members: Sequence[Member]) -> None:
        self._tape = tape
        self._outputs = outputs
        self._members = members
        self._recorded = [Recorded(each.trace, each.placement.slots) for each in members]
        classes = Classes()
        self._classes = [classes.of(each.trace, each.placement.slots) for each in members]
        self._at: dict[int, list[tuple[int, int]]] = {}  # by class: member and number of the join
        for member, own in enumerate(self._classes):
            for number, each in enumerate(own):
                self._at.setdefault(each, []).append((member, number))
        self._assumed = [_by_part(each.trace) for each in members]
        self._substitutions: dict[tuple[int, int, int, int], Substitution | None] = {}
        self._alike: dict[Hashable, list[Node]] = {}
        self.exist = any(len({member for member, _ in each}) > 1 for each in self._at.values())

    # -- finding walks ------------------------------------------------------------------------------------------------

    def walks(self, members: int, shown: Shown) -> Iterator[list[Part]]:
        """The walks through some members, given as a mask, that agree with what a run has shown; each end once."""
        starts = [member for member in range(len(self._members)) if members >> member & 1]
        waiting = [(member, 0, ()) for member in reversed(starts)]
        seen: set[tuple[int, int]] = set()
        while waiting:
            member, number, before = waiting.pop()
            if (member, number) in seen:
                continue
            seen.add((member, number))
            assumed = self._assumed[member][number]
            if not all(_agrees(shown(member, node), value) for node, value in assumed):
                continue
            way = (*before, (member, number))
            if number == len(self._classes[member]):
                yield _parts(way)
                continue
            waiting += [(*other, way) for other in self._next(members, member, number)]

    def _next(self, members: int, member: int, number: int) -> Iterator[tuple[int, int]]:
        """Where a walk may go on from the end of a member's part; last what is tried first: that it stays there."""
        for other, join in self._at[self._classes[member][number]]:
            if other != member and members >> other & 1 and self._substitution(member, number, other, join) is not None:
                yield other, join + 1
        yield member, number + 1

    def _substitution(self, member: int, number: int, other: int, join: int) -> Substitution | None:
        key = member, number, other, join
        if key not in self._substitutions:
            before, after = self._recorded[member], self._recorded[other]
            joins = before.trace.joins[number], after.trace.joins[join]
            self._substitutions[key] = substitution(before, joins[0], after, joins[1])
        return self._substitutions[key]

    def accepted(self, members: int, shown: Shown) -> Accepted | None:
        """A walk that agrees with what a run has shown, and that the tape computes."""
        for tried, walk in enumerate(self.walks(members, shown)):
            if tried >= MOST_TRIED:
                return None
            if len(walk) > 1:
                found = self._followed(walk)
                if found is not None:
                    return found
        return None

    # -- the proof ----------------------------------------------------------------------------------------------------

    def _followed(self, walk: list[Part]) -> Accepted | None:
        try:
            return _Following(self, walk).accepted()
        except NotThere:
            return None

    def member(self, number: int) -> Member:
        """A member by its number."""
        return self._members[number]

    def recorded(self, number: int) -> Recorded:
        """What certificates know of a member."""
        return self._recorded[number]

    def joins(self, part: Part) -> tuple[Join | None, Join | None]:
        """The joins at which a part begins and ends."""
        joins = self._members[part.member].trace.joins
        return (joins[part.first - 1] if part.first else None), (joins[part.last] if part.last < len(joins) else None)

    def assumed(self, part: Part) -> list[tuple[Node, Any]]:
        """What a part assumes."""
        return [each for number in range(part.first, part.last + 1) for each in self._assumed[part.member][number]]

    def edge(self, before: Part, after: Part) -> Hashable:
        """What tells a crossing from others: the class of the join, and what is assumed last before and first after it."""
        sides = [(before.member, before.last), (after.member, after.first)]
        assumed = [
            tuple((self._members[member].placement.node_of[node.index], repr(expected)) for node, expected in each)
            for member, number in sides
            for each in (self._assumed[member][number],)
        ]
        return self._classes[before.member][before.last], *assumed

    def crossed(self, before: Part, after: Part) -> Substitution:
        """What stands for the values of the part after, by those of the part before."""
        found = self._substitution(before.member, before.last, after.member, after.first - 1)
        assert found is not None
        return found

    def outputs(self) -> tuple[Tape, Outputs]:
        """The merged tape, and what of it is an output."""
        return self._tape, self._outputs

    def alike(self, node: Node) -> list[Node]:
        """The merged nodes that compute what a recorded node does, if their operands are what they should be."""
        if not self._alike:
            for each in self._tape.nodes:
                if not each.is_input and each.rule is not core.PHI and each.rule is not core.CHOICE:
                    self._alike.setdefault(_operation(each), []).append(each)
        return self._alike.get(_operation(node), [])


class NotThere(Exception):
    """The merged tape does not compute a walk."""


class _Following:
    """Follows one walk through the merged tape. Raises NotThere.

    Every step holds for any call that shows what the steps before have relied on. So phis are followed by what is known
    already, and an outcome is known where following has led to its node.
    """

    def __init__(self, crossings: Crossings, walk: list[Part]) -> None:
        self._crossings = crossings
        self._walk = walk
        self._tape, self._merged_outputs = crossings.outputs()
        self._known: dict[int, Any] = {}  # by index of a merged node
        self._values: dict[int, Node] = {}  # of the part's recording, by index of the node
        self._doubtful: dict[int, int | None] = {}  # as in Substitution
        self._host: set[int] = set()
        self._outcomes: dict[int, Any] = {}
        self._on_host: dict[int, Any] = {}

    def accepted(self) -> Accepted:
        before: Part | None = None
        for part in self._walk:
            if before is not None:
                self._cross(before, part)
            self._part(part)
            before = part
        last = self._crossings.member(self._walk[-1].member)
        members = 0
        for part in self._walk:
            members |= 1 << part.member
        places = self._places(last)
        return Accepted(
            self._trace(last),
            last.placement.slots,
            members,
            self._outcomes,
            self._on_host,
            places,
            frozenset(self._host),
            sorted(self._crossings.recorded(self._walk[-1].member).changed),
            sorted(set().union(*(self._crossings.recorded(part.member).arrays for part in self._walk))),
        )

    def _trace(self, last: Member) -> CrossedTrace:
        own = {each.name: getattr(last.trace, each.name) for each in fields(Trace)}
        outcomes = [
            Outcome(node, expected, node.where) for part in self._walk for node, expected in self._crossings.assumed(part)
        ]
        own["tape"] = Tape(last.trace.tape.nodes, outcomes)
        pairs = zip(self._walk[:-1], self._walk[1:], strict=True)
        edges = frozenset(self._crossings.edge(before, after) for before, after in pairs)
        return CrossedTrace(**own, ends_in=last.trace, edges=edges)

    def _cross(self, before: Part, after: Part) -> None:
        crossed, recorded = self._crossings.crossed(before, after), self._crossings.recorded(after.member)
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
        member = self._crossings.member(number)
        found = self._values.get(node.index)
        if found is None and (node.constant or self._crossings.recorded(number).may_be_read_again(node)):
            found = self._tape.nodes[member.placement.node_of[node.index]]
        if found is None:
            raise NotThere  # computed before a join, and not held there
        return found

    def _part(self, part: Part) -> None:
        member = self._crossings.member(part.member)
        start, end = self._crossings.joins(part)
        nodes = member.trace.tape.nodes[start.nodes if start else 0 : end.nodes if end else None]
        waiting: dict[int, tuple[Node, Any]] = {node.index: (node, v) for node, v in self._crossings.assumed(part)}
        self._assume(part.member, waiting)
        for node in nodes:
            self._compute(part.member, node)
            if node.index in waiting:
                self._assume(part.member, waiting)
        if waiting:
            raise NotThere

    def _compute(self, member: int, node: Node) -> None:
        merged = self._tape.nodes[self._crossings.member(member).placement.node_of[node.index]]
        if not node.is_input and not node.constant:
            wanted = [self._value(member, operand).index for operand in node.operands()]
            found = next((each for each in (merged, *self._crossings.alike(node)) if self._is(each, wanted)), None)
            if found is None:
                raise NotThere
            merged = found
        self._values[node.index] = merged
        if merged.host:
            self._host.add(merged.index)

    def _is(self, merged: Node, wanted: list[int]) -> bool:
        operands = merged.operands()
        if len(operands) != len(wanted):
            return False
        for operand, index in zip(operands, wanted, strict=True):
            followed = self._follow(operand)
            if followed is None or followed.index != index:
                return False
        return True

    def _follow(self, node: Node) -> Node | None:
        """What a merged node stands for on the walk; None where that is not known."""
        while node.rule is core.PHI:
            choice, sides = node.args
            decision, cases = choice.args
            by = self._follow(decision)
            if by is None or by.index not in self._known:
                return None
            value = self._known[by.index]
            side = next((side for side, case in zip(sides, cases, strict=True) if value in case), None)
            if side is None:
                return None
            node = side
        return node

    def _assume(self, member: int, waiting: dict[int, tuple[Node, Any]]) -> None:
        """Note what is known once the run has shown it, as far as following leads to it by now."""
        again = True
        while again:
            again = False
            for index, (node, expected) in list(waiting.items()):
                merged = self._values.get(index)
                if merged is None and self._crossings.recorded(member).may_be_read_again(node):
                    merged = self._value(member, node)
                if merged is not None and self._is_shown(member, merged, expected):
                    self._known[merged.index] = outcome_key(expected)
                    del waiting[index]
                    again = True

    def _is_shown(self, member: int, merged: Node, expected: Any) -> bool:
        """Whether a run shows the value of a merged node."""
        if merged.host:
            return _same(self._on_host.setdefault(merged.index, expected), expected)
        own = self._crossings.member(member).placement.observed.get(merged.index)
        positions = range(len(self._tape.outcomes))
        for position in positions if own is None else (own, *positions):
            found = self._follow(self._tape.outcomes[position].node)
            if found is not None and found.index == merged.index:
                return _same(self._outcomes.setdefault(position, expected), expected)
        return False

    # -- what it leaves -----------------------------------------------------------------------------------------------

    def _places(self, last: Member) -> OutputPlaces:
        merged, own, places = self._merged_outputs, last.trace.outputs, last.placement.outputs
        changed = [node for _, node in merged.changed]
        slots = [slot for slot, _ in merged.changed]
        mine = [last.placement.slots[slot] for slot, _ in own.changed]
        return OutputPlaces(
            [self._place(*each, merged.arrays) for each in zip(own.arrays, places.arrays, strict=True)],
            [self._place(*each, merged.numbers) for each in zip(own.numbers, places.numbers, strict=True)],
            [
                self._place(node, place, [each if at == slot else None for each, at in zip(changed, slots, strict=True)])
                for (_, node), place, slot in zip(own.changed, places.changed, mine, strict=True)
            ],
        )

    def _place(self, node: Node, place: int, merged: Sequence[Node | None]) -> int:
        """Where among the merged outputs the value of a node of the last part's is."""
        wanted = self._value(self._walk[-1].member, node)
        for at in (place, *range(len(merged))):
            output = merged[at]
            if output is None or (output.shape, output.dtype, output.scalar) != (node.shape, node.dtype, node.scalar):
                continue
            found = self._follow(output)
            if found is not None and found.index == wanted.index:
                return at
        raise NotThere


def _by_part(trace: Trace) -> list[list[tuple[Node, Any]]]:
    """What a recording assumes between its joins: nodes with what they must be. One more than there are joins."""
    expected = expected_of(trace)
    found, outcomes, reused = [], 0, 0
    for join in (*trace.joins, None):
        ends = (None, None) if join is None else (join.outcomes, join.reused)
        new = [(each.node, each.expected) for each in trace.tape.outcomes[outcomes : ends[0]]]
        again = [(node, expected[node.index]) for node in trace.reused[reused : ends[1]] if node.index in expected]
        found.append([*new, *again])
        if join is not None:
            outcomes, reused = join.outcomes, join.reused
    return found


def _parts(way: Sequence[tuple[int, int]]) -> list[Part]:
    """The parts of a way: what one member does without a crossing is one."""
    found: list[Part] = []
    for member, number in way:
        if found and found[-1].member == member and found[-1].last == number - 1:
            found[-1] = found[-1]._replace(last=number)
        else:
            found.append(Part(member, number, number))
    return found


def _operation(node: Node) -> Hashable:
    form = static_form((node.args, node.kwargs), _nothing)
    return id(node.rule), form, node.shape, node.dtype, node.scalar, node.host


def _nothing(node: Node) -> None:
    return None


def _agrees(shown: Any, expected: Any) -> bool:
    return shown is None or bool(shown == float(expected))


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)

