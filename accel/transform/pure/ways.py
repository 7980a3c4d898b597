"""Ways: the recorded paths on which a pure function answers calls.

Each is identified by its required outcomes. A call that matches no path was never recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accel.compiler.merge import Member, MergedTrace
from accel.compiler.merge.members import Placement
from accel.compiler.merge.outputs import OutputPlaces
from accel.ir.tape import Node
from accel.record import Trace


@dataclass(slots=True)
class Way:
    """One path through the function.

    assumed: nodes with their required outcomes. trace: the trace with its result and side effects. slots, outputs: the
    positions of the trace's slots and outputs in the merged trace. nodes: indices of its operations, at least those on
    the host.
    """

    assumed: list[tuple[Node, Any]]
    trace: Trace
    slots: list[int]
    outputs: OutputPlaces
    nodes: frozenset[int]


def ways_of(trace: MergedTrace) -> list[Way]:
    """Return the paths of a merged trace: those of its members."""
    return [_of_member(trace, member) for member in trace.members]


def _of_member(trace: MergedTrace, member: Member) -> Way:
    placement = member.placement
    return Way(_assumed(trace, placement), member.trace, placement.slots, placement.outputs, placement.nodes)


def _assumed(trace: MergedTrace, way: Placement) -> list[tuple[Node, Any]]:
    assumed = [(trace.tape.outcomes[position].node, value) for position, value in way.outcomes.items()]
    return assumed + [(trace.tape.nodes[index], value) for index, value in way.on_host.items()]
