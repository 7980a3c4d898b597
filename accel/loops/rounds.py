"""Rounds: what a round of a loop does, found by comparing it with the next one.

A round is what was recorded between two heads of a run. Values from before it are *taken*: by its operations, or by the
state at its head. Each is either the same in the next round, or *moves*: the next round takes another one there, which
this round has made or taken. So what a round takes of the one before needs no name of its own: that is the next's.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.ir.loop import Body
from accel.ir.tape import Node
from accel.ir.template import fill, form
from accel.loops.draft import Assumed, Draft
from accel.record.loops.heads import Head, Run
from accel.rules import core

KINDS = "biufc"


class NoLoop(Exception):
    """Two rounds do not do the same."""


def _require(truth: object, why: str) -> None:
    if not truth:
        raise NoLoop(why)


@dataclass(slots=True)
class Round:
    """A round, by the numbers of a draft's nodes.

    operations: in order. moving: what it takes that moves, with what the next round takes in its place. fixed: what it
    takes that is the same in the next. asked: what the head at its end was. outcomes: what it assumed otherwise.
    most: the rounds from this one on that the ranges of `for` statements allow; None without any.
    """

    operations: list[int]
    moving: dict[int, int]
    fixed: list[int]
    asked: int
    outcomes: list[Assumed]
    most: int | None


def compared(draft: Draft, run: Run, first: Head, second: Head, third: Head) -> Round:
    """The round between the first two heads, if the next one does the same. Raises NoLoop."""
    most = _check_states(run, first, second, third)
    return _Comparison(draft, first, second, third).round(most)


def _check_states(run: Run, first: Head, second: Head, third: Head) -> int | None:
    """Whether the three states are the same but for recorded values; gives `Round.most`."""
    a, b, c = first.state, second.state, third.state
    if a is None or b is None or c is None:
        raise NoLoop(run.unknown)
    _require(a.form == b.form == c.form, "something that is not recorded changes from round to round")
    for places in zip(a.made, b.made, c.made, strict=True):
        is_same = len(set(places)) == 1
        is_new = places[1] > first.serial and places[2] > second.serial
        # memory and objects of this call that change places: nothing outside knows them
        moves = min(places) > run.began and places[1] in a.made and places[2] in b.made
        _require(is_same or is_new or moves, "it is not the same memory in each round")
    most = None
    for left, then, last in zip(a.counts, b.counts, c.counts, strict=True):
        _require((then, last) in ((left, left), (left - 1, left - 2)), "a range gives several elements in a round")
        if then != left:
            most = left if most is None else min(most, left)
    return most


class _Comparison:
    """Two rounds, operation by operation."""

    def __init__(self, draft: Draft, first: Head, second: Head, third: Head) -> None:
        self._draft = draft
        self._heads = first, second, third
        self._now = draft.between(first.nodes, second.nodes)
        self._next = draft.between(second.nodes, third.nodes)
        self._place = {number: place for place, number in enumerate(self._now)}
        self._place_next = {number: place for place, number in enumerate(self._next)}
        self._taken: dict[int, int] = {}

    def round(self, most: int | None) -> Round:
        first, second, third = (head.state for head in self._heads)
        assert first is not None and second is not None and third is not None
        for one, other in zip(first.nodes, second.nodes, strict=True):
            self._take(self._draft.now(one.index), self._draft.now(other.index))
        _require(len(self._now) == len(self._next), "rounds have different operations")
        for one, other in zip(self._now, self._next, strict=True):
            self._compare(one, other)
        asked, outcomes = self._outcomes()
        self._check_taken()
        for one, other in zip(second.nodes, third.nodes, strict=True):
            self._require_next(self._draft.now(one.index), self._draft.now(other.index))
        moving = {one: other for one, other in self._taken.items() if one != other}
        fixed = [one for one, other in self._taken.items() if one == other]
        return Round(self._now, moving, fixed, asked, outcomes, most)

    def _take(self, one: int | None, other: int | None) -> None:
        """A value from before the round, and what is in its place in the next."""
        _require(one is not None and other is not None, "a value of another loop's rounds is used")
        assert one is not None and other is not None
        _require(self._taken.setdefault(one, other) == other, "one value is two in the next round")

    def _compare(self, one: int, other: int) -> None:
        """Two operations at the same place of their rounds."""
        mine, theirs = self._draft.nodes[one], self._draft.nodes[other]
        _require(mine.rule is theirs.rule and kind_of(mine) == kind_of(theirs), "rounds have different operations")
        _require(not mine.host and not mine.is_input, "a number that Python computes changes from round to round")
        _require(_statics(mine) == _statics(theirs), "an operation has other parameters in each round")
        for here, there in zip(self._draft.operands(one), self._draft.operands(other), strict=True):
            self._relate(here, there)

    def _relate(self, here: int | None, there: int | None) -> None:
        """Two operands at the same place of their rounds."""
        if here in self._place or there in self._place_next:
            _require(self._place.get(here) == self._place_next.get(there), "rounds are connected differently")  # type: ignore[arg-type]
        else:
            self._take(here, there)

    def _outcomes(self) -> tuple[int, list[Assumed]]:
        """What the round ends with, and what it assumes besides."""
        first, second, third = self._heads
        mine = self._assumed(first.outcomes, second.outcomes)
        theirs = self._assumed(second.outcomes, third.outcomes)
        _require(len(mine) == len(theirs), "rounds assume different things")
        for one, other in zip(mine, theirs, strict=True):
            _require(one.number in self._place, "a round assumes something of a value from before it")
            _require(self._place[one.number] == self._place_next.get(other.number), "rounds assume different things")
        for one, other in zip(mine[:-1], theirs[:-1], strict=True):
            _require(repr(one.expected) == repr(other.expected), "rounds take different branches")
        _require(bool(mine) and mine[-1].expected is second.truth, "the loop's condition is assumed elsewhere")
        return mine[-1].number, mine[:-1]

    def _assumed(self, start: int, stop: int) -> list[Assumed]:
        found = [each for each in self._draft.outcomes[start:stop] if each is not None]
        numbers = [self._draft.now(each.number) for each in found]
        _require(None not in numbers, "a value of another loop's rounds is used")
        return [each._replace(number=number) for each, number in zip(found, numbers, strict=True)]  # type: ignore[arg-type]

    def _check_taken(self) -> None:
        """What is taken must be values of a fixed kind, and those of the next round be made or taken by this one."""
        _require(len(set(self._taken.values())) == len(self._taken), "two values become one")
        for one, other in self._taken.items():
            mine, theirs = self._draft.nodes[one], self._draft.nodes[other]
            _require(mine.dtype is not None and mine.dtype.kind in KINDS, "a value of a kind that devices do not have")
            if one == other:
                continue
            _require(kind_of(mine) == kind_of(theirs), "a value has another shape or type in each round")
            _require(not mine.host, "a number that Python computes changes from round to round")
            _require(other in self._place or other in self._taken, "a value comes from an earlier round")

    def _require_next(self, one: int | None, other: int | None) -> None:
        """The state at the end of the next round follows from that at its beginning, as this round's did."""
        if one in self._place:
            expected: int | None = self._next[self._place[one]]  # type: ignore[index]
        else:
            expected = self._taken.get(one, one)  # type: ignore[arg-type]
        _require(one is not None and expected == other, "the state is another one after the next round")


def kind_of(node: Node) -> Hashable:
    return node.shape, node.dtype, node.scalar, node.host


def _statics(node: Node) -> Hashable:
    """A key of an operation's arguments but for its values."""
    return form((node.args, node.kwargs), _leaf, (Node, np.ndarray))


def _leaf(leaf: Any) -> Hashable:
    return None if isinstance(leaf, Node) else (str(leaf.dtype), leaf.shape, leaf.tobytes())


def body_of(draft: Draft, found: Round, extras: Sequence[int], stay: bool, limit: int) -> Body:
    """The body of a round. extras: operations whose values the last round leaves."""
    nodes: list[Node] = []
    local: dict[int, Node] = {}
    for number in (*found.moving, *found.fixed):
        model = draft.nodes[number]
        local[number] = _local(model, len(nodes), core.INPUT, (len(nodes),), {})
        nodes.append(local[number])
    for number in found.operations:
        model, operands = draft.nodes[number], iter(draft.operands(number))
        args, kwargs = fill((model.args, model.kwargs), lambda _, rest=operands: local[next(rest)], Node)  # type: ignore[index]
        local[number] = _local(model, len(nodes), model.rule, args, kwargs)
        nodes.append(local[number])
    return Body(
        nodes=nodes,
        updates=[local[number] for number in found.moving.values()],
        extras=[local[number] for number in extras],
        asked=local[found.asked],
        stay=stay,
        outcomes=[(local[each.number], each.expected) for each in found.outcomes],
        limit=limit,
    )


def _local(model: Node, index: int, rule: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
    about = {name: getattr(model, name) for name in ("shape", "dtype", "scalar", "where", "site")}
    return Node(index, rule, args, kwargs, host=False, **about)
