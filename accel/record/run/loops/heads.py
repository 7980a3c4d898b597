"""Heads: the places where a loop of recorded code was asked whether to go on, in the order of the recording.

A head is one truth that Python asked of a recorded value: by `while`, or by an `if` before `break`. The heads of one
instruction, in one call of its function, are a *run*: as a rule, one head for each iteration of the loop.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import numpy as np

from accel.ir.tape import SERIAL, Place
from accel.record.run.loops import code
from accel.record.run.loops.cells import Cells
from accel.record.run.loops.state import Held, LoopState, RangeIterator, Unknown, state_of
from accel.record.run.loops.trimming import trimmed
from accel.record.state.on_behalf import frames_of
from accel.record.state.recording import Recording
from accel.record.values.arrays import RecordedScalar
from accel.rules import scalars

MOST_CHANGES = 3
"""Maximum changes of the state from head to head in a loop that may still be proved. Guess."""

MOST_UNKNOWN = 3
"""Maximum number of heads with an unknown state before a loop's states are not examined any more. Guess."""


@dataclass(slots=True)
class Head:
    """One truth that was asked. nodes, outcomes: how many there were on the tape by then, its own included.

    stays: whether the loop went on. state: None if it is unknown. serial: what was made later has a larger number.
    is_fresh: what comes after it was computed from the state alone. ran_out: the loop was left after it, as its range
    gave no more elements.
    """

    nodes: int
    outcomes: int
    truth: bool
    stays: bool
    state: LoopState | None
    serial: int
    is_fresh: bool
    ran_out: bool = False

    @property
    def is_last(self) -> bool:
        """Whether the loop was left at this head, or after it without another one."""
        return self.ran_out or not self.stays


@dataclass(slots=True)
class LoopRun:
    """The heads of one instruction in one call: the tests of one loop.

    began: what was made in that call has a larger number. loops, range_at: see `code.Position`. unknown: why a state
    is, if one is, and how often (failures). changes: how often it was another one than at the head before. passage:
    which head is the first since the loop was left. For
    accel.record.run.loops.trimming: models, the heads at which iterations begin that others are compared with; dropped,
    how many iterations have left the tape; passed, how many elements of each range those had.
    """

    where: Place
    began: int
    loops: tuple[int, ...] = ()
    range_at: int | None = None
    heads: list[Head] = field(default_factory=list)
    unknown: str = ""
    failures: int = 0
    changes: int = 0
    passage: int = 0
    models: list[int] = field(default_factory=list)
    dropped: int = 0
    passed: list[int] = field(default_factory=list)

    def begin(self) -> None:
        """A passage through the loop begins."""
        self.passage = len(self.heads)
        self.models.clear()
        self.passed.clear()

    def is_left(self, others: Iterable[LoopRun]) -> bool:
        """Whether its loop has been left since its last head, by that or by a head of the others, of the same call."""
        if not self.heads or self.heads[-1].is_last:
            return True
        later = [each for each in others if each.heads and each.heads[-1].serial > self.heads[-1].serial]
        return any(
            not each.heads[-1].stays if each.loops[:1] == self.loops[:1] else each.loops[0] in self.loops
            for each in later
        )

    def counted(self, state: LoopState) -> LoopState:
        """A state as it would be without the iterations that have left the tape."""
        if not self.passed:
            return state
        return replace(state, counts=tuple(map(sum, zip(state.counts, self.passed, strict=True))))


def _is_number(value: Any) -> bool:
    """Whether a variable holds a number that the device does not compute, and could."""
    if type(value) in (int, float):
        return type(value) is float or abs(value) <= scalars.LARGEST_EXACT
    return (
        issubclass(type(value), RecordedScalar)
        and value.node().host
        and type(value._plain_) in (int, float, np.float64)
    )


def _form_of(head: Head) -> Hashable:
    return None if head.state is None else head.state.form


class Heads:
    """The heads of one recording. runs: in the order of their first head."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.runs: list[LoopRun] = []
        # by the frame's id: the frame, held so that its id stays its own, and its runs by the instruction's offset
        self._open: dict[int, tuple[FrameType, dict[int, LoopRun]]] = {}
        self._began: dict[int, int] = {}
        self._exchange: tuple[FrameType, dict[str, tuple[Any, Any]]] | None = None
        self._ranges: weakref.WeakValueDictionary[tuple[int, int], RangeIterator] = weakref.WeakValueDictionary()

    def let_go(self) -> None:
        """Hold on to nothing of the program's."""
        self._open.clear()
        self._exchange = None
        self._began.clear()

    def enter(self, frame: FrameType) -> None:
        """A call of recorded code begins."""
        self._began[id(frame)] = next(SERIAL)

    def iterate(self, values: range) -> range | RangeIterator:
        """Give `range` to recorded code: to a `for` statement as an iterator that tells how far it is."""
        frame = next(frames_of(self._recording), None)
        if frame is None or code.called_global(frame.f_code, frame.f_lasti) != "range":
            return values
        at = code.feeds_loop(frame.f_code, frame.f_lasti)
        if at is None:
            return values
        made = self._ranges[id(frame), at] = RangeIterator(values)
        made.on_next = Cells(self._recording, made).look
        made.on_end = functools.partial(self._run_out, id(frame), at)
        return made

    def _run_out(self, frame: int, at: int) -> None:
        """A range has no more elements. frame, at: the id of the frame and the offset of the `for` statement."""
        runs = self._open[frame][1].values() if frame in self._open else ()
        heads = [run.heads[-1] for run in runs if run.range_at == at and len(run.heads) > run.passage]
        if heads:
            last = max(heads, key=lambda head: head.serial)
            last.ran_out = last.stays

    def note(self, truth: bool, on_host: bool) -> None:
        """Python has asked for a truth, which has just become an outcome. on_host: of numbers that Python computes."""
        frame = next(frames_of(self._recording), None)
        if frame is None or not code.has_loops(frame.f_code) or id(frame) not in self._began:
            return
        position = code.position(frame.f_code, frame.f_lasti)
        if position is None:
            return
        run = self._run_of(frame, position)
        tape = self._recording.writer.tape
        if on_host and not self._depends_on_arrays(run):
            run.heads[:] = [Head(len(tape.nodes), len(tape.outcomes), truth, truth is position.stays, None, 0, False)]
            return
        if run.is_left(self._open[id(frame)][1].values()):
            run.begin()
        state, held = self._state(run, frame, position)
        is_fresh = state is not None and self._begin_iteration(run, state)
        went_on = truth is position.stays
        if is_fresh and went_on and trimmed(self._recording, run, state, held):
            return
        run.heads.append(Head(len(tape.nodes), len(tape.outcomes), truth, went_on, state, next(SERIAL), is_fresh))

    def _state(self, run: LoopRun, frame: FrameType, position: code.Position) -> tuple[LoopState | None, Held]:
        """The state at a head, and how it is held. None where it is unknown."""
        if run.failures < MOST_UNKNOWN:
            try:
                iterators = [self._iterator(frame, *each) for each in position.iterators]
                self._count_on_device(frame, position)
                state, held = state_of(self._recording, frame, position.live, iterators)
                return run.counted(state), held
            except Unknown as what:
                run.unknown = str(what)
                run.failures += 1
        return None, Held([], [])

    def _begin_iteration(self, run: LoopRun, state: LoopState) -> bool:
        """Let an iteration compute all it needs from the state: what an earlier one has computed is no part of that.

        Returns whether it does. It costs operations, for nothing where the state is another one each time.
        """
        run.changes += bool(run.heads) and _form_of(run.heads[-1]) != state.form
        if run.changes > MOST_CHANGES:
            return False
        self._recording.writer.forget()
        return True

    def _depends_on_arrays(self, run: LoopRun) -> bool:
        """Whether the iteration so far has taken branches that the device decides."""
        outcomes = self._recording.writer.tape.outcomes[run.heads[-1].outcomes if run.heads else -1 : -1]
        return bool(run.heads) and any(type(each.expected) is bool and not each.node.host for each in outcomes)

    # -- numbers that change from iteration to iteration ---------------------------------------------------------------

    def _count_on_device(self, frame: FrameType, position: code.Position) -> None:
        """Let the device compute, from the next instruction on, the plain numbers that a loop changes.

        Those which Python computes would have to be known before launch, with as many iterations as there will be.
        """
        recording = self._recording
        found: dict[str, Any] = {}
        for name in sorted(position.live & position.counted & frozenset(frame.f_locals)):
            value = frame.f_locals[name]
            if _is_number(value):
                found[name] = self._on_device(value)
        for name, at in position.targets.items():
            values = self._ranges.get((id(frame), at))
            if name in found and values is not None and values.coming is None:
                values.coming = found[name] + values.step
        self._exchange = None
        if found and recording.active:
            self._exchange = frame, {name: (frame.f_locals[name], value) for name, value in found.items()}
            recording.events.ask(frame)

    def _on_device(self, value: Any) -> RecordedScalar:
        writer = self._recording.writer
        if type(value) in (int, float):
            return RecordedScalar(self._recording, value, writer.counter(value))
        return RecordedScalar(self._recording, value._plain_, writer.on_device(value.node(), value._plain_))

    def exchange(self, frame: FrameType) -> None:
        """Put recorded numbers in the place of plain ones in a frame's variables, before its next instruction."""
        if self._exchange is None or self._exchange[0] is not frame:
            return
        found, self._exchange, variables = self._exchange[1], None, frame.f_locals
        coming = {name: value for name, (before, value) in found.items() if variables.get(name) is before}
        self._recording.events.assign(frame, coming)

    def _iterator(self, frame: FrameType, at: int, escapes: bool) -> RangeIterator | None:
        found = self._ranges.get((id(frame), at))
        if found is None and escapes:
            raise Unknown("a loop over something else than a range")
        return found

    def _run_of(self, frame: FrameType, position: code.Position) -> LoopRun:
        if id(frame) not in self._open:
            on_stack = {id(each) for each in frames_of(self._recording)}
            self._open = {key: each for key, each in self._open.items() if key in on_stack}
            self._open[id(frame)] = frame, {}
        runs = self._open[id(frame)][1]
        if frame.f_lasti not in runs:
            where = frame.f_code.co_filename, frame.f_lineno
            runs[frame.f_lasti] = LoopRun(where, self._began[id(frame)], position.loops, position.range_at)
            self.runs.append(runs[frame.f_lasti])
        return runs[frame.f_lasti]
