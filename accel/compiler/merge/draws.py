"""Merged draws: the random numbers that several paths draw alike.

They are drawn before launch, when it is not known which of the paths the call takes. So all paths must draw the same:
from the same generators, by the same methods, with the same arguments, in the same order.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from accel.compiler.lower.program import refilled
from accel.compiler.merge.alignment import static_form
from accel.ir.tape import Node, nodes_in
from accel.record import Trace
from accel.record.state.draw import Draw
from accel.record.values.draws.early import are_early


def merged_draws(
    draws: Sequence[Sequence[Draw]], slots: Sequence[Sequence[int]], node_of: Sequence[Mapping[int, Node]]
) -> list[Draw] | None:
    """The draws of all paths, in merged slots and nodes; None where they are not the same.

    slots, node_of: for each path, the merged slot of each of its slots, and the merged node of each of its nodes.
    """
    found = [
        [_placed(draw, own, nodes) for draw in each] for each, own, nodes in zip(draws, slots, node_of, strict=True)
    ]
    keys = [[_key(draw) for draw in each] for each in found]
    if any(each != keys[0] for each in keys):
        return None
    # what a choice of the program's decides is known too late
    return found[0] if all(are_early(nodes_in((draw.args, draw.kwargs))) for draw in found[0]) else None


def draw_alike(one: Trace, other: Trace) -> bool:
    """Whether two paths seem to draw the same: whether they do shows when they are merged."""
    return _described(one) == _described(other)


def _described(trace: Trace) -> list[Hashable]:
    def owner(draw: Draw) -> str | None:
        return None if draw.owner is None else trace.inputs.name(draw.owner)

    return [(owner(draw), draw.method, draw.form, static_form((draw.args, draw.kwargs))) for draw in trace.draws]


def _placed(draw: Draw, slots: Sequence[int], nodes: Mapping[int, Node]) -> Draw:
    owner = None if draw.owner is None else slots[draw.owner]
    return replace(refilled(draw, lambda node: nodes[node.index]), slot=slots[draw.slot], owner=owner)


def _key(draw: Draw) -> Hashable:
    arguments = static_form((draw.args, draw.kwargs), operator.attrgetter("index"))
    return draw.slot, draw.owner, draw.method, arguments, draw.form
