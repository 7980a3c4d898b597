"""Merged outputs: what several paths return and leave, as one list of arrays and numbers, each where it comes first.

An output of the same use (the result, an attribute of an object, an array that is changed in place) is one array of the
program, if it has one shape and dtype; a phi chooses which. What only some paths leave is chosen on the others, too:
there it is any value, and nobody reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from accel.ir.tape import Node
from accel.ir.template import leaves
from accel.merge.writer import Inseparable, Writer
from accel.record.outputs import Leaf, Made, Number, Outputs, Shared


@dataclass(slots=True)
class Places:
    """Where one path's outputs are among those of all: its arrays, numbers and changed arrays, in its own order."""

    arrays: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)


Uses = dict[Hashable, dict[int, Node]]
"""For each use and form of an output, the node of each path that has one."""


def merged_outputs(
    outputs: Sequence[Outputs], slots: Sequence[Sequence[int]], writer: Writer
) -> tuple[Outputs, list[Places]]:
    """The outputs of all paths, and where those of each are. They hold no results and writes: each path has its own."""
    merged, places = Outputs(), [Places() for _ in outputs]
    arrays: Uses = {}
    numbers: Uses = {}
    changed: Uses = {}
    keys = []
    for path, own in enumerate(outputs):
        uses, node_of = _uses(own, slots[path]), writer.node_of[path]
        array_keys = [(uses.get((Made, at), at), node.shape, node.dtype) for at, node in enumerate(own.arrays)]
        number_keys = [
            (uses.get((Number, at), at), node.dtype, node.scalar, node.host) for at, node in enumerate(own.numbers)
        ]
        changed_keys = [slots[path][slot] for slot, _ in own.changed]
        for found, own_keys, nodes in (
            (arrays, array_keys, own.arrays),
            (numbers, number_keys, own.numbers),
            (changed, changed_keys, [node for _, node in own.changed]),
        ):
            for key, node in zip(own_keys, nodes, strict=True):
                found.setdefault(key, {})[path] = node_of[node.index]
        keys.append((array_keys, number_keys, changed_keys))
        merged.state += [
            state for state in ((slots[path][slot], node_of[node.index]) for slot, node in own.state)
            if state not in merged.state
        ]
    at_array = _placed(arrays, merged.arrays.append, writer, len(outputs))
    at_number = _placed(numbers, merged.numbers.append, writer, len(outputs))
    at_changed: dict[tuple[int, Hashable], int] = {}
    for slot, found in changed.items():
        at_changed |= _placed({slot: found}, lambda node, slot=slot: merged.changed.append((slot, node)), writer, len(outputs), len(merged.changed))  # fmt: skip
    for path, (array_keys, number_keys, changed_keys) in enumerate(keys):
        places[path].arrays = [at_array[path, key] for key in array_keys]
        places[path].numbers = [at_number[path, key] for key in number_keys]
        places[path].changed = [at_changed[path, key] for key in changed_keys]
    return merged, places


def _placed(
    found: Uses, add: Callable[[Node], None], writer: Writer, paths: int, first: int = 0
) -> dict[tuple[int, Hashable], int]:
    """Add one output for each use, or several where no phi can stand for all; returns the place for each path and use."""
    places: dict[tuple[int, Hashable], int] = {}
    position = first
    for key, nodes in found.items():
        for group, node in for_all_paths(nodes, writer, paths):
            add(node)
            places |= {(path, key): position for path in group}
            position += 1
    return places


def for_all_paths(nodes: dict[int, Node], writer: Writer, paths: int) -> Iterator[tuple[list[int], Node]]:
    """One node for what some paths have and others need not; where no phi can do that, one for each value."""
    where = next(iter(nodes.values())).where
    try:
        host = any(node.host for node in nodes.values())
        values = nodes if host else {path: nodes.get(path) for path in range(paths)}
        yield list(nodes), writer.phi(values, where, on_host=host)
    except Inseparable:
        by_value: dict[int, list[int]] = {}
        for path, node in nodes.items():
            by_value.setdefault(node.index, []).append(path)
        for group in by_value.values():
            yield group, nodes[group[0]]


def _uses(outputs: Outputs, slots: Sequence[int]) -> dict[tuple[type, int], Hashable]:
    """What each array and number is for, in words that mean the same on all paths."""
    found: dict[tuple[type, int], Hashable] = {}
    written = [(("write", slots[write.owner], write.is_item, repr(write.name)), write.value) for write in outputs.writes]
    for use, template in (("result", outputs.result), *written):
        for position, leaf in enumerate(_leaves(template)):
            if isinstance(leaf, (Made, Number)):
                found.setdefault((type(leaf), leaf.index), (use, position))
    return found


def _leaves(template: object) -> Iterator[Leaf]:
    for leaf in leaves(template, Leaf):
        if isinstance(leaf, Shared):
            yield from _leaves(leaf.template)
        else:
            yield leaf
