"""Draws in a replay: the random numbers that a run takes from the program's generators, before it is launched.

NumPy or Python draws them, from the present state of the generators. A discarded run restores these states, and so does
a call that NumPy has to answer after all. The stream of numbers is the same whatever accel tries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from accel.compiler.lower.program import Lowerable
from accel.dispatch.replay.host import Expressions
from accel.ir.tape import Node, Outcome, needed_by, nodes_in
from accel.record.state.draw import Draw, Form
from accel.record.values.draws.early import is_given
from accel.record.values.draws.generators import MAKERS, GeneratorKind, is_same_state, kind_of
from accel.rules import core
from accel.rules.evaluation import evaluate


class Unlike(Exception):
    """A draw gave something else than in the recording: an array of another shape, or a number of another type."""


class Drawn:
    """Generators that one run has drawn from. Kept until the call has been answered."""

    __slots__ = ("_before", "_owners", "after")

    def __init__(self, owners: Iterable[Any]) -> None:
        self._owners: list[tuple[GeneratorKind, Any]] = []
        for owner in owners:
            kind = kind_of(owner)
            assert kind is not None, "the guards have checked it"
            self._owners.append((kind, owner))
        self._before = self._states()
        self.after: list[Any] | None = None

    def _states(self) -> list[Any]:
        return [kind.state(owner) for kind, owner in self._owners]

    def put_back(self) -> None:
        """Let the generators be as they were before the draws. They stay so if it is asked for again."""
        if self.after is not None:
            return
        try:
            self._put_back()
        except BaseException:
            self._put_back()  # an interrupt must not leave it half done; an error occurs again here
            raise

    def _put_back(self) -> None:
        after = self._states()
        for (kind, owner), state in zip(self._owners, self._before, strict=True):
            kind.put_back(owner, state)
        self.after = after

    def differ(self) -> list[Any]:
        """The generators that NumPy's call has not left as the draws did, if they were put back before it."""
        assert self.after is not None, "NumPy's call starts where the draws did"
        now = zip(self._owners, self._states(), self.after, strict=True)
        return [owner for (_, owner), state, after in now if not is_same_state(state, after)]


class Draws:
    """The draws of a path. of_some: indices of nodes that only some of several merged paths compute."""

    def __init__(self, draws: Sequence[Draw], of_some: Collection[int] = ()) -> None:
        made = {draw.slot for draw in draws}
        # what the call makes itself is nobody's afterwards
        self._owners = sorted({draw.owner for draw in draws if draw.owner is not None} - made)
        self._make = _Maker(draws, of_some).make if draws else None

    def make(self, values: list[Any]) -> Drawn | None:
        """Make the draws, and put what they give into their slots. None where there are none.

        What NumPy raises is raised, and nothing is drawn then.
        """
        if self._make is None:
            return None
        drawn = Drawn({id(owner): owner for owner in (values[slot] for slot in self._owners)}.values())
        try:
            self._make(values)
        except BaseException:
            drawn.put_back()
            raise
        return drawn


class _Maker(Expressions):
    """The draws as one generated function, with the numbers that they need in between."""

    def __init__(self, draws: Sequence[Draw], of_some: Collection[int]) -> None:
        super().__init__(of_some)
        lines, known = ["def make(values):"], set[int]()
        for draw in draws:
            for node in needed_by(nodes_in((draw.args, draw.kwargs)), known):
                known.add(node.index)
                lines += self.silent(self.assignment(node))
            owner = draw.owner
            method = self.name(MAKERS[draw.method]) if owner is None else f"values[{owner}].{draw.method}"
            lines.append(f"    x = values[{draw.slot}] = {method}({self.arguments(draw.args, draw.kwargs)})")
            if draw.form is not None:
                check = self._check(draw.form)
                lines.append(f"    if not ({check}): raise {self.name(Unlike)}({self.name(draw.method)})")
        self.make: Callable[[list[Any]], None] = self.compiled("make", lines)

    def expression(self, node: Node) -> str:
        if is_given(node) or node.rule is core.READ:
            return super().expression(node)
        operands = ", ".join(f"{operand.index}: v{operand.index}" for operand in node.operands())
        return f"{self.name(_by_numpy)}({self.name(node)}, {{{operands}}})"

    def _check(self, form: Form) -> str:
        if form.scalar is not None:
            return f"type(x) is {self.name(form.scalar)}"
        names = self.name(np.ndarray), self.name(form.shape), self.name(form.dtype)
        return "type(x) is {} and x.shape == {} and x.dtype == {}".format(*names)


def _by_numpy(node: Node, values: dict[int, Any]) -> Any:
    with np.errstate(all="ignore"):
        return evaluate(node, lambda operand: values[operand.index])


def drawn_outcomes(trace: Lowerable) -> list[Outcome]:
    """Outcomes that Python knows once a run has made its draws."""
    drawn = drawn_nodes(trace.tape.nodes, trace.draws)
    return [outcome for outcome in trace.tape.outcomes if outcome.node.index in drawn]


def drawn_nodes(nodes: Iterable[Node], draws: Iterable[Draw]) -> frozenset[int]:
    """Indices of the nodes on the host that are known only once the draws have been made."""
    slots, found = {draw.slot for draw in draws}, set[int]()
    if slots:
        for node in nodes:
            if node.is_input:
                is_drawn = node.args[0] in slots
            else:
                is_drawn = any(operand.index in found for operand in node.operands())
            if node.host and is_drawn:
                found.add(node.index)
    return frozenset(found)
