"""Sides: which of a program's paths a call may take by what it assumes, and which one a run has taken.

A trace that was recorded alone has one path, itself. Sets of paths are bit masks, as in accel.compiler.merge.inputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from accel.compiler.lower.program import Lowerable
from accel.compiler.merge.members import Placement
from accel.compiler.merge.trace import MergedTrace
from accel.ir.tape import Node, Outcome
from accel.record import Trace


def of_some(trace: Lowerable) -> frozenset[int]:
    """Indices of the nodes that only some of a trace's paths compute."""
    return trace.of_some if isinstance(trace, MergedTrace) else frozenset()


def assumed_on_host(trace: Lowerable) -> list[tuple[Outcome, int]]:
    """Assumptions about numbers that Python computes before launch, each with the paths that make it."""
    if not isinstance(trace, MergedTrace):
        return [(outcome, 1) for outcome in trace.tape.outcomes if outcome.node.host]
    found: dict[tuple[int, str], tuple[Outcome, int]] = {}
    for path, member in enumerate(trace.members):
        for index, value in member.placement.on_host.items():
            node, key = trace.tape.nodes[index], (index, repr(value))
            outcome, paths = found.get(key) or (Outcome(node, value, node.where), 0)
            found[key] = outcome, paths | 1 << path
    return [found[key] for key in sorted(found, key=lambda key: key[0])]


class Side:
    """Positions of one path's values and outputs among those of a program.

    forms: shape and dtype of each of its new arrays, as `accel.backend.executable.shared` takes them. arrays: the
    positions of these, then of the changed ones. values: gives those of its slots. host: indices of the nodes that
    Python computes before launch for this path, but not for all.
    """

    def __init__(self, trace: Trace) -> None:
        outputs = trace.outputs
        self.trace = trace
        self.forms = [(node.shape, np.dtype(node.dtype).str) for node in outputs.arrays]
        self.arrays: tuple[int, ...] = tuple(range(len(outputs.arrays) + len(outputs.changed)))
        self.numbers: list[int] = []
        self.host: list[int] = []
        self.values: Callable[[list[Any]], Any] = list

    def place(self, placement: Placement, new: int, host: Collection[int]) -> Side:
        """Let these be positions in a merged trace. new: its new arrays. host: nodes of some of its paths."""
        places = placement.outputs
        self.arrays = *places.arrays, *(new + at for at in places.changed)
        self.numbers = places.numbers
        self.host = sorted(placement.nodes.intersection(host))
        self.values = operator.itemgetter(*placement.slots)
        return self


def sides_of(trace: Lowerable, host: Iterable[Node]) -> list[Side]:
    """The paths of a trace. host: what Python computes before launch."""
    if not isinstance(trace, MergedTrace):
        return [Side(cast("Trace", trace))]  # a run needs no more of a trace than what is lowered
    new, some = len(trace.outputs.arrays), trace.of_some.intersection(node.index for node in host)
    return [Side(member.trace).place(member.placement, new, some) for member in trace.members]


class DeviceOutcomes:
    """Which path a run has taken, as its outcomes on the device show."""

    def __init__(self, trace: Lowerable, checked: Sequence[Outcome]) -> None:
        """checked: the outcomes that the program gives, in order."""
        # compared as one vector; the program returns all outcomes as float64, branches as 0.0 and 1.0
        if not isinstance(trace, MergedTrace):
            self._expected = np.array([float(outcome.expected) for outcome in checked])
            self._free: NDArray[np.bool_] | None = None
            return
        positions = {id(outcome): position for position, outcome in enumerate(trace.tape.outcomes)}
        at = [positions[id(outcome)] for outcome in checked]
        # a row for each path: what it expects of each outcome, and whether it expects anything
        outcomes = [member.placement.outcomes for member in trace.members]
        self._expected = np.array([[float(own.get(each, 0)) for each in at] for own in outcomes])
        self._free = np.array([[each not in own for each in at] for own in outcomes], bool)

    def taken(self, outcomes: NDArray[Any], paths: int) -> int | None:
        """The path that a run has taken; None if it is none of these."""
        assert outcomes.shape == self._expected.shape[-1:], "NumPy would broadcast, and hide a difference"
        if self._free is None:
            return None if outcomes.size and (outcomes != self._expected).any() else 0
        held = ((outcomes == self._expected) | self._free).all(axis=1)
        return next((path for path, holds in enumerate(held) if holds and paths >> path & 1), None)

    def left_at(self, outcomes: NDArray[Any], paths: int) -> int:
        """The position of the outcome at which a run has left these paths.

        That is the first by which no path goes on. Else each leaves at another one, and it is the last of these.
        """
        if self._free is None:
            return int((outcomes != self._expected).argmax())
        agree = (outcomes == self._expected) | self._free
        rows = agree[[bool(paths >> path & 1) for path in range(len(agree))]]
        strange = ~rows.any(axis=0)
        return int(strange.argmax()) if strange.any() else int(rows.argmin(axis=1).max())
