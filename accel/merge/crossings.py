"""Crossings: the calls of a merged trace that none of its paths takes, but that it computes nevertheless.

Such a call is a walk (accel.merge.walks) that agrees with the outcomes of a run. The merged tape has been proved to
compute it (accel.merge.following).
"""

from __future__ import annotations

from collections.abc import Sequence

from accel.ir.tape import Tape
from accel.merge.following import Accepted, Computing, Following, NotThere
from accel.merge.members import Member
from accel.merge.walks import Shown, Walks
from accel.record.run.outputs import Outputs

MOST_TRIED = 16
"""Maximum number of walks that are followed for one run that they agree with."""


class Crossings:
    """The crossings of a merged trace: of its tape, its outputs and its members. exist: whether there may be any.

    computing: of its tape.
    """

    def __init__(self, tape: Tape, outputs: Outputs, members: Sequence[Member], computing: Computing) -> None:
        self._tape = tape
        self._outputs = outputs
        self._walks = Walks(members)
        self._computing = computing
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
