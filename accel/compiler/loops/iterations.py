"""Iterations: what an iteration of a loop does with the state at its head, and what the next state is.

An iteration is what was recorded between two heads. It computes all that it needs from two sources: the
state at its first head, and what was there before the loop's function was called. At a head, the recording forgets what
it has computed (`Writer.forget`). So each operand from before an iteration has one meaning, unless the state holds one
value at two places.

Iterations that took the same branches are of one *kind*: each must do the same as the first of the kind, with other
values.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accel.compiler.loops.draft import Assumed, Draft
from accel.ir.tape import Node
from accel.record.run.loops.heads import Head, LoopRun
from accel.record.run.loops.trimming import difference, do_the_same, kind_of

KINDS = "biufc"
"""Kinds of dtypes that devices have."""


class NoLoop(Exception):
    """Reason, in words, why nothing proves that further iterations do the same."""


def require(truth: object, why: str) -> None:
    if not truth:
        raise NoLoop(why)


@dataclass(slots=True)
class Kind:
    """An iteration that stands for all of its kind, by the numbers of a draft's nodes.

    at: which of the heads it begins at. operations: in order. asked: what the head at its end was. outcomes: what it
    assumed otherwise, in order. on_host: the same of numbers that Python computes.
    """

    at: int
    operations: list[int]
    asked: int
    outcomes: list[Assumed]
    on_host: list[Assumed]

    @property
    def order(self) -> Any:
        """Kinds in an order that does not depend on which came first."""
        return [(each.where, repr(each.expected)) for each in self.outcomes], len(self.operations)


class Passage:
    """Heads of one passage through a loop whose states are alike, as values by their place in the state.

    moving: for each value that some iteration changes, what it is at each head; fixed: the same for the others. Places
    that hold the same at all heads are one value. most: the iterations that the ranges of `for` statements allow from
    the first head on; None without any. Raises NoLoop.
    """

    def __init__(self, draft: Draft, run: LoopRun, heads: Sequence[Head]) -> None:
        self.draft = draft
        self.run = run
        self.heads = heads
        self.most = _most_iterations(run, heads)
        require(not heads[-1].ran_out or self.most == len(heads) - 1, "its range ends elsewhere than at the condition")
        require(all(head.is_fresh for head in heads[:-1]), "an iteration may have used what an earlier one computed")
        states = [head.state for head in heads]
        columns = zip(*([draft.now(node.index) for node in state.nodes] for state in states if state), strict=True)
        found = [self._known(column) for column in dict.fromkeys(columns)]
        self.moving = [column for column in found if len(set(column)) > 1]
        self.fixed = [column for column in found if len(set(column)) == 1]
        for column in self.moving:
            self._check(column)

    def _known(self, column: tuple[int | None, ...]) -> tuple[int, ...]:
        numbers = tuple(number for number in column if number is not None)
        require(len(numbers) == len(column), "a value of another loop's iterations is still there")
        return numbers

    def _check(self, column: tuple[int, ...]) -> None:
        nodes = [self.draft.nodes[number] for number in column]
        kinds = {kind_of(node) for node in nodes}
        require(len(kinds) == 1, "a value has another shape or type in each iteration")
        require(not nodes[0].host, "a number that Python computes changes from iteration to iteration")
        require(_is_value(nodes[0]), "a value of a kind that devices do not have")

    def is_clear(self, at: int) -> bool:
        """Whether each value of the state at a head is told from all others, and from what may be read besides.

        And whether none that changes is a constant there: of what follows from that, the recording has assumed nothing.
        """
        numbers = [column[at] for column in (*self.moving, *self.fixed)]
        is_single = len(set(numbers)) == len(numbers)
        changing = [column[at] for column in self.moving]
        return is_single and not any(self.draft.is_read(each) or self.draft.nodes[each].constant for each in changing)

    def operations(self, at: int) -> list[int]:
        stretch = self.draft.between(self.heads[at].nodes, self.heads[at + 1].nodes)
        return [number for number in stretch if not self.draft.nodes[number].is_input]

    def kind(self, at: int) -> Kind:
        """The iteration that begins at a head, as one that stands for its kind. Raises NoLoop."""
        draft, operations = self.draft, self.operations(at)
        assumed = self._assumed(at)
        for number in operations:
            require(draft.nodes[number].host or _is_value(draft.nodes[number], several=True), "not a device's value")
        here = {*operations, *(column[at] for column in (*self.moving, *self.fixed))}
        used: list[int | None] = [operand for number in operations for operand in draft.operands(number)]
        used += [each.number for each in assumed]
        used += [column[at + 1] for column in self.moving]
        for number_used in used:
            is_there = number_used is not None and (number_used in here or draft.is_read(number_used))
            require(is_there, "a value of an earlier iteration is used")
        require(bool(assumed), "the loop's condition is assumed elsewhere")
        asked, inner = assumed[-1], assumed[:-1]
        require(asked.expected is self.heads[at + 1].truth, "the loop's condition is assumed elsewhere")
        on_host = [each for each in inner if draft.nodes[each.number].host]
        return Kind(at, operations, asked.number, [each for each in inner if each not in on_host], on_host)

    def _assumed(self, at: int) -> list[Assumed]:
        """Return the assumptions of the iteration that begins at a head; the last is that of the head at its end."""
        found = []
        for each in self.draft.outcomes[self.heads[at].outcomes : self.heads[at + 1].outcomes]:
            if each is not None:
                number = self.draft.now(each.number)
                require(number is not None, "a value of another loop's iterations is used")
                found.append(each._replace(number=number))  # type: ignore[arg-type]
        return found

    def is_of(self, kind: Kind, at: int) -> bool:
        """Whether the iteration that begins at a head does what a kind's does, with the values that are there."""
        draft = self.draft
        # what stands here for each value of the kind's own iteration; what is not in it is the same
        here = {column[kind.at]: column[at] for column in (*self.moving, *self.fixed)}
        operations = self.operations(at)
        if len(operations) != len(kind.operations):
            return False
        for mine, theirs in zip(operations, kind.operations, strict=True):
            one, other = draft.nodes[mine], draft.nodes[theirs]
            if not do_the_same(one, other):
                return False
            if draft.operands(mine) != [here.get(each, each) for each in draft.operands(theirs)]:  # type: ignore[arg-type]
                return False
            here[theirs] = mine
        assumed = self._assumed(at)
        expected = sorted([*kind.outcomes, *kind.on_host], key=lambda each: each.number)
        found = [(each.number, repr(each.expected)) for each in sorted(assumed[:-1], key=lambda each: each.number)]
        return (
            sorted((here.get(each.number, each.number), repr(each.expected)) for each in expected) == sorted(found)
            and bool(assumed)
            and assumed[-1].number == here.get(kind.asked, kind.asked)
            and all(column[at + 1] == here.get(column[kind.at + 1], column[kind.at + 1]) for column in self.moving)
        )


def _most_iterations(run: LoopRun, heads: Sequence[Head]) -> int | None:
    """Checks that the states are alike in all but recorded values. Gives `Passage.most`."""
    states = [head.state for head in heads if head.state is not None]
    require(len(states) == len(heads), run.unknown)
    for head, after in zip(heads, states[1:], strict=False):
        why = difference(run, head, after)
        require(not why, why)
    most = None
    for column in zip(*(state.counts for state in states), strict=True):
        steps = {was - now for was, now in itertools.pairwise(column)}
        require(len(steps) == 1, "a range gives several elements in an iteration")
        if steps == {1}:
            most = column[0] if most is None else min(most, column[0])
    return most


def _is_value(node: Node, *, several: bool = False) -> bool:
    return several if node.dtype is None else node.dtype.kind in KINDS


def kinds_of(passage: Passage) -> list[Kind]:
    """The kinds of the iterations of a passage, each iteration being of one. Raises NoLoop."""
    kinds: list[Kind] = []
    rest = list(range(len(passage.heads) - 1))
    while rest:
        model = next((at for at in rest if passage.is_clear(at)), None)
        if model is None:
            raise NoLoop("the first iterations do not tell which values change")
        kind = passage.kind(model)
        kinds.append(kind)
        left = [at for at in rest if not passage.is_of(kind, at)]
        require(model not in left, "an iteration is not of its own kind")
        rest = left
    return sorted(kinds, key=lambda kind: kind.order)
