"""Merged traces: several recorded paths as one trace, and what each of them finds where in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accel.ir.tape import Node, Outcome, Tape
from accel.merge.alignment import TooLong
from accel.merge.inputs import MergedInputs
from accel.merge.outputs import Places, for_all_paths, merged_outputs
from accel.merge.writer import Writer
from accel.record import Trace
from accel.record.outputs import Outputs

MOST_GROWTH = 2.0
"""A merged tape may have this many times as many operations as its longest path: beyond, the paths share too little."""

SMALL = 400
"""Up to so many operations paths are merged whatever they share: such a program compiles fast as it is."""


class NotMergeable(Exception):
    """Why paths stay programs of their own, in words."""


@dataclass(slots=True)
class Member:
    """One path of a merged trace. slots: the merged slot of each of its own. places: of its outputs.

    outcomes: what it assumes on the device, by position among the merged trace's outcomes. on_host: what it assumes of
    numbers that Python computes, by index of the merged node.
    """

    trace: Trace
    slots: list[int]
    places: Places
    outcomes: dict[int, Any]
    on_host: dict[int, Any]


@dataclass(slots=True)
class MergedTrace:
    """Several recorded paths as one trace, to be lowered and matched as that of one path is.

    members: the paths, in an order that does not depend on when each was found; sets of them are bit masks. of_some:
    indices of nodes that not all paths compute. Outcomes on which the paths differ have None for their expected value.
    """

    tape: Tape
    inputs: MergedInputs
    outputs: Outputs
    array_slots: list[int]
    scalar_slots: list[int]
    inlined: frozenset[Any]
    pinned: dict[int, Any]
    members: list[Member]
    of_some: frozenset[int]


def merged(traces: Sequence[Trace]) -> MergedTrace:
    """The merged trace of some paths. Raises NotMergeable."""
    traces = in_order(traces)
    inputs = MergedInputs()
    slots = [inputs.add(trace.inputs, 1 << path) for path, trace in enumerate(traces)]
    tapes = [trace.tape for trace in traces]
    try:
        writer = Writer(tapes, slots)
    except TooLong:
        raise NotMergeable("the paths are long, and differ in much") from None
    longest, operations = max(map(_operations, tapes)), _operations(writer.tape)
    if operations > max(MOST_GROWTH * longest, SMALL):
        raise NotMergeable(f"together they have {operations} operations, the longest alone {longest}")
    outputs, places = merged_outputs([trace.outputs for trace in traces], slots, writer)
    tape, device = _with_outcomes(writer, len(traces))
    if not writer.check(tapes):
        raise NotMergeable("the merged tape does not lead back to the recorded ones")
    merged_nodes = [frozenset(node.index for node in writer.node_of[path].values()) for path in range(len(traces))]
    members = [
        Member(
            trace,
            slots[path],
            places[path],
            {position: expected[path] for position, expected in enumerate(device) if path in expected},
            {index: expected[path] for index, expected in writer.expected.items()
             if path in expected and tape.nodes[index].host},  # fmt: skip
        )
        for path, trace in enumerate(traces)
    ]
    return MergedTrace(
        tape=tape,
        inputs=inputs,
        outputs=outputs,
        array_slots=_all_of(trace_slots(trace.array_slots, own) for trace, own in zip(traces, slots, strict=True)),
        scalar_slots=_all_of(trace_slots(trace.scalar_slots, own) for trace, own in zip(traces, slots, strict=True)),
        inlined=frozenset().union(*(trace.inlined for trace in traces)),
        pinned=_pinned(traces, slots),
        members=members,
        of_some=frozenset().union(*merged_nodes) - frozenset.intersection(*merged_nodes),
    )


def in_order(traces: Sequence[Trace]) -> list[Trace]:
    """Paths in an order that is the same in every process, whichever was found first."""
    return sorted(traces, key=lambda trace: (
        [(outcome.where, repr(outcome.expected)) for outcome in trace.tape.outcomes],
        len(trace.tape.nodes),
        len(trace.inputs.slots),
    ))  # fmt: skip


def trace_slots(own: Sequence[int], slots: Sequence[int]) -> list[int]:
    """Merged slots of a path's own."""
    return [slots[slot] for slot in own]


def _all_of(lists: Any) -> list[int]:
    return list(dict.fromkeys(slot for each in lists for slot in each))


def _operations(tape: Tape) -> int:
    return sum(not node.host and not node.is_input for node in tape.nodes)


def _with_outcomes(writer: Writer, paths: int) -> tuple[Tape, list[dict[int, Any]]]:
    """The tape with its outcomes on the device, and what each path expects of each of them."""
    outcomes: list[Outcome] = []
    expected: list[dict[int, Any]] = []
    for index, by_path in list(writer.expected.items()):
        node = writer.tape.nodes[index]
        if node.host:
            continue
        # what only some paths come to is chosen on the others, so that they need not compute it
        for group, found in for_all_paths(dict.fromkeys(by_path, node), writer, paths):
            values = [by_path[path] for path in group]
            common = values[0] if len(values) == paths and all(repr(each) == repr(values[0]) for each in values) else None
            outcomes.append(Outcome(found, common, node.where))
            expected.append({path: by_path[path] for path in group})
    return Tape(writer.tape.nodes, outcomes), expected


def _pinned(traces: Sequence[Trace], slots: Sequence[Sequence[int]]) -> dict[int, Any]:
    """The contents of arrays that decide the paths. Raises NotMergeable where they are not the same for all."""
    found = [
        {own[slot]: content for slot, content in trace.pinned.items()} for trace, own in zip(traces, slots, strict=True)
    ]
    first = found[0]
    for other in found[1:]:
        if other.keys() != first.keys() or any(other[slot].tobytes() != first[slot].tobytes() for slot in first):
            raise NotMergeable("an array decides which path is taken, and holds something else on each")
    return first


def nodes_of(outputs: Outputs) -> list[Node]:
    """All nodes that the outputs need."""
    return [*outputs.arrays, *outputs.numbers, *(node for _, node in outputs.changed)]
