"""Members: the paths of a merged trace, and where each of them finds what in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accel.compiler.merge.outputs import OutputPlaces
from accel.record import Trace


@dataclass(slots=True)
class Placement:
    """Positions of one path's values and outputs in a merged trace; plain data.

    slots: the merged slot of each of its own. outputs: where its outputs are. outcomes: what it assumes on the device,
    by position among the merged trace's outcomes. observed: that position by index of the merged node. on_host: what it
    assumes of numbers that Python computes, by index of the merged node. node_of: the index of the merged node of each
    of its own.
    """

    slots: list[int]
    outputs: OutputPlaces
    outcomes: dict[int, Any]
    observed: dict[int, int]
    on_host: dict[int, Any]
    node_of: list[int]

    @property
    def nodes(self) -> frozenset[int]:
        """Indices of the merged nodes that it computes."""
        return frozenset(self.node_of)


@dataclass(slots=True)
class Member:
    """One path of a merged trace."""

    trace: Trace
    placement: Placement
