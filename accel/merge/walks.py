"""Walks: calls that none of the recorded paths takes, but that go from one of them to another where these join.

A walk consists of parts of recordings, each from a join to a join or to an end. Certificates (accel.merge.certificates)
say where one may go on as another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from accel.ir.tape import Node
from accel.merge.certificates import Classes, Recorded, Substitution, expected_of, substitution
from accel.merge.members import Member
from accel.record import Trace
from accel.record.state.joins import Join


class Part(NamedTuple):
    """A part of a walk: a member's recording from a join (0: its start) to a join, by number, or to its end."""

    member: int
    first: int
    last: int


Shown = Callable[[int, Node], Any]
"""Function of a member and one of its nodes: the value seen in a run, or None if it is not known."""


Way = tuple[tuple[int, int], ...]
"""Members, each with the number of a part between two of its joins."""


class Walks:
    """The walks through some recordings.

    exist: whether two of them join anywhere.
    """

    def __init__(self, members: Sequence[Member]) -> None:
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
        self.exist = any(len({member for member, _ in each}) > 1 for each in self._at.values())

    def agreeing(self, members: int, shown: Shown) -> Iterator[list[Part]]:
        """The walks through some members, given as a mask, that agree with what a run has shown; each end once."""
        starts = [member for member in range(len(self._members)) if members >> member & 1]
        waiting: list[tuple[int, int, Way]] = [(member, 0, ()) for member in reversed(starts)]
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
        """Yield the members and parts at which a walk may go on from the end of a member's part.

        The last of them, to stay with the member, is tried first.
        """
        for other, join in self._at[self._classes[member][number]]:
            if other != member and members >> other & 1 and self._substitution(member, number, other, join) is not None:
                yield other, join + 1
        yield member, number + 1

    def _substitution(self, member: int, number: int, other: int, join: int) -> Substitution | None:
        key = member, number, other, join
        if key not in self._substitutions:
            before, after = self._recorded[member], self._recorded[other]
            joins = before.joins[number], after.joins[join]
            self._substitutions[key] = substitution(before, joins[0], after, joins[1])
        return self._substitutions[key]

    # -- what walks consist of ----------------------------------------------------------------------------------------

    def member(self, number: int) -> Member:
        """A member by its number."""
        return self._members[number]

    def recorded(self, number: int) -> Recorded:
        """Return the certificates' data on a member."""
        return self._recorded[number]

    def joins(self, part: Part) -> tuple[Join | None, Join | None]:
        """The joins at which a part begins and ends."""
        joins = self._members[part.member].trace.joins
        return (joins[part.first - 1] if part.first else None), (joins[part.last] if part.last < len(joins) else None)

    def assumed(self, part: Part) -> list[tuple[Node, Any]]:
        """Return the assumptions of a part."""
        return [each for number in range(part.first, part.last + 1) for each in self._assumed[part.member][number]]

    def edge(self, before: Part, after: Part) -> Hashable:
        """Return the key of a crossing: the join's class, the last assumptions before it and the first after it."""
        sides = [(before.member, before.last), (after.member, after.first)]
        assumed = [
            tuple((self._members[member].placement.node_of[node.index], repr(expected)) for node, expected in each)
            for member, number in sides
            for each in (self._assumed[member][number],)
        ]
        return self._classes[before.member][before.last], *assumed

    def crossed(self, before: Part, after: Part) -> Substitution:
        """Return the substitution for the values of the part after, by those of the part before."""
        found = self._substitution(before.member, before.last, after.member, after.first - 1)
        assert found is not None
        return found


def _by_part(trace: Trace) -> list[list[tuple[Node, Any]]]:
    """Return a recording's assumptions between its joins: nodes with their expected values.

    There is one list more than there are joins.
    """
    expected = expected_of(trace.tape)
    found, outcomes, reused = [], 0, 0
    for join in (*trace.joins, None):
        ends = (None, None) if join is None else (join.outcomes, join.reused)
        new = [(each.node, each.expected) for each in trace.tape.outcomes[outcomes : ends[0]]]
        again = [(node, expected[node.index]) for node in trace.reused[reused : ends[1]] if node.index in expected]
        found.append([*new, *again])
        if join is not None:
            outcomes, reused = join.outcomes, join.reused
    return found


def _parts(way: Way) -> list[Part]:
    """The parts of a way: what one member does without a crossing is one."""
    found: list[Part] = []
    for member, number in way:
        if found and found[-1].member == member and found[-1].last == number - 1:
            found[-1] = found[-1]._replace(last=number)
        else:
            found.append(Part(member, number, number))
    return found


def _agrees(shown: Any, expected: Any) -> bool:
    return shown is None or bool(shown == float(expected))
