"""Crossings: the calls of a merged trace that none of its paths takes, but that it computes nevertheless.

Such a call is a walk (accel.merge.walks) that agrees with what a run has shown, and that the merged tape has been
proved to compute (accel.merge.following).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from accel.ir.tape import Node, Tape
from accel.merge.alignment import static_form
from accel.merge.following import Accepted, Following, NotThere
from accel.merge.members import Member
from accel.merge.walks import Shown, Walks
from accel.record.outputs import Outputs
from accel.rules import core

MOST_TRIED = 16
"""So many walks that agree with a run are followed."""


class Crossings:
    """The crossings of a merged trace: of its tape, its outputs and its members. exist: whether there may be any."""

    def __init__(self, tape: Tape, outputs: Outputs, members: Sequence[Member]) -> None:
        self._tape = tape
        self._outputs = outputs
        self._walks = Walks(members)
        self._alike: dict[Hashable, list[Node]] = {}
        self.exist = self._walks.exist

    def may_be(self, members: int, shown: Shown) -> bool:
        """Whether a call may be one, by what is shown before the run. members: a mask of those whose guards hold."""
        return self.exist and next(self._walks.agreeing(members, shown), None) is not None

    def accepted(self, members: int, shown: Shown) -> Accepted | None:
        """A walk that agrees with what a run has shown, and that the tape computes."""
        for tried, walk in enumerate(self._walks.agreeing(members, shown)):
            if tried >= MOST_TRIED:
                return None
            if len(walk) > 1:
                try:
                    return Following(self._walks, self._tape, self._outputs, self._computing, walk).accepted()
                except NotThere:
                    continue
        return None

    def _computing(self, node: Node) -> list[Node]:
        """The merged nodes that compute what a recorded node does, if their operands are what they should be."""
        if not self._alike:
            for each in self._tape.nodes:
                if not each.is_input and each.rule is not core.PHI and each.rule is not core.CHOICE:
                    self._alike.setdefault(_operation(each), []).append(each)
        return self._alike.get(_operation(node), [])


def _operation(node: Node) -> Hashable:
    form = static_form((node.args, node.kwargs), _nothing)
    return id(node.rule), form, node.shape, node.dtype, node.scalar, node.host


def _nothing(node: Node) -> None:
    return None
