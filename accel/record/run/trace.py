"""Trace: a finished recording, as guards, passes and programs read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from accel.ir.tape import Node, Tape
from accel.reasons import Refusal
from accel.record.objects.containers.container import ContainerProxy
from accel.record.objects.generators import GeneratorProxy
from accel.record.objects.objects import ObjectProxy
from accel.record.objects.records import Records
from accel.record.run import outputs
from accel.record.run.loops.heads import Run
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
    there (see accel.record.state.joins). reused: outcomes from before a join on which the path relies after it again.
    key: its key on disk, once it is known (see accel.backend.job).
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
    runs: list[Run] = field(default_factory=list)
    joins: list[Join] = field(default_factory=list)
    reused: list[Node] = field(default_factory=list)
    key: str | None = None


def trace_of(recording: Recording, plan: outputs.Outputs | None = None) -> Trace:
    """The trace of a recording, as far as it got. plan: what a replay has to write back."""
    objects = [
        wrapper._slot_
        for wrapper in recording.registry.values.values()
        if issubclass(type(wrapper), (ObjectProxy, ContainerProxy, GeneratorProxy)) and wrapper._slot_ is not None
    ]
    # `a is b` of two tuples or arrays of records: in a later call they must be different objects again.
    if recording.compares_identity:
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
        objects,
        [storage.origin.args[0] for storage in recording.storages if storage.origin is not None],
        [slot for slot in numbers if slot not in drawn],
        frozenset(recording.inlined),
        recording.compares_identity,
        pinned,
        list(recording.draws),
        [] if recording.heads is None else recording.heads.runs,
        # which objects are one, and what has been drawn, is no part of a state
        [] if recording.compares_identity or recording.draws else recording.joins.found,
        recording.writer.reused,
    )
