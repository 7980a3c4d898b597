"""Joins: where the sides of a branch come together again, and what recorded code holds there.

Two recordings that come to the same place with the same state, but for the values of recorded numbers and arrays, go on
alike: what one of them did from there on, the other might have done (see accel.merge.crossings). A *join* is such a
place: the first instruction between two statements that runs whichever side a branch takes. So:

- What the frames at a join can reach is written down as a *state*: a template in which symbols stand for recorded
  values. What cannot be described makes no join.
- What they cannot reach, as what a caller has computed in the middle of a statement, is what it was at the branch, for
  no code on either side can reach it. What it was there follows from the join before and from the outcomes since. So a
  join *inherits* from the branch, unless nothing can be hidden.
- Operations that come after a join name nothing that was computed before but what the state holds, and inputs: values
  are numbered afresh. So it is known which of two equal values is meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from accel.ir.tape import Node
from accel.ir.views import Chain
from accel.record.state.events import Events
from accel.record.state.flow import flow_of
from accel.record.state.instructions import SUSPENDED

if TYPE_CHECKING:
    from accel.record.state.writer import TapeWriter

MOST_JOINS = 96
"""Maximum number of joins noted in one recording. Guess."""

MOST_VISITS = 8
"""Maximum joins at one place of one recording: more are iterations of a long loop. Guess."""


class UnknownState(Exception):
    """A state that cannot be described."""


class NumberSymbol(NamedTuple):
    """In a state: the recorded number of this node."""

    node: Node


class View(NamedTuple):
    """In a state: a recorded array. memory: among the state's. chain: as in the tape's views."""

    memory: int
    chain: Chain


class Entered(NamedTuple):
    """In a state: what the program's object is that an input slot holds."""

    slot: int


class ConstantKey(NamedTuple):
    """In a state: what is the same in all recordings. key: tells it from others."""

    key: Hashable


@dataclass(slots=True)
class Memory:
    """The memory of an array at a join.

    number: the same at all joins of a recording. origin: the input slot that holds it, None where the call has made it.
    version: what it holds. layout: shape, dtype, strides and whether it may be written. written: whether the call has
    written to it by then. rewritten: whether it has afterwards.
    """

    number: int
    origin: int | None
    version: Node
    layout: Hashable
    written: bool
    rewritten: bool = False

    def advanced(self) -> None:
        """The array is written to after the join."""
        self.rewritten = True


@dataclass(slots=True)
class JoinState:
    """All that recorded code can reach at a join. template: of tuples, with the leaves above. memories: of its arrays.

    written: owner's slot, name and kind of each attribute and item that the call has written, with its value.
    """

    template: Any
    memories: list[Memory]
    written: list[tuple[int, Hashable, Any]]


class Inherited(NamedTuple):
    """The branch whose hidden values a join has.

    join: the last join before the branch, -1 if none. outcomes, reused: numbers of them before the branch.
    """

    join: int
    outcomes: int
    reused: int


@dataclass(slots=True)
class Join:
    """One join of a recording.

    point: the code, by its number, and the offset of each frame, the innermost first. nodes, outcomes, reused: how many
    operations, outcomes and outcomes that were used again the recording had by then. hidden: None where nothing can be.
    """

    point: tuple[tuple[int, int], ...]
    nodes: int
    outcomes: int
    reused: int
    hidden: Inherited | None
    state: JoinState


@dataclass(slots=True)
class _Region:
    """A branch whose sides have not joined. join: the offset in the frame; None: where it returns to.

    held: what the frames could reach at the branch, and something that is hidden might, too.
    """

    frame: FrameType
    join: int | None
    inherited: Inherited
    held: list[Any] = field(default_factory=list)


Roots = list[tuple[Hashable, Any]]
"""The values that frames can reach at once: a name for each, and the value."""

UNBOUND = ConstantKey("unbound")
"""In the place of a variable that has no value."""


def roots(frames: list[FrameType]) -> Roots:
    """The variables of frames, the innermost first, that may still be read."""
    found: Roots = []
    for depth, frame in enumerate(frames):
        code, variables = frame.f_code, frame.f_locals
        flow = flow_of(code)
        live = frozenset(code.co_varnames) if flow is None else flow.live(frame.f_lasti, after=depth > 0)
        # what a nested function shares with this one may be read by it at any time
        names = sorted(live.union(code.co_cellvars, code.co_freevars))
        found += [((depth, name), variables.get(name, UNBOUND)) for name in names]
    return found


class Joins:
    """The joins of one recording, and the branches that are open.

    writer: writes the tape; from a join on it numbers values afresh. events: tells of the frames. describe: gives the
    state that some roots lead to; raises UnknownState. reachable: gives the recorded values that some roots lead to.
    """

    def __init__(
        self,
        writer: TapeWriter,
        events: Events,
        describe: Callable[[Roots], JoinState],
        reachable: Callable[[Roots], list[Any]],
    ) -> None:
        self.found: list[Join] = []
        self._writer, self._events, self._describe, self._reachable = writer, events, describe, reachable
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
        hidden = Inherited(len(self.found) - 1, len(self._writer.tape.outcomes), len(self._writer.reused))
        region = self._region(frame, hidden)
        if region is None or self._visits[self._point(frames, region.join)] >= MOST_VISITS:
            return
        # `if a and b`: both branches join at one place; the first of them has seen what is hidden
        if any(other.frame is frame and other.join == region.join for other in self._open):
            return
        if len(frames) > 1 or _hides_values(frames):
            region.held = self._reachable(roots(frames))
        self._open.append(region)
        self._events.ask(frame)

    def _region(self, frame: FrameType, hidden: Inherited) -> _Region | None:
        flow = flow_of(frame.f_code)
        return None if flow is None else _Region(frame, flow.join(frame.f_lasti), hidden)

    def at(self, frame: FrameType) -> bool:
        """A frame in which branches may be open is about to run an instruction. Returns whether any of its are left."""
        offset, first = frame.f_lasti, None
        for place, region in enumerate(self._open):
            if region.frame is frame and region.join == offset:
                first = place
                break
        if first is not None:
            region = self._open[first]
            held = [value for each in self._open[first:] for value in each.held]
            del self._open[first:]
            self._note(frame, region.inherited, held)
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
        region = self._region(caller, mine[0].inherited)
        if region is not None:
            if any(other.frame is caller and other.join == region.join for other in self._open):
                return
            region.held = [value for each in mine for value in each.held]
            self._open.append(region)
            self._events.ask(caller)

    def interrupted(self) -> None:
        """An exception was raised: where it leads, the analysis of the code does not know."""
        self._open.clear()

    def stop(self) -> None:
        """Note no more joins: there is more to the state than can be described."""
        self._is_on = False
        self.found.clear()
        self._open.clear()

    def _note(self, frame: FrameType, hidden: Inherited, held: list[Any]) -> None:
        """Note a join at a frame's present instruction, unless its state cannot be described."""
        frames, flow = self._writer.frames(), flow_of(frame.f_code)
        if not frames or frames[0] is not frame or flow is None:
            return
        point = self._point(frames, frame.f_lasti)
        self._visits[point] += 1
        known = roots(frames)
        if _hides_values(frames):
            known += [("held", value) for value in held]
        try:
            state = self._describe(known)
        except UnknownState:
            return
        hides = len(frames) > 1 or flow.hides(frame.f_lasti)
        tape = self._writer.tape
        counts = len(tape.nodes), len(tape.outcomes), len(self._writer.reused)
        self.found.append(Join(point, *counts, hidden if hides else None, state))
        self._writer.number_afresh()

    def _point(self, frames: list[FrameType], offset: int | None) -> tuple[tuple[int, int], ...]:
        number_of = self._writer.number_of
        rest = tuple((number_of(frame.f_code), frame.f_lasti) for frame in frames[1:])
        return ((number_of(frames[0].f_code), -1 if offset is None else offset), *rest)


def _hides_values(frames: list[FrameType]) -> bool:
    """Whether values may be hidden at a join: on the stacks of frames, in iterators, in what C code is doing."""
    for depth, frame in enumerate(frames):
        flow, callee = flow_of(frame.f_code), frames[depth - 1].f_code.co_name if depth else None
        if flow is None or "range" in getattr(frame.f_globals, "namespace", ()):
            return True
        if flow.hides_values(frame.f_lasti, callee):
            return True
    return False
