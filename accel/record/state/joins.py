"""Joins: where the sides of a branch come together again, and the recorded values that recorded code holds there.

A *join* is the first instruction between two statements that runs whichever side a branch takes. Merged recordings
have one phi there for what each side has made of a variable, and one operation for each that follows (see
accel.compiler.merge.writer). So a call that combines branches in a new way is often computed by the program in use.

Values are numbered afresh at a join: so it is known which of two equal values a later operation names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from accel.ir.tape import Node
from accel.record.state.events import Events
from accel.record.state.flow import flow_of
from accel.record.state.instructions import SUSPENDED

if TYPE_CHECKING:
    from accel.record.state.writer import TapeWriter

MOST_JOINS = 96
"""Maximum number of joins noted in one recording. Guess."""

MOST_VISITS = 8
"""Maximum joins at one place of one recording: more are iterations of a long loop. Guess."""


@dataclass(slots=True)
class Join:
    """One join of a recording.

    point: the code, by its number, and the offset of each frame, the innermost first. nodes, outcomes: numbers of
    operations and outcomes that the recording had by then. values: of all that the program could reach. written: inputs
    that were written to by then, by slot, with the content.
    """

    point: tuple[tuple[int, int], ...]
    nodes: int
    outcomes: int
    values: list[Node]
    written: list[tuple[int, Node]]


class _Region(NamedTuple):
    """A branch whose sides have not joined. join: the offset in the frame; None: where it returns to."""

    frame: FrameType
    join: int | None


def variables(frames: list[FrameType]) -> list[Any]:
    """The values of variables that may still be read, of the innermost frame first."""
    found: list[Any] = []
    for depth, frame in enumerate(frames):
        code, values = frame.f_code, frame.f_locals
        flow = flow_of(code)
        live = frozenset(code.co_varnames) if flow is None else flow.live(frame.f_lasti, after=depth > 0)
        # what a nested function shares with this one may be read by it at any time
        found += [values.get(name) for name in sorted(live.union(code.co_cellvars, code.co_freevars))]
    return found


class Joins:
    """The joins of one recording, and the branches that are open.

    writer: writes the tape; from a join on it numbers values afresh. events: tells of the frames. held: gives the
    recorded values that variables lead to, and inputs that were written to.
    """

    def __init__(
        self, writer: TapeWriter, events: Events, held: Callable[[list[Any]], tuple[list[Node], list[tuple[int, Node]]]]
    ) -> None:
        self.found: list[Join] = []
        self._writer, self._events, self._held = writer, events, held
        self._is_on = True
        self._open: list[_Region] = []
        self._visits: Counter[Hashable] = Counter()

    def let_go(self) -> None:
        """Hold on to no frames and values any more."""
        self._open.clear()

    def branch(self) -> None:
        """A branch is taken: from here on the recordings of a program part."""
        frames = self._writer.frames() if self._is_on and len(self.found) < MOST_JOINS else []
        # a generator goes on when its consumer asks: the branch is one of the consumer's instruction
        while frames and frames[0].f_code.co_flags & SUSPENDED:
            frames = frames[1:]
        if not frames or not self._events.tells_of(frames[0]):
            return
        frame = frames[0]
        region = self._region(frame)
        if region is None or self._visits[self._point(frames, region.join)] >= MOST_VISITS:
            return
        self._begin(region)

    def _begin(self, region: _Region) -> None:
        if region not in self._open:  # `if a and b`: both branches join at one place
            self._open.append(region)
            self._events.ask(region.frame)

    def _region(self, frame: FrameType) -> _Region | None:
        flow = flow_of(frame.f_code)
        return None if flow is None else _Region(frame, flow.join(frame.f_lasti))

    def at(self, frame: FrameType) -> bool:
        """A frame in which branches may be open is about to run an instruction. Returns whether any of its are left."""
        region = _Region(frame, frame.f_lasti)
        first = self._open.index(region) if region in self._open else None
        if first is not None:
            del self._open[first:]
            self._note(frame)
        return any(each.frame is frame for each in self._open)

    def returned(self, frame: FrameType) -> None:
        """A frame returns: its open branches join in its caller."""
        mine = [region for region in self._open if region.frame is frame]
        if not mine:
            return
        frames = self._writer.frames()
        place = next((at for at, each in enumerate(frames) if each is frame), len(frames))
        caller = frames[place + 1] if place + 1 < len(frames) else None
        del self._open[self._open.index(mine[0]) :]
        if caller is None or not self._events.tells_of(caller):
            return
        region = self._region(caller)
        if region is not None:
            self._begin(region)

    def interrupted(self) -> None:
        """An exception was raised: where it leads, the analysis of the code does not know."""
        self._open.clear()

    def stop(self) -> None:
        """Note no more joins: those that are noted count operations that are gone."""
        self._is_on = False
        self.found.clear()
        self._open.clear()

    def _note(self, frame: FrameType) -> None:
        """Note a join at a frame's present instruction."""
        frames = self._writer.frames()
        if not frames or frames[0] is not frame:
            return
        point = self._point(frames, frame.f_lasti)
        self._visits[point] += 1
        tape = self._writer.tape
        self.found.append(Join(point, len(tape.nodes), len(tape.outcomes), *self._held(variables(frames))))
        self._writer.number_afresh()

    def _point(self, frames: list[FrameType], offset: int | None) -> tuple[tuple[int, int], ...]:
        number_of = self._writer.number_of
        rest = tuple((number_of(frame.f_code), frame.f_lasti) for frame in frames[1:])
        return ((number_of(frames[0].f_code), -1 if offset is None else offset), *rest)
