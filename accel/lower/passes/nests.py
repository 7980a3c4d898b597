"""Nests: loops in loops whose numbers of rounds, and whose slices, change from round to round.

`for i in range(n): for j in range(i): a[i, j] -= a[i, :j] @ a[:j, j]` repeats nothing that `accel.lower.passes.reroll`
finds: no two rounds of `i` have as many operations, no two of `j` operands of the same shape. Here operations are equal
if the same instruction of the program wrote them down. Equal sequences become the rounds of a *block*, innermost first;
its operations are *sites*. What a site takes is a static value, a number from a table, or the content of a *register*:
a variable that some sites write to. Whether that holds is not reasoned about but tried: all rounds are followed on the
tape, with the registers' contents. How values of changing shape are computed, `accel.lower.passes.pad` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accel.ir.tape import Node, fill, frozen_static
from accel.ir.views import Index, is_window
from accel.lower.passes.reroll import LARGEST_TABLE, LEAVES, leaves, may_vary
from accel.lower.passes.union_find import UnionFind
from accel.rules import core

OPERATIONS = 48
"""Fewer operations than this, all rounds together, are not worth a nest."""

LONGEST = 1024
"""Operations of the longest round that is looked for."""

UNROLLED = 16
"""A block whose number of rounds is always the same is unrolled if that gives at most this many operations."""


class Irregular(Exception):
    """What looked like a nest is none, or none that can be computed."""


@dataclass(slots=True, eq=False)
class Site:
    """One operation of a block's rounds. nodes: one for each round, of all times that the block is entered."""

    nodes: list[Node]
    operands: list[Operand] = field(default_factory=list)
    plan: Any = None
    register: int = -1
    collected: bool = False

    @property
    def node(self) -> Node:
        """One of them: for what they have in common."""
        return self.nodes[0]


@dataclass(slots=True, eq=False)
class Block:
    """A loop's body. trips: rounds, for each time that it is entered. parent: the block that it is part of."""

    items: list[Site | Block]
    trips: list[int]
    parent: Block | None = None

    @property
    def rounds(self) -> int:
        return sum(self.trips)

    def sites(self) -> Iterator[Site]:
        for item in self.items:
            if isinstance(item, Site):
                yield item
            else:
                yield from item.sites()

    def blocks(self) -> Iterator[Block]:
        yield self
        for item in self.items:
            if isinstance(item, Block):
                yield from item.blocks()


@dataclass(frozen=True, slots=True)
class Invariant:
    """The same in every round: a static value, or one from before the nest."""

    leaf: Any


@dataclass(frozen=True, slots=True)
class Numbers:
    """A number that differs from round to round."""

    values: Any


@dataclass(frozen=True, slots=True)
class RegisterValue:
    """What a register holds. nodes: round by round."""

    nodes: Sequence[Node]


@dataclass(frozen=True, slots=True)
class Window:
    """A box of another operand. nodes: the reads, round by round."""

    base: Operand
    nodes: Sequence[Node]


@dataclass(frozen=True, slots=True)
class VaryingIndex:
    """A key that differs from round to round."""

    steps: Sequence[Index]


Operand = Invariant | Numbers | RegisterValue | Window | VaryingIndex


@dataclass(slots=True, eq=False)
class Nest:
    """A block that the program enters once, with what it takes and gives.

    initial: what registers hold before, where anything. final: nodes that are used afterwards and that a register
    still holds then. collected: nodes that are used afterwards otherwise, with their site and round. tables: what it
    looks up; places: whole numbers of blocks and sites, vectorized: blocks whose rounds are computed at once, both by
    identity (see accel.lower.passes.pad and accel.lower.passes.vectorize).
    """

    block: Block
    registers: dict[int, int]
    initial: dict[int, Node]
    final: dict[int, Node]
    collected: list[tuple[Node, Site, int]]
    tables: list[Any] = field(default_factory=list)
    places: dict[int, Any] = field(default_factory=dict)
    vectorized: dict[int, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(1 for _ in self.block.sites())

    def operands(self) -> Iterator[Node]:
        """The values that it takes."""
        yield from self.initial.values()
        for site in self.block.sites():
            for base in map(looked_at, site.operands):
                if isinstance(base, Invariant) and isinstance(base.leaf, Node):
                    yield base.leaf


def looked_at(operand: Operand) -> Operand:
    """What an operand is a part of, or the operand itself."""
    while isinstance(operand, Window):
        operand = operand.base
    return operand


def register_of(registers: Mapping[int, int], content: RegisterValue) -> int:
    """The register whose content an operand is. registers: by index of the node."""
    return next(registers[node.index] for node in content.nodes if node.index in registers)


def find(
    body: Sequence[Node],
    used: frozenset[int],
    value_of: Callable[[Node], Any],
    planned: Callable[[Nest], bool],
) -> list[Node | Nest]:
    """The operations with nests found in them. used: indices of nodes that are results. planned: makes a nest ready
    to be computed; where it cannot be, its operations stay as they are.
    """
    said = _AsWritten(body)
    used = frozenset(said.now[index] for index in used if index in said.now)
    virtual = _virtual(said.nodes, used)
    readers = _readers(said, virtual)
    sequence = [node for node in said.nodes if node.index not in virtual]
    runs = _fold(sequence, virtual)
    parts: list[Node | Nest] = []
    hidden = {said.origin(node).index for node in said.nodes if node.index in virtual}
    shown: set[int] = set()
    for run in runs:
        nest = None
        if isinstance(run, _Run) and len(run.nodes) >= OPERATIONS:
            try:
                nest = _nest(run, virtual, readers, used, said, value_of)
                nest = nest if planned(nest) else None
            except Irregular:
                nest = None
        if nest is not None:
            parts.append(nest)
            continue
        for node in _nodes_of(run):
            if not said.is_repeat(node):
                parts += [*_reads_of(said.origin(node), hidden, shown), said.origin(node)]
    return parts


def _reads_of(node: Node, virtual: set[int], shown: set[int]) -> Iterator[Node]:
    """The virtual reads that an operation outside of nests needs, those before it left out."""
    for operand in node.operands():
        if operand.index in virtual and operand.index not in shown:
            shown.add(operand.index)
            yield from _reads_of(operand, virtual, shown)
            yield operand


class _AsWritten:
    """The operations as the program has them: what it computes again, the tape has once.

    nodes: with what is repeated in its places. now: by index of the tape's node, that of its first place.
    """

    def __init__(self, body: Sequence[Node]) -> None:
        self.nodes = list(body)
        self.now = {node.index: node.index for node in body}
        self._origin: dict[int, Node] = {}
        self._repeats: set[int] = set()
        repeats = [(index, node, site) for node in body for index, site in node.repeats or ()]
        if repeats:
            self.nodes, self.now = [], {}
            self._first = body[-1].index + 1 + len(repeats)
            self._latest: dict[int, Node] = {}
            self._say(body, sorted(repeats, key=lambda repeat: repeat[0]))

    def origin(self, node: Node) -> Node:
        """The tape's node."""
        return self._origin.get(node.index, node)

    def is_repeat(self, node: Node) -> bool:
        return node.index in self._repeats

    def _say(self, body: Sequence[Node], repeats: list[tuple[int, Node, int]]) -> None:
        place = 0
        for node in body:
            while place < len(repeats) and repeats[place][0] <= node.index:
                _, again, site = repeats[place]
                self._repeats.add(self._append(again, site).index)
                place += 1
            self.now[node.index] = self._append(node, node.site).index

    def _append(self, node: Node, site: int) -> Node:
        args, kwargs = fill(node.args, self._now), fill(node.kwargs, self._now)
        said = node.replaced(args=args, kwargs=kwargs, site=site, index=self._first + len(self.nodes))
        self.nodes.append(said)
        self._origin[said.index] = node
        self._latest[node.index] = said
        return said

    def _now(self, node: Node) -> Node:
        """What stands for an operand: where the program last computed it."""
        said = self._latest.get(node.index)
        if said is None:
            return node
        if _looks(node) and self._now(node.args[0]) is not said.args[0]:
            said = self._append(node, node.site)
            self._repeats.add(said.index)
        return said


def _readers(said: _AsWritten, virtual: set[int]) -> dict[int, int]:
    """By node: the last operation that takes it, or takes what a virtual read sees of it."""
    last: dict[int, int] = {}
    for node in reversed(said.nodes):
        end = last.get(node.index, -1) if node.index in virtual else node.index
        for operand in node.operands():
            for index in {operand.index, said.now.get(said.origin(operand).index, operand.index)}:
                last[index] = max(end, last.get(index, -1))
    return last


def _looks(node: Any) -> bool:
    """Whether a node only shows consecutive elements of another."""
    return node.rule is core.SCALAR or (node.rule is core.READ and is_window(node.args[1]))


def _virtual(body: Sequence[Node], used: frozenset[int]) -> set[int]:
    """Reads that can move to their users, as the array is not written to before the last use."""
    written: dict[int, int] = {}
    for node in body:
        if node.rule is core.WRITE:
            written.setdefault(node.args[0].index, node.index)
    last = {operand.index: node.index for node in body for operand in node.operands()}
    virtual: set[int] = set()
    until: dict[int, int] = {}
    for node in body:
        looks = _looks(node) and (node.rule is core.READ or node.args[0].index in virtual)
        if looks and node.index not in used and node.index in last:
            base = node.args[0]
            end = until[base.index] if base.index in virtual else written.get(base.index)
            if end is None or last[node.index] <= end:
                virtual.add(node.index)
                until[node.index] = end if end is not None else 1 << 62
    return virtual


# -- structure --------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Run:
    """A sequence of equal rounds."""

    rounds: list[list[Node | _Run]]

    @property
    def nodes(self) -> list[Node]:
        return [node for part in self.rounds for item in part for node in _nodes_of(item)]


def _nodes_of(item: Node | _Run) -> list[Node]:
    return [item] if isinstance(item, Node) else item.nodes


def _fold(sequence: list[Node], virtual: set[int]) -> list[Node | _Run]:
    """The sequence with its repetitions as runs, shortest rounds first."""
    numbers: dict[Any, int] = {}
    items: list[Node | _Run] = list(sequence)
    kinds = np.array([numbers.setdefault(_kind(node, virtual), len(numbers)) for node in sequence])
    while True:
        length = _shortest(kinds)
        if length is None:
            return items
        items, kinds = _collapsed(items, kinds, length, numbers)


def _kind(node: Node, virtual: set[int]) -> Any:
    """Equal for operations that may be rounds of one site."""
    return node.site, id(node.rule), node.dtype, len(node.shape), _form((node.args, node.kwargs), virtual)


def _form(template: Any, virtual: set[int]) -> Any:
    """A template without its leaves' values, and without lengths of axes."""
    if isinstance(template, Node):
        if template.index in virtual:
            return "window", _form(template.args, virtual)
        return "node", template.dtype, len(template.shape), template.scalar
    if isinstance(template, Index):
        return "index", *(slice if isinstance(entry, slice) else type(entry) for entry in template.key)
    if isinstance(template, LEAVES):
        return type(template)
    if isinstance(template, (tuple, list)):
        return (type(template), *(_form(part, virtual) for part in template))
    if isinstance(template, dict):
        return tuple((key, _form(part, virtual)) for key, part in template.items())
    if isinstance(template, slice):
        return (slice, *(_form(part, virtual) for part in (template.start, template.stop, template.step)))
    return frozen_static(template)


def _runs(kinds: Any, length: int) -> list[tuple[int, int]]:
    """Start and rounds of what repeats at a distance."""
    equal = kinds[:-length] == kinds[length:]
    edges = np.flatnonzero(np.diff(np.concatenate(([0], equal.astype(np.int8), [0]))))
    found, end = [], 0
    for begin, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        begin = max(begin, end)
        if stop - begin >= length:
            rounds = (stop - begin) // length + 1
            found.append((begin, rounds))
            end = begin + rounds * length
    return found


def _shortest(kinds: Any) -> int | None:
    for length in range(1, min(len(kinds) // 2, LONGEST) + 1):
        if _runs(kinds, length):
            return length
    return None


def _collapsed(
    items: list[Node | _Run], kinds: Any, length: int, numbers: dict[Any, int]
) -> tuple[list[Node | _Run], Any]:
    """The items with rounds of `length` items as runs, single rounds too."""
    starts = dict(_runs(kinds, length))
    listed = kinds.tolist()
    bodies = {tuple(listed[begin : begin + length]) for begin in starts}
    firsts = {body[0] for body in bodies}
    new_items: list[Node | _Run] = []
    new_kinds: list[int] = []
    place = 0
    while place < len(items):
        rounds = starts.get(place, 0)
        body = tuple(listed[place : place + length]) if rounds or listed[place] in firsts else ()
        if not rounds and body in bodies and not any(place < begin < place + length for begin in starts):
            rounds = 1
        if rounds:
            parts = [items[place + k * length : place + (k + 1) * length] for k in range(rounds)]
            new_items.append(_Run(parts))
            new_kinds.append(numbers.setdefault(("run", body), len(numbers)))
            place += rounds * length
        else:
            new_items.append(items[place])
            new_kinds.append(listed[place])
            place += 1
    return new_items, np.array(new_kinds)


def _block(runs: list[_Run], parent: Block | None) -> Block:
    """The block of which these are all the times that it is entered."""
    rounds = [part for run in runs for part in run.rounds]
    block = Block([], [len(run.rounds) for run in runs], parent)
    for column in zip(*rounds, strict=True):
        if isinstance(column[0], Node):
            block.items.append(Site(list(column)))
            continue
        inner = _block(list(column), block)
        if len(set(inner.trips)) == 1 and inner.trips[0] * len(inner.items) <= UNROLLED:
            block.items += _unrolled(inner, block)
        else:
            block.items.append(inner)
    return block


def _unrolled(inner: Block, parent: Block) -> list[Site | Block]:
    """The rounds of a block one after another, where they are always as many."""
    if any(isinstance(item, Block) for item in inner.items):
        return [inner]
    count = inner.trips[0]
    return [Site(item.nodes[k::count]) for k in range(count) for item in inner.items if isinstance(item, Site)]


def _part(block: Block) -> None:
    """Split a loop that is really two, one in the other.

    If the outer loop's body is just the inner loop, the tape shows one long loop. Its boxes jump back at every round of
    the outer one.
    """
    length = block.trips[0]
    if set(block.trips) != {length} or length < 4:
        return
    columns = [column for site in block.sites() for operand in site.operands for column in _starts(operand)]
    if not columns:
        return
    steps = np.diff(np.array(columns).T.reshape(len(block.trips), length, len(columns)), axis=1)
    breaks = (steps != steps[:, :1]).any(axis=2)
    rounds = int(breaks[0].argmax()) + 1
    expected = np.arange(1, length) % rounds == 0
    if not breaks.any() or rounds < 2 or length % rounds or (breaks != expected).any():
        return
    count = length // rounds
    inner = Block(block.items, [rounds] * (count * len(block.trips)), block)
    block.items, block.trips = [inner], [count] * len(block.trips)


def _starts(operand: Operand) -> Iterator[list[int]]:
    """Where the boxes that an operand stands for begin, round by round, for each axis."""
    if isinstance(operand, Window):
        yield from _starts(operand.base)
        steps = [node.args[1] for node in operand.nodes]
    elif isinstance(operand, VaryingIndex):
        steps = list(operand.steps)
    else:
        return
    if all(isinstance(step, Index) for step in steps) and len({len(step.key) for step in steps}) == 1:
        for entries in zip(*(step.key for step in steps), strict=True):
            yield [_start(entry) for entry in entries]


def _start(entry: Any) -> int:
    start = entry.start if isinstance(entry, slice) else entry
    return start if isinstance(start, int) else 0


# -- operands ---------------------------------------------------------------------------------------------------------


def _nest(
    run: _Run,
    virtual: set[int],
    readers: dict[int, int],
    used: frozenset[int],
    said: _AsWritten,
    value_of: Callable[[Node], Any],
) -> Nest:
    block = _block([run], None)
    inside = {node.index for site in block.sites() for node in site.nodes}
    sets = UnionFind()
    for site in block.sites():
        operands = zip(*(leaves((node.args, node.kwargs)) for node in site.nodes), strict=True)
        site.operands = [_operand(site.node, column, virtual, inside, said, value_of) for column in operands]
        together = [site.nodes, *_contents(site)]
        if site.node.rule is core.WRITE:
            together += [(node, node.args[0]) for node in site.nodes]
        for nodes in together:
            own = [node for node in nodes if node.index in inside]
            for node in own[1:]:
                sets.join(node, own[0])
    for innermost in [each for each in block.blocks() if not any(isinstance(item, Block) for item in each.items)]:
        _part(innermost)
    registers = {node.index: sets.of(node) for site in block.sites() for node in site.nodes}
    for site in block.sites():
        site.register = registers[site.node.index]
    follower = _Follower(registers)
    follower.enter(block)
    initial = {register: said.origin(node) for register, node in follower.initial.items()}
    nest = Nest(block, follower.registers, initial, {}, [])
    _note_results(nest, follower, run, readers, used, said)
    return nest


def _contents(site: Site) -> Iterator[Sequence[Node]]:
    """What a register has to hold for the site, round by round: one register for each of its operands."""
    for base in map(looked_at, site.operands):
        if isinstance(base, RegisterValue):
            yield base.nodes


def _operand(
    user: Node,
    column: Sequence[Any],
    virtual: set[int],
    inside: set[int],
    said: _AsWritten,
    value_of: Callable[[Node], Any],
) -> Operand:
    """What an operation takes over all rounds. user: the operation in the first one."""
    first = column[0]
    if not isinstance(first, Node):
        return _static(user, column)
    if first.index in virtual:
        base = _operand(user, [node.args[0] for node in column], virtual, inside, said, value_of)
        return base if first.rule is core.SCALAR else Window(base, column)
    if first.index not in inside and all(said.origin(node).index == said.origin(first).index for node in column):
        return Invariant(said.origin(first))
    if any(node.index in inside for node in column):
        return RegisterValue(column)
    if len(column) * math.prod(first.shape) > LARGEST_TABLE or first.shape:
        raise Irregular
    known = [value_of(said.origin(node)) for node in column]
    if any(value is None for value in known):
        raise Irregular
    return Numbers(np.array(known, first.dtype))


def _static(user: Node, column: Sequence[Any]) -> Operand:
    first = column[0]
    if isinstance(first, Index):
        return Invariant(first) if all(step == first for step in column) else VaryingIndex(column)
    if all(frozen_static(leaf) == frozen_static(first) for leaf in column):
        return Invariant(first)
    if not may_vary(user) or len({type(leaf) for leaf in column}) != 1:
        raise Irregular
    return Numbers(np.array(column))


class _Follower:
    """Goes through all rounds as the tape has them, and sees whether registers hold what sites take."""

    def __init__(self, registers: dict[int, int]) -> None:
        self.registers = registers
        self.contents: dict[int, Node] = {}
        self.initial: dict[int, Node] = {}
        self._rounds: dict[int, int] = {}
        self._entries: dict[int, int] = {}

    def enter(self, block: Block) -> None:
        entry = self._entries.get(id(block), 0)
        self._entries[id(block)] = entry + 1
        for _ in range(block.trips[entry]):
            place = self._rounds.get(id(block), 0)
            self._rounds[id(block)] = place + 1
            for item in block.items:
                if isinstance(item, Block):
                    self.enter(item)
                else:
                    self._follow(item, place)

    def _follow(self, site: Site, place: int) -> None:
        for base in map(looked_at, site.operands):
            if isinstance(base, RegisterValue):
                self._take(base, place)
        self.contents[site.register] = site.nodes[place]

    def _take(self, operand: RegisterValue, place: int) -> None:
        register = register_of(self.registers, operand)
        node = operand.nodes[place]
        held = self.contents.get(register)
        if held is None and node.index not in self.registers:
            self.contents[register] = self.initial[register] = node
        elif held is None or held.index != node.index:
            raise Irregular


def _note_results(
    nest: Nest, follower: _Follower, run: _Run, readers: dict[int, int], used: frozenset[int], said: _AsWritten
) -> None:
    """What is used after the nest."""
    last = max(node.index for node in run.nodes)
    for site in nest.block.sites():
        for place, node in enumerate(site.nodes):
            if said.is_repeat(node) or (node.index not in used and readers.get(node.index, 0) <= last):
                continue
            if follower.contents[site.register].index == node.index:
                nest.final[site.register] = said.origin(node)
            else:
                site.collected = True
                nest.collected.append((said.origin(node), site, place))
