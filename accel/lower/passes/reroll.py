"""Rolling: a loop that the recording unrolled becomes a loop again.

A program of hundreds of equal bodies takes XLA minutes to compile, and its fused stencils are computed again and again.
Here the sequence of operations is searched for a part that repeats: the same operations, whose operands are the same
values, values of their own round, or values of the round before. The first round stays as it is; the others become one
`lax.scan`. Numbers and slices that differ from round to round are looked up in tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.ir.tape import Node, frozen_static
from accel.ir.views import Box, Index, box_of
from accel.rules import core, fusion

ROUNDS = 6
"""Fewer rounds than this are not worth a loop."""

OPERATIONS = 48
"""Fewer operations than this, all rounds together, are not worth a loop."""

CANDIDATES = 24
"""Lengths of a round that are tried."""

LONGEST = 2048
"""Operations of the longest round that is looked for."""

ATTEMPTS = 24
"""Repetitions that may turn out to be no loops before the search ends, those that cover most first."""

FEW_ELEMENTS = 32
"""Reads of so many elements of an array that the loop does not change are made before it."""

SMALL_PART = 4
"""Reading a part so many times smaller than its array is better done apart than copying the array."""

BEGINNINGS = 64
"""Operations of a round that are looked at as its beginning."""

SHIFTS = 8
"""Beginnings that are tried."""

LARGEST_TABLE = 1 << 20
"""Numbers in a table, and in what is collected of all rounds."""

LEAVES = (Node, int, float, complex, np.generic, Index)


@dataclass(frozen=True, slots=True)
class Same:
    """A leaf that is the same in every round: an operand from outside the loop, or a static value."""

    leaf: Any


@dataclass(frozen=True, slots=True)
class Own:
    """The value of operation `place` of the same round."""

    place: int


@dataclass(frozen=True, slots=True)
class Before:
    """The value of operation `place` of the round before."""

    place: int


@dataclass(frozen=True, slots=True)
class Table:
    """A number or known array that differs from round to round. values: (rounds, ...)."""

    values: Any


@dataclass(frozen=True, slots=True)
class Boxes:
    """A box that moves from round to round. starts: (rounds, axes)."""

    starts: Any
    box: Box


@dataclass(frozen=True, slots=True)
class Reads:
    """A box of a value from before the loop that moves from round to round. starts: (rounds, axes).

    The tape holds each read once, however many loops look at it; here each loop reads for itself.
    """

    base: Node
    starts: Any
    box: Box


@dataclass(frozen=True, slots=True)
class Stacked:
    """Values from before the loop, another one for each round: what an earlier loop computed, as a rule."""

    nodes: tuple[Node, ...]


Relation = Same | Own | Before | Table | Boxes | Reads | Stacked


@dataclass(slots=True)
class Loop:
    """Rounds of equal operations. The first is computed as it stands.

    relations: for each operation of a round, what its leaves are, in the order of `leaves`. carried: places whose
    values go into the next round, or out of the last. collected: places whose values of every round are used.
    """

    rounds: list[Sequence[Node]]
    relations: list[list[Relation]]
    carried: list[int]
    collected: list[int]

    @property
    def size(self) -> int:
        """Operations of a round."""
        return len(self.relations)

    def operands(self) -> Iterator[Node]:
        """The values that it takes."""
        for node in self.rounds[0]:
            yield from node.operands()
        yield from from_outside(self)
        for relation in self.all_relations():
            if isinstance(relation, Stacked):
                yield from relation.nodes

    @property
    def tables(self) -> list[Any]:
        """What its rounds look up."""
        return [relation.values for relation in self.all_relations() if isinstance(relation, Table)]

    def all_relations(self) -> Iterator[Relation]:
        for row in self.relations:
            yield from row


def leaves(template: Any) -> Iterator[Any]:
    """The leaves of a template, in the order in which `tape.fill` replaces them."""
    if isinstance(template, LEAVES):
        yield template
    elif isinstance(template, (tuple, list)):
        for part in template:
            yield from leaves(part)
    elif isinstance(template, dict):
        for part in template.values():
            yield from leaves(part)
    elif isinstance(template, slice):
        yield from leaves((template.start, template.stop, template.step))


def roll(body: Sequence[Node], used: frozenset[int], value_of: Callable[[Node], Any]) -> list[Node | Loop]:
    """The operations with their repetitions rolled.

    used: indices of nodes that are results. value_of: a node's value where it is known before launch, else None.
    """
    readers: dict[int, list[int]] = {}
    for place, node in enumerate(body):
        for operand in node.operands():
            readers.setdefault(operand.index, []).append(place)
    return _roll(body, 0, len(body), _Uses(readers, used), value_of)


@dataclass(frozen=True, slots=True)
class _Uses:
    """Who uses a node: places in the whole body, and whether it is a result."""

    readers: dict[int, list[int]]
    results: frozenset[int]

    def outside(self, node: Node, start: int, stop: int) -> bool:
        """Whether anything but the operations from `start` to `stop` uses the node."""
        return node.index in self.results or any(
            not start <= place < stop for place in self.readers.get(node.index, ())
        )


def _roll(
    body: Sequence[Node], start: int, stop: int, uses: _Uses, value_of: Callable[[Node], Any]
) -> list[Node | Loop]:
    if stop - start < OPERATIONS:
        return list(body[start:stop])
    found: dict[int, tuple[int, Loop]] = {}  # by beginning: end and loop
    failures = 0
    for begin, length, rounds in _repetitions(_kinds(body[start:stop])):
        begin, end = start + begin, start + begin + length * rounds
        if any(begin < other_end and other < end for other, (other_end, _) in found.items()):
            continue
        made = _loop(body, begin, length, rounds, uses, value_of)
        if made is not None:
            found[made[0]] = made[0] + length * len(made[1].rounds), made[1]
            continue
        failures += 1
        if failures == ATTEMPTS:
            break
    parts: list[Node | Loop] = []
    for begin, (end, loop) in sorted(found.items()):
        parts += [*_roll(body, start, begin, uses, value_of), loop]
        start = end
    return parts + (_roll(body, start, stop, uses, value_of) if found else list(body[start:stop]))


def _kinds(body: Sequence[Node]) -> list[int]:
    """A number for each operation, equal where rule, shape, dtype and the form of the arguments are."""
    numbers: dict[Any, int] = {}
    return [
        numbers.setdefault((id(node.rule), node.shape, node.dtype, _form(node.args), _form(node.kwargs)), len(numbers))
        for node in body
    ]


def _form(template: Any) -> Any:
    """A template without its leaves' values."""
    if isinstance(template, Node):
        return (Node, template.shape, template.dtype)
    if isinstance(template, LEAVES):
        return type(template)
    if isinstance(template, (tuple, list)):
        return (type(template), *map(_form, template))
    if isinstance(template, dict):
        return tuple((key, _form(part)) for key, part in template.items())
    if isinstance(template, slice):
        return (slice, _form(template.start), _form(template.stop), _form(template.step))
    return frozen_static(template)


def _repetitions(kinds: list[int]) -> list[tuple[int, int, int]]:
    """Candidates (start, operations per round, rounds): the shortest rounds first, among what covers nearly most.

    Two rounds in one are rounds as well, and cover no more.
    """
    array = np.asarray(kinds)
    found = []
    for length in _distances(array):
        equal = array[:-length] == array[length:]
        edges = np.flatnonzero(np.diff(np.concatenate(([0], equal.astype(np.int8), [0]))))
        for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            rounds = (end - begin) // length + 1
            if rounds >= ROUNDS and rounds * length >= OPERATIONS:
                found.append((begin, length, rounds))
    most = max((length * rounds for _, length, rounds in found), default=0)
    return sorted(found, key=lambda each: (each[1] * each[2] < 0.9 * most, each[1], -each[2]))


def _distances(array: Any) -> list[int]:
    """Likely lengths of a round: the distances at which most operations repeat, and what divides them."""
    longest = min(len(array) // ROUNDS, LONGEST)
    matches = [int(np.count_nonzero(array[:-length] == array[length:])) for length in range(1, longest + 1)]
    ranked = sorted(range(len(matches)), key=lambda i: (-matches[i], i))
    likely = [i + 1 for i in ranked[:CANDIDATES]]
    divisors = {part for length in likely for part in range(1, length // 2 + 1) if length % part == 0}
    return [length for length in (*likely, *sorted(divisors - set(likely))) if matches[length - 1] >= OPERATIONS // 2]


def _loop(
    body: Sequence[Node], start: int, length: int, rounds: int, uses: _Uses, value_of: Callable[[Node], Any]
) -> tuple[int, Loop] | None:
    """Where the loop at a candidate begins, and the loop, if its operands are related as a loop's are.

    A repetition does not tell where its rounds begin: some beginnings are tried, first those at which least is handed
    from round to round, as it is where the program's own loop begins.
    """
    for first in sorted(range(start, start + min(length, BEGINNINGS)), key=lambda at: _handed_on(body, at, length))[
        :SHIFTS
    ]:
        count = (start + length * rounds - first) // length
        if count < ROUNDS:
            continue
        parts = [body[first + k * length : first + (k + 1) * length] for k in range(count)]
        relations = _relations(parts, value_of)
        if relations is not None:
            return first, _with_results(parts, relations, first, first + count * length, uses)
    return None


def _handed_on(body: Sequence[Node], first: int, length: int) -> int:
    """How many values of its second round the third one uses, if rounds begin at `first`."""
    second, third = first + length, first + 2 * length
    inside = range(body[second].index, body[third].index)
    used = {operand.index for node in body[third : third + length] for operand in node.operands()}
    return sum(index in inside for index in used)


def _relations(parts: Sequence[Sequence[Node]], value_of: Callable[[Node], Any]) -> list[list[Relation]] | None:
    places = {node.index: (k, j) for k, part in enumerate(parts) for j, node in enumerate(part)}
    table = []
    for j in range(len(parts[0])):
        columns = zip(*(leaves((part[j].args, part[j].kwargs)) for part in parts[1:]), strict=True)
        row = []
        for column in columns:
            relation = _relation(column, places, parts[1][j], value_of)
            if relation is None:
                return None
            row.append(relation)
        table.append(row)
    return table


def _relation(
    column: tuple[Any, ...], places: dict[int, tuple[int, int]], node: Node, value_of: Callable[[Node], Any]
) -> Relation | None:
    """What one leaf is over rounds 1, 2, ...; None if it is nothing that a loop can have."""
    first = column[0]
    if isinstance(first, Node):
        return _operand_relation(column, places, value_of)
    if all(frozen_static(leaf) == frozen_static(first) for leaf in column):
        return Same(first)
    if isinstance(first, Index):
        return _box_relation(column, node)
    if may_vary(node) and len({type(leaf) for leaf in column}) == 1:
        return Table(np.array(column))
    return None


def may_vary(node: Node) -> bool:
    """Whether a plain number that the operation takes may be another one in each round, traced: an operand's may.

    Operands of ufuncs come by position; functions take everything by name, axes and sizes too.
    """
    return bool(node.args) and not node.rule.own


def _operand_relation(
    column: tuple[Any, ...], places: dict[int, tuple[int, int]], value_of: Callable[[Node], Any]
) -> Relation | None:
    found = [places.get(leaf.index) for leaf in column]
    return (
        _found_relation(column, found, value_of) or _reads_relation(column, places) or _stacked_relation(column, found)
    )


def _found_relation(
    column: tuple[Any, ...], found: list[tuple[int, int] | None], value_of: Callable[[Node], Any]
) -> Relation | None:
    if all(leaf is column[0] for leaf in column) and (found[0] is None or found[0][0] == 0):
        return Same(column[0])  # from before the loop, or from its first round, which is computed as it stands
    if all(place is None for place in found):
        if len(column) * math.prod(column[0].shape) > LARGEST_TABLE:
            return None
        known = [value_of(leaf) for leaf in column]
        return None if any(value is None for value in known) else Table(np.array(known, column[0].dtype))
    if any(place is None for place in found):
        return None
    distances = {k + 1 - place[0] for k, place in enumerate(found) if place is not None}
    operations = {place[1] for place in found if place is not None}
    if len(operations) != 1 or len(distances) != 1 or not distances <= {0, 1}:
        return None
    place = operations.pop()
    return Own(place) if distances == {0} else Before(place)


def _reads_relation(column: tuple[Any, ...], places: dict[int, tuple[int, int]]) -> Relation | None:
    if not all(is_box_read(leaf) and leaf.args[0] is column[0].args[0] for leaf in column):
        return None
    base = column[0].args[0]
    if places.get(base.index, (0, 0))[0]:
        return None
    found = _boxes(base.shape, [leaf.args[1] for leaf in column])
    return None if found is None else Reads(base, *found)


def _stacked_relation(column: tuple[Any, ...], found: list[tuple[int, int] | None]) -> Relation | None:
    if any(place is not None and place[0] for place in found):
        return None
    return Stacked(tuple(column)) if len(column) * math.prod(column[0].shape) <= LARGEST_TABLE else None


def is_box_read(node: Any) -> bool:
    return isinstance(node, Node) and node.rule is core.READ and isinstance(node.args[1], Index)


def _boxes(base: tuple[int, ...], steps: list[Index]) -> tuple[Any, Box] | None:
    """Where boxes of one size begin, and one of them."""
    boxes = [box_of(base, step.key) for step in steps]
    if any(box is None for box in boxes) or len({(box.sizes, box.given) for box in boxes if box}) != 1:
        return None
    return np.array([box.starts for box in boxes if box], np.int32), boxes[0]  # type: ignore[return-value]


def _box_relation(column: tuple[Any, ...], node: Node) -> Relation | None:
    found = _boxes(node.args[0].shape, list(column))
    return None if found is None else Boxes(*found)


def _with_results(
    parts: Sequence[Sequence[Node]], relations: list[list[Relation]], start: int, stop: int, uses: _Uses
) -> Loop:
    """The loop, with the values that are used after it."""
    again = {
        j for j, node in enumerate(parts[1]) if is_box_read(node) and isinstance(relations[j][0], Same)
    }  # whoever else needs such a value reads it anew
    before = {relation.place for row in relations for relation in row if isinstance(relation, Before)}
    final = {j for j, node in enumerate(parts[-1]) if uses.outside(node, start, stop)} - again
    every = {j for part in parts[1:-1] for j, node in enumerate(part) if uses.outside(node, start, stop)}
    return Loop(list(parts), relations, sorted(before | final), sorted(every - again))


# -- computing --------------------------------------------------------------------------------------------------------


def run(loop: Loop, values: Any, compute: Callable[[Node, Any, Any], Any]) -> None:
    """Compute the rounds after the first, in a traced program.

    values: the program's values by node; those that are used later are set. compute: from an operation and its filled
    arguments, its value.
    """
    from jax import lax

    rounds = loop.rounds
    tables = [
        looked_up(relation, values)
        for relation in loop.all_relations()
        if isinstance(relation, (Table, Boxes, Reads, Stacked))
    ]

    def body(carry: Any, entries: Any) -> Any:
        before = dict(zip(loop.carried, carry, strict=True))
        own: list[Any] = []
        entry, small = iter(entries[0]), entries[1]
        for place, (node, relations) in enumerate(zip(rounds[1], loop.relations, strict=True)):
            given = iter([_resolve(relation, own, before, values, entry) for relation in relations])
            if place in small:
                own.append(small[place])
                continue
            args, kwargs = filled((node.args, node.kwargs), given)
            if _reads_written(node, relations, rounds[1]):
                args = (args[0], fusion.Apart(args[1]))
            own.append(compute(node, args, kwargs))
        return [own[place] for place in loop.carried], [own[place] for place in loop.collected]

    for leaf in from_outside(loop):
        values[leaf]  # not first asked for inside the scan, whose values are its own
    first = [values[rounds[0][place]] for place in loop.carried]
    carry, collected = lax.scan(body, first, (tables, _small_parts(loop, values)), length=len(rounds) - 1)
    for place, value in zip(loop.carried, carry, strict=True):
        values.set(rounds[-1][place], value)
    for place, column in zip(loop.collected, collected, strict=True):
        for k in range(1, len(rounds) - 1):
            values.set_row(rounds[k][place], column, k - 1)


def _small_parts(loop: Loop, values: Any) -> dict[int, Any]:
    """By place, what reads of a few elements give, all rounds together: taken before the loop, which otherwise holds
    the whole array; one that comes in a span would have to be copied.
    """
    import jax

    found = {}
    for place, (node, relations) in enumerate(zip(loop.rounds[1], loop.relations, strict=True)):
        size = math.prod(node.shape)
        if not is_box_read(node) or size > FEW_ELEMENTS or size * len(loop.rounds) > LARGEST_TABLE:
            continue
        match relations:
            case [Same(leaf), Boxes(starts, box)]:
                found[place] = jax.vmap(lambda start, box=box, base=values[leaf]: box.moved(start).read(base))(starts)
    return found


def looked_up(relation: Table | Boxes | Reads | Stacked, values: Any) -> Any:
    """What the rounds look up: (rounds, ...)."""
    match relation:
        case Table(table):
            return values.table(table)
        case Stacked(nodes):
            return values.stack(nodes)
        case _:
            return relation.starts


def from_outside(loop: Loop) -> Iterator[Node]:
    """The values that the rounds take from outside the loop."""
    for relation in loop.all_relations():
        if isinstance(relation, Reads):
            yield relation.base
        elif isinstance(relation, Same) and isinstance(relation.leaf, Node):
            yield relation.leaf


def stored_before(loop: Loop) -> Iterator[Node]:
    """The values that XLA stores before the rounds after the first: what a loop takes and carries is in memory."""
    yield from from_outside(loop)
    yield from (loop.rounds[0][place] for place in loop.carried)


def _reads_written(node: Node, relations: list[Relation], operations: Sequence[Node]) -> bool:
    """Whether an operation looks at a small part of an array that the loop writes to."""
    if not is_box_read(node) or not isinstance(relations[0], (Own, Before)):
        return False
    base = operations[relations[0].place]
    return base.rule is core.WRITE and math.prod(base.shape) >= SMALL_PART * math.prod(node.shape)


def _resolve(relation: Relation, own: list[Any], before: dict[int, Any], values: Any, entry: Iterator[Any]) -> Any:
    match relation:
        case Own(place):
            return own[place]
        case Before(place):
            return before[place]
        case Table() | Stacked():
            return next(entry)
        case Boxes(_, box):
            return box.moved(next(entry))
        case Reads(base, _, box):
            return box.moved(next(entry)).read(values[base])
        case Same(leaf):
            return values[leaf] if isinstance(leaf, Node) else leaf


def filled(template: Any, given: Iterator[Any]) -> Any:
    """The template with its leaves replaced in order."""
    if isinstance(template, LEAVES):
        return next(given)
    if isinstance(template, (tuple, list)):
        parts = [filled(part, given) for part in template]
        return type(template)(*parts) if hasattr(template, "_fields") else type(template)(parts)
    if isinstance(template, dict):
        return {key: filled(part, given) for key, part in template.items()}
    if isinstance(template, slice):
        return slice(*filled((template.start, template.stop, template.step), given))
    return template
