"""Merged traces: several recorded paths as one trace, and what each of them finds where in it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from accel.compiler.lower.program import Lowerable
from accel.compiler.merge.alignment import TooLong
from accel.compiler.merge.draws import merged_draws
from accel.compiler.merge.inputs import MergedInputs
from accel.compiler.merge.members import Member, Placement
from accel.compiler.merge.outputs import for_all_paths, merged_outputs
from accel.compiler.merge.placing import NotThere, Placing, operations_of
from accel.compiler.merge.recorded import Recorded
from accel.compiler.merge.writer import Writer
from accel.ir.tape import Node, Outcome, Tape
from accel.platform import tuning
from accel.record import Trace
from accel.record.run.outputs import Outputs
from accel.record.state.draw import Draw
from accel.record.state.inputs import Inputs

MOST_GROWTH = 2.0
"""A merged tape may have this many times as many operations as its longest path: beyond, the paths share too little."""

SMALL = 400
"""Maximum number of operations up to which paths are merged whatever they share: such a program compiles fast."""


class NotMergeable(Exception):
    """Why paths stay programs of their own, in words."""


@dataclass
class MergedTrace:
    """Several recorded paths as one trace, to be lowered and matched as that of one path is.

    members: the paths; sets of them are bit masks. Outcomes on which the paths differ have None for their expected
    value. draws: all paths make the same. key: as of a trace.
    """

    tape: Tape
    inputs: MergedInputs
    outputs: Outputs
    pinned: dict[int, Any]
    members: list[Member]
    draws: list[Draw]
    key: str | None = None

    @functools.cached_property
    def array_slots(self) -> list[int]:
        return self._placed(lambda trace: trace.array_slots)

    @functools.cached_property
    def scalar_slots(self) -> list[int]:
        return self._placed(lambda trace: trace.scalar_slots)

    def _placed(self, own: Callable[[Trace], Sequence[int]]) -> list[int]:
        """The merged slots of members' own ones, each once."""
        return list(dict.fromkeys(each.placement.slots[slot] for each in self.members for slot in own(each.trace)))

    @functools.cached_property
    def inlined(self) -> frozenset[Any]:
        return frozenset[Any]().union(*(member.trace.inlined for member in self.members))

    @functools.cached_property
    def of_some(self) -> frozenset[int]:
        """Indices of nodes that not all paths compute."""
        of_all = frozenset.intersection(*(each.placement.nodes for each in self.members))
        return frozenset(range(len(self.tape.nodes))) - of_all

    def placement_of(self, trace: Trace) -> Placement:
        """Return the placement of a path recorded later. Raises NotMergeable if the tape does not compute it."""
        pinned = {slot: content.tobytes() for slot, content in self.pinned.items()}
        slots = self.inputs.places_for(trace, self.tape)
        if trace.draws or self.draws:
            raise NotMergeable("what draws random numbers is merged anew")
        if pinned != {slots[slot]: content.tobytes() for slot, content in trace.pinned.items()}:
            raise NotMergeable("an array decides which path is taken, and holds something else")
        try:
            return Placing(trace, slots, self.tape, self.outputs, self._by_kind).placement()
        except NotThere as what:
            raise NotMergeable(f"it does what none of the merged paths does: {what}") from None

    @functools.cached_property
    def _by_kind(self) -> Mapping[Hashable, Sequence[Node]]:
        return operations_of(self.tape)

    def with_member(self, member: Member) -> MergedTrace:
        """Return a copy with one more path. A program of its tape, the same object, serves both. Raises
        NotMergeable."""
        inputs = self.inputs.copy()
        _add_inputs(inputs, member, len(self.members))
        return replace(self, inputs=inputs, members=[*self.members, member], key=None)


@tuning.rare_garbage_collection()
def merged(traces: Sequence[Trace]) -> MergedTrace:
    """The merged trace of some paths. Raises NotMergeable."""
    traces = _in_order(traces)
    inputs = MergedInputs()
    slots = [inputs.add(trace, 1 << path) for path, trace in enumerate(traces)]
    tapes = [trace.tape for trace in traces]
    try:
        writer = Writer([Recorded(trace, own) for trace, own in zip(traces, slots, strict=True)])
    except TooLong:
        raise NotMergeable("the paths are long, and differ in much") from None
    longest, operations = max(map(_operations, tapes)), _operations(writer.tape)
    if operations > max(MOST_GROWTH * longest, SMALL):
        raise NotMergeable(f"together they have {operations} operations, the longest alone {longest}")
    outputs, places = merged_outputs([trace.outputs for trace in traces], slots, writer)
    tape, expected = _with_outcomes(writer, len(traces))
    if not writer.check():
        raise NotMergeable("the merged tape does not lead back to the recorded ones")
    pinned = _pinned(traces, slots)
    draws = merged_draws([trace.draws for trace in traces], slots, writer.node_of)
    if draws is None:
        raise NotMergeable("they draw different random numbers")
    members = []
    for path, trace in enumerate(traces):
        outcomes = {position: values[path] for position, (_, values) in enumerate(expected) if path in values}
        observed = {index: position for position, (index, values) in enumerate(expected) if path in values}
        on_host = {
            index: values[path]
            for index, values in writer.expected.items()
            if path in values and tape.nodes[index].host
        }
        node_of = [writer.node_of[path][node.index].index for node in trace.tape.nodes]
        placement = Placement(slots[path], places[path], outcomes, observed, on_host, node_of)
        members.append(Member(trace, placement))
    return MergedTrace(tape, inputs, outputs, pinned, members, draws)


def reassembled(
    tape: Tape, outputs: Outputs, pinned: dict[int, Any], draws: list[Draw], members: list[Member], names: Sequence[str]
) -> MergedTrace:
    """A merged trace of which only some paths are known in this process. names: of all its slots.

    Raises NotMergeable where the members do not read the same in the slots that they share.
    """
    inputs = MergedInputs(names)
    for path, member in enumerate(members):
        _add_inputs(inputs, member, path)
    return MergedTrace(tape, inputs, outputs, pinned, members, draws)


def _add_inputs(inputs: MergedInputs, member: Member, path: int) -> None:
    slots, count = member.placement.slots, len(member.trace.inputs.slots) + Inputs.ROOTS
    # another program may compute the same, and check something else
    if len(slots) != count or inputs.add(member.trace, 1 << path, slots) != slots:
        raise NotMergeable("paths read other inputs than those of an earlier run")


def of_nobody(trace: Lowerable, of_some: frozenset[int]) -> MergedTrace:
    """A merged trace of which no path is known in this process. of_some: as of a merged trace."""
    made = MergedTrace(trace.tape, MergedInputs(), trace.outputs, trace.pinned, [], trace.draws)
    made.of_some = of_some
    return made


def _in_order(traces: Sequence[Trace]) -> list[Trace]:
    """Paths in an order that is the same in every process, whichever was found first."""

    def order(trace: Trace) -> Any:
        outcomes = [(outcome.where, repr(outcome.expected)) for outcome in trace.tape.outcomes]
        return outcomes, len(trace.tape.nodes), len(trace.inputs.slots)

    return sorted(traces, key=order)


def _operations(tape: Tape) -> int:
    return sum(not node.host and not node.is_input for node in tape.nodes)


def _with_outcomes(writer: Writer, paths: int) -> tuple[Tape, list[tuple[int, dict[int, Any]]]]:
    """The tape with its outcomes on the device, and of each the node and what each path expects of it."""
    outcomes: list[Outcome] = []
    expected: list[tuple[int, dict[int, Any]]] = []
    for index, by_path in list(writer.expected.items()):
        node = writer.tape.nodes[index]
        if node.host:
            continue
        # what only some paths come to is chosen on the others, so that they need not compute it
        for group, found in for_all_paths(dict.fromkeys(by_path, node), writer, paths):
            values = {repr(by_path[path]): by_path[path] for path in group}
            is_common = len(group) == paths and len(values) == 1
            outcomes.append(Outcome(found, next(iter(values.values())) if is_common else None, node.where))
            expected.append((index, {path: by_path[path] for path in group}))
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
