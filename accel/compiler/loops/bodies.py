"""Bodies: the kinds of a loop's iterations become one body, in which phis choose among what they hand on.

What does not change from iteration to iteration is computed before the loop. It is hoisted as it stands, with what
Python computes of plain numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from accel.compiler.loops.draft import Assumed, Draft
from accel.compiler.loops.iterations import Kind, NoLoop, Passage, require
from accel.compiler.merge.alignment import TooLong
from accel.compiler.merge.recorded import Alone
from accel.compiler.merge.writer import Inseparable, Writer
from accel.ir.loop import LoopBody
from accel.ir.tape import Node, Outcome, Tape
from accel.ir.template import fill
from accel.record.run.loops.trimming import statics
from accel.rules import core

MOST_KINDS = 8
"""Maximum number of kinds of iterations in a loop: beyond, they hardly ever come to an end together."""


class Bodies:
    """The body of a loop, and what has to be computed before it. Raises NoLoop.

    hoisted: new nodes, in order. fixed: what every iteration takes beside the values that move. in_place: what stands
    for the values that were hoisted, by numbers. on_host: what the iterations assume of numbers that Python computes.
    """

    def __init__(self, passage: Passage, kinds: Sequence[Kind]) -> None:
        require(len(kinds) <= MOST_KINDS, "its iterations take too many ways")
        self.hoisted: list[Node] = []
        self.fixed: list[int] = []
        self.in_place: dict[int, int] = {}
        self.on_host: list[Assumed] = []
        self._passage = passage
        self._draft: Draft = passage.draft
        self._alike: dict[Any, int] = {}
        self._moving = len(passage.moving)
        self._kinds = kinds
        self._varying = [self._hoist(kind) for kind in kinds]

    # -- what does not change -----------------------------------------------------------------------------------------

    def _hoist(self, kind: Kind) -> list[int]:
        """Hoist what a kind computes of values that do not change. Returns the other operations, in order."""
        draft, varying = self._draft, []
        changes = {column[kind.at] for column in self._passage.moving}
        for number in kind.operations:
            operands = draft.operands(number)
            if changes.isdisjoint(operands):
                self._hoist_one(number, operands)
                continue
            require(not draft.nodes[number].host, "a number that Python computes changes from iteration to iteration")
            changes.add(number)
            varying.append(number)
        for each in kind.on_host:
            self.on_host.append(each._replace(number=self._placed(each.number)))
        taken = [self._placed(number) for number in self._taken(kind, varying) if number not in changes]
        self.fixed += [number for number in dict.fromkeys(taken) if number not in self.fixed]
        return varying

    def _hoist_one(self, number: int, operands: Sequence[int | None]) -> None:
        draft = self._draft
        model = draft.nodes[number]
        placed = [self._placed(operand) for operand in operands if operand is not None]
        key = id(model.rule), statics(model), tuple(placed), model.shape, model.dtype, model.scalar
        if key not in self._alike:
            rest = iter(placed)
            args, kwargs = fill((model.args, model.kwargs), lambda _: draft.nodes[next(rest)], Node)
            made = draft.copy(model, args, kwargs)
            self._alike[key] = made.index
            self.hoisted.append(made)
        self.in_place[number] = self._alike[key]

    def _placed(self, number: int) -> int:
        return self.in_place.get(number, number)

    def _taken(self, kind: Kind, varying: Sequence[int]) -> list[int]:
        """All that a kind's operations, outcomes and next state take."""
        found = [operand for number in varying for operand in self._draft.operands(number) if operand is not None]
        found += [kind.asked, *(each.number for each in kind.outcomes)]
        return found + [column[kind.at + 1] for column in self._passage.moving]

    # -- the body -----------------------------------------------------------------------------------------------------

    def _tape(self, kind: Kind, varying: Sequence[int]) -> tuple[Tape, dict[int, Node]]:
        """A kind's own tape, and the node on it of each value by number; parameters come first."""
        draft, nodes = self._draft, list[Node]()
        local: dict[int, Node] = {}
        parameters = [column[kind.at] for column in self._passage.moving] + self.fixed
        for number in parameters:
            local[number] = _local(draft.nodes[number], len(nodes), core.INPUT, (len(nodes),), {})
            nodes.append(local[number])
        for number in varying:
            model = draft.nodes[number]
            rest = iter([local[self._placed(operand)] for operand in draft.operands(number) if operand is not None])
            args, kwargs = fill((model.args, model.kwargs), functools.partial(_next_of, rest), Node)
            local[number] = _local(model, len(nodes), model.rule, args, kwargs)
            nodes.append(local[number])
        outcomes = [Outcome(local[self._placed(each.number)], each.expected, each.where) for each in kind.outcomes]
        return Tape(nodes, outcomes), local

    def body(self, stay: bool, limit: int) -> LoopBody:
        """The body of all kinds. Raises NoLoop."""
        tapes = [self._tape(kind, varying) for kind, varying in zip(self._kinds, self._varying, strict=True)]
        slots = [list(range(self._moving + len(self.fixed)))] * len(tapes)
        try:
            writer = Writer([Alone(tape, own) for (tape, _), own in zip(tapes, slots, strict=True)])
            where = self._passage.run.where
            updates = [
                writer.phi(self._at(writer, tapes, [column[kind.at + 1] for kind in self._kinds]), where)
                for column in self._passage.moving
            ]
            asked = writer.phi(self._at(writer, tapes, [kind.asked for kind in self._kinds]), where)
        except (Inseparable, TooLong):
            raise NoLoop("its iterations take ways that nothing tells apart") from None
        require(writer.check(), "the body does not lead back to the recorded iterations")
        assumed = list(writer.expected)
        kinds = [tuple(writer.expected[index].get(path) for index in assumed) for path in range(len(tapes))]
        nodes = writer.tape.nodes
        return LoopBody(nodes, updates, asked, stay, [nodes[index] for index in assumed], kinds, limit)

    def _at(
        self, writer: Writer, tapes: Sequence[tuple[Tape, dict[int, Node]]], numbers: Sequence[int]
    ) -> dict[int, Node | None]:
        """Return one value's node for each kind."""
        return {
            path: writer.node_of[path][local[self._placed(number)].index]
            for path, ((_, local), number) in enumerate(zip(tapes, numbers, strict=True))
        }


def _next_of(rest: Iterator[Node], _: object) -> Node:
    return next(rest)


def _local(model: Node, index: int, rule: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
    about = {name: getattr(model, name) for name in ("shape", "dtype", "scalar", "where", "site")}
    return Node(index, rule, args, kwargs, host=False, **about)
