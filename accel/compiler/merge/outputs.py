"""Merged outputs: what several paths return and leave, as one list of arrays and numbers.

Outputs of the same use are one array of the program, if they have one shape and dtype. A use is the result, an
attribute of an object, or an array changed in place. A phi chooses the value. An output that only some paths have is
chosen on the others, too: it has any value there, and nobody reads it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from accel.compiler.merge.writer import Inseparable, Writer
from accel.ir.tape import Node
from accel.ir.template import leaves
from accel.ir.views import Placed
from accel.record.run.outputs import Outputs
from accel.record.state.leaves import Leaf, NewArray, Number, all_leaves
from accel.record.state.shown import templates_of


@dataclass(slots=True)
class OutputPlaces:
    """Positions of one path's outputs among those of all: its arrays, numbers and changed arrays, in its own order."""

    arrays: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)


_Used = list[tuple[Hashable, Node]]
"""Outputs of one path: the use and the node of each."""


class _Outputs:
    """Outputs of one kind.

    nodes: those that the program computes. uses: the use of each. of_path: for each path, the use and node of each of
    its own, in its order.
    """

    def __init__(self, of_path: list[_Used], writer: Writer) -> None:
        self.nodes: list[Node] = []
        self.uses: list[Hashable] = []
        self._of_path = of_path
        self._places: dict[tuple[int, Hashable], int] = {}
        by_use: dict[Hashable, dict[int, Node]] = {}
        for path, own in enumerate(of_path):
            for use, node in own:
                by_use.setdefault(use, {})[path] = node
        for use, by_path in by_use.items():
            for group, node in for_all_paths(by_path, writer, len(of_path)):
                self._places |= {(path, use): len(self.nodes) for path in group}
                self.nodes.append(node)
                self.uses.append(use)

    def places(self, path: int) -> list[int]:
        """Return the positions of a path's own outputs, in its order."""
        return [self._places[path, use] for use, _ in self._of_path[path]]


def merged_outputs(
    outputs: Sequence[Outputs], slots: Sequence[Sequence[int]], writer: Writer
) -> tuple[Outputs, list[OutputPlaces]]:
    """The outputs of all paths, and where those of each are. They hold no results and writes: each path has its own."""
    arrays: list[_Used] = []
    numbers: list[_Used] = []
    changed: list[_Used] = []
    state: list[tuple[int, Node]] = []
    for path, own in enumerate(outputs):
        uses, placed = _uses(own, slots[path]), slots[path]
        arrays.append(
            [
                ((uses.get((NewArray, at), at), node.shape, node.dtype), writer.current(path, node))
                for at, node in enumerate(own.arrays)
            ]
        )
        numbers.append(
            [
                ((uses.get((Number, at), at), node.dtype, node.scalar, node.host), writer.current(path, node))
                for at, node in enumerate(own.numbers)
            ]
        )
        changed.append([(placed[slot], writer.current(path, node)) for slot, node in own.changed])
        state += [(placed[slot], writer.current(path, node)) for slot, node in own.state]
    all_arrays, all_numbers, all_changed = (_Outputs(each, writer) for each in (arrays, numbers, changed))
    merged = Outputs(
        arrays=all_arrays.nodes,
        numbers=all_numbers.nodes,
        changed=list(zip(all_changed.uses, all_changed.nodes, strict=True)),  # type: ignore[arg-type]  # used: a slot
        state=list({(slot, node.index): (slot, node) for slot, node in state}.values()),
    )
    places = [
        OutputPlaces(all_arrays.places(path), all_numbers.places(path), all_changed.places(path))
        for path in range(len(outputs))
    ]
    return merged, places


def for_all_paths(nodes: dict[int, Node], writer: Writer, paths: int) -> Iterator[tuple[list[int], Node]]:
    """One node for what some paths have and others need not; where no phi can do that, one for each value.

    Each comes with the paths that it is for.
    """
    where = next(iter(nodes.values())).where
    host = any(node.host for node in nodes.values())
    # what Python computes before launch costs nothing to speak of: there the other paths compute it, too
    values = nodes if host else {path: nodes.get(path) for path in range(paths)}
    try:
        yield list(nodes), writer.phi(values, where, on_host=host)
    except Inseparable:
        by_value: dict[int, list[int]] = {}
        for path, node in nodes.items():
            by_value.setdefault(node.index, []).append(path)
        for group in by_value.values():
            yield group, nodes[group[0]]


def _uses(outputs: Outputs, slots: Sequence[int]) -> dict[tuple[type, int], Hashable]:
    """Return the use of each array and number, in words that mean the same on all paths."""
    found: dict[tuple[type, int], Hashable] = {}
    templates: list[tuple[Hashable, object]] = [("result", outputs.result)]
    for write in outputs.writes:
        templates += [((slots[write.owner], use), template) for use, template in write.values()]
    templates += [(("shown", position), templates_of(effect)) for position, effect in enumerate(outputs.shown)]
    for use, template in templates:
        for position, leaf in enumerate(_leaves(template)):
            if isinstance(leaf, (NewArray, Number)):
                found.setdefault((type(leaf), leaf.index), (use, position))
    return found


def _leaves(template: object) -> Iterator[Leaf]:
    """The leaves of a template, and the positions of views among them."""
    for leaf in all_leaves(template):
        yield leaf
        yield from leaves([step.starts for step in getattr(leaf, "chain", ()) if isinstance(step, Placed)], Number)
