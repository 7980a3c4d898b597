"""Ways: the paths on which a pure function answers calls: recorded paths, and crossings between them.

Each is identified by its required outcomes. A call that matches no path was never recorded.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.merge import Accepted, Member, MergedTrace
from accel.merge.members import Placement
from accel.merge.outputs import OutputPlaces
from accel.record import Trace

MOST_TRIED = 1024
"""Maximum combinations of branches to try in the search for crossings between recorded paths."""

Key = tuple[str, int]
"""Key of an outcome: "device" and its position among the merged ones, or "host" and the index of its node."""


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


def ways_of(trace: MergedTrace, values: list[Any]) -> list[Way]:
    """Return the paths of a merged trace: those of its members first. values: of the slots, in the example."""
    ways = [_of_member(trace, member) for member in trace.members]
    known = {_key(way) for way in ways}
    for accepted in _crossed(trace):
        if not _shares(accepted, values):
            way = _of_accepted(trace, accepted)
            if _key(way) not in known:
                known.add(_key(way))
                ways.append(way)
    return ways


def _key(way: Way) -> Hashable:
    return frozenset((node.index, repr(expected)) for node, expected in way.assumed)


def _of_member(trace: MergedTrace, member: Member) -> Way:
    placement = member.placement
    return Way(_assumed(trace, placement), member.trace, placement.slots, placement.outputs, placement.nodes)


def _of_accepted(trace: MergedTrace, accepted: Accepted) -> Way:
    return Way(_assumed(trace, accepted), accepted.trace, accepted.slots, accepted.outputs, accepted.host)


def _assumed(trace: MergedTrace, way: Placement | Accepted) -> list[tuple[Node, Any]]:
    assumed = [(trace.tape.outcomes[position].node, value) for position, value in way.outcomes.items()]
    return assumed + [(trace.tape.nodes[index], value) for index, value in way.on_host.items()]


def _shares(accepted: Accepted, values: list[Any]) -> bool:
    """Return whether an array that a path writes to shares memory with another that it reads (see MergedVariant)."""
    arrays = [(slot, values[slot]) for slot in accepted.arrays if isinstance(values[slot], np.ndarray)]
    return any(slot != written and values[written] is value for written in accepted.changed for slot, value in arrays)


class _Undecided(Exception):
    """The search needs an outcome that has not been chosen yet."""

    def __init__(self, key: Key) -> None:
        super().__init__(key)
        self.key = key


def _crossed(trace: MergedTrace) -> Iterator[Accepted]:
    """Yield the crossings among all combinations of outcomes of recorded paths."""
    if len(trace.members) < 2 or not trace.crossings.exist:
        return
    candidates = _candidates(trace)
    everybody = (1 << len(trace.members)) - 1
    waiting: list[dict[Key, Any]] = [{}]
    tried = 0
    while waiting and tried < MOST_TRIED:
        chosen = waiting.pop()
        tried += 1

        def shown(number: int, node: Node, chosen: dict[Key, Any] = chosen) -> Any:
            placement = trace.members[number].placement
            index = placement.node_of[node.index]
            if ("host", index) in candidates:
                key: Key = "host", index
            elif index in placement.observed:
                key = "device", placement.observed[index]
            else:
                return None
            if key not in candidates:
                return None
            if key not in chosen:
                raise _Undecided(key)
            return float(chosen[key])

        try:
            accepted = trace.crossings.accepted(everybody, shown)
        except _Undecided as asked:
            waiting += [{**chosen, asked.key: value} for value in candidates[asked.key]]
            continue
        if accepted is not None:
            yield accepted


def _candidates(trace: MergedTrace) -> dict[Key, list[Any]]:
    """Return, by outcome, the values that recorded paths have had."""
    found: dict[Key, dict[str, Any]] = {}
    for member in trace.members:
        for position, value in member.placement.outcomes.items():
            found.setdefault(("device", position), {})[repr(value)] = value
        for index, value in member.placement.on_host.items():
            found.setdefault(("host", index), {})[repr(value)] = value
    return {key: list(values.values()) for key, values in found.items()}
