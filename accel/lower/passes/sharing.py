"""Sharing: how many kernels a value is computed in, where nothing is stored but what has to be, and how it is read.

XLA:CPU fuses a value into all that reads it, and whatever is fused with that, up to what it stores: results, sums, what
goes into a loop or a conditional, and what accel has it store (`recompute`). Each of those is a kernel of its own, and
computes the value anew.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

from accel.ir.loop import body_of
from accel.ir.tape import Node
from accel.lower.passes.arrange import Part
from accel.lower.passes.branches import Conditional, chosen_at
from accel.lower.passes.recompute import COSTLY, Recomputation
from accel.rules import core
from accel.rules.columns import fact


def kernels(parts: Sequence[Part], results: Collection[int]) -> Mapping[int, int]:
    """The number of kernels, by index, for the operations that several others read. results: what is stored at the end.

    The sides of a conditional count each for themselves.
    """
    found: dict[int, int] = {}
    stored, plain = _stored(parts, results)
    readers: dict[int, set[int]] = {}
    ends: dict[int, frozenset[int]] = {}  # by node, the stored ones that compute it
    for node in reversed(plain):
        mine = readers.get(node.index, set())
        ends[node.index] = frozenset().union(*(({each} if each in stored else ends[each]) for each in mine))
        if len(mine) > 1 and node.index not in stored:
            found[node.index] = len(ends[node.index])
        for operand in node.operands():
            readers.setdefault(operand.index, set()).add(node.index)
    for part in parts:
        if isinstance(part, Conditional):
            for place, side in enumerate(part.sides):
                found |= kernels(side, chosen_at(part.phis, place))
    return found


def padded(parts: Sequence[Part]) -> frozenset[int]:
    """The values, by index, that an operation outside of loops reads from a padded copy."""
    return frozenset(node.operands()[0].index for node in _operations(parts) if fact(node.rule.locality.pads, node))


def read_apart(parts: Sequence[Part]) -> frozenset[int]:
    """The values, by index, that something costly is computed from, and that are read from more than one place.

    As `x` in `np.exp(x[1:] - x[:-1])`. By operations outside of loops.
    """
    places: dict[int, set[Hashable]] = {}
    costly: set[int] = set()
    for node in reversed(list(_operations(parts))):
        for operand in node.operands():
            places.setdefault(operand.index, set()).update(_places(node))
            if node.index in costly or node.rule.cost.work >= COSTLY:
                costly.add(operand.index)
    return frozenset(index for index, found in places.items() if len(found) > 1 and index in costly)


def _operations(parts: Sequence[Part]) -> Iterator[Node]:
    """Those outside of loops, in order, those of all sides of conditionals among them."""
    for part in parts:
        if isinstance(part, Conditional):
            for side in part.sides:
                yield from _operations(side)
        elif isinstance(part, Node) and body_of(part) is None:
            yield part


def _places(node: Node) -> Iterable[Hashable]:
    """From where an operation reads: as a key that is equal for equal places."""
    if node.rule is core.READ:
        return [node.args[1]]
    if node.rule is core.READ_AT:
        return [node.index]
    return [(node.index, "one"), (node.index, "another")] if fact(node.rule.locality.shifts, node) else [()]


def _stored(parts: Sequence[Part], results: Collection[int]) -> tuple[set[int], list[Node]]:
    """What is stored anyway, by index, and the operations that are no loop or conditional."""
    recomputation, stored, plain = Recomputation(), set(results), []
    for part in parts:
        if isinstance(part, Node) and body_of(part) is None:
            storing = recomputation.enter(part)
            stored.update(node.index for node in (*storing.copy, *storing.materialize))
            if part.rule.cost.stored:
                stored.add(part.index)
            plain.append(part)
        else:
            for operand in part.operands():
                stored.add(operand.index)
                recomputation.stored(operand)
    return stored, plain
