"""Trace: a finished recording, as guards, passes and programs read it; and the results of recording a call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from accel.ir.tape import Tape
from accel.platform.reasons import Refusal
from accel.record.objects.containers.container import ContainerProxy
from accel.record.objects.generators import GeneratorProxy
from accel.record.objects.objects import ObjectProxy
from accel.record.objects.records import Records
from accel.record.run import outputs
from accel.record.run.loops.heads import LoopRun
from accel.record.state import inputs
from accel.record.state.draw import Draw
from accel.record.state.joins import Join
from accel.record.state.pinned import note_pinned
from accel.record.state.recording import Recording, gap_text


@dataclass(slots=True)
class Trace:
    """A finished recording: tape, inputs, outputs, and the truths about inputs that its path took for granted.

    aliases, same: pairs of slots that hold the same array or object. objects: slots of objects and
    containers, which must stay different ones where the path writes attributes. array_slots, scalar_slots: those of
    arrays and of numbers. inlined: targets that ran inside it. identity: the path compares objects by `is`, so that all
    of them must stay different. pinned: the contents of arrays that are the same in every call that matches, by slot
    (see accel.record.state.pinned). draws: the random numbers that it draws, in order. runs: where its loops were asked
    for their conditions (see accel.record.run.loops). joins: where branches join again, with what the program held
    there (see accel.record.state.joins). key: its key on disk, once it is known (see accel.backend.job).
    """

    tape: Tape
    inputs: inputs.Inputs
    outputs: outputs.Outputs
    aliases: list[tuple[int, int]]
    same: list[tuple[int, int]]
    objects: list[int]
    array_slots: list[int]
    scalar_slots: list[int]
    inlined: frozenset[Any]
    identity: bool
    pinned: dict[int, Any]
    draws: list[Draw]
    runs: list[LoopRun] = field(default_factory=list)
    joins: list[Join] = field(default_factory=list)
    key: str | None = None


def trace_of(recording: Recording, plan: outputs.Outputs | None = None) -> Trace:
    """The trace of a recording, as far as it got. plan: what a replay has to write back."""
    objects = [
        wrapper._slot_
        for wrapper in recording.registry.values.values()
        if issubclass(type(wrapper), (ObjectProxy, ContainerProxy, GeneratorProxy)) and wrapper._slot_ is not None
    ]
    # `a is b` of two tuples or arrays of records: in a later call they must be different objects again.
    if recording.code.compares_identity:
        objects += [entered.slot for entered in recording.kept.tuples.values()]
        objects += [each._slot_ for each in recording.registry.values.values() if issubclass(type(each), Records)]
    nodes = [node for node in recording.writer.tape.nodes if node.is_input and node.host]
    numbers = [node.args[0] for node in nodes if node.dtype is not None]
    drawn = {draw.slot for draw in recording.draws}
    pinned = note_pinned(recording.writer.tape.outcomes, recording.storages, recording.inputs)
    try:
        recording.inputs.prepare()
    except Exception as error:  # a fault of ours must never reach the user
        recording.refusal = recording.refusal or Refusal("recorder.gap", "", gap_text(error))
    return Trace(
        recording.writer.tape,
        recording.inputs,
        plan or outputs.Outputs(),
        recording.aliases,
        recording.same,
        objects=objects,
        array_slots=[storage.origin.args[0] for storage in recording.storages if storage.origin is not None],
        scalar_slots=[slot for slot in numbers if slot not in drawn],
        inlined=frozenset(recording.inlined),
        identity=recording.code.compares_identity,
        pinned=pinned,
        draws=list(recording.draws),
        runs=recording.heads.runs,
        joins=[] if recording.draws else recording.joins.found,
    )


@dataclass(slots=True)
class Completed:
    """The call went through and gave `result`.

    refusal: why the trace is no program; it then tells only which calls are like this one.
    """

    result: Any
    trace: Trace | None
    refusal: Refusal | None


@dataclass(slots=True)
class Undone:
    """The writes of the call were put back: the caller runs it again, on NumPy.

    refusal: why. trace: as far as it got; None after a fault of accel's.
    """

    refusal: Refusal
    trace: Trace | None


@dataclass(slots=True)
class Raised:
    """The program's own code raised `error`, and what it did before cannot be undone: the caller raises the error.

    refusal: why the tape broke.
    """

    error: BaseException
    refusal: Refusal | None


Result = Completed | Undone | Raised
