"""Planning: which values of a graph are stored, and which of them are computed in one loop nest.

All other values are computed where they are read, in registers. A result is stored. So is a value that is read at
several indices (a stencil's source) and costs more than a load, and one that several levels need.

One pass visits the nodes from the results to the inputs. A node's readers come before it. So all indices at which it is
read are known when the pass decides whether to store it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from accel.compiler.kernels.graph import (
    BLOCK,
    CALLS,
    CONSTANT,
    GATHER,
    HALOED,
    INPUT,
    IOTA,
    MOVES,
    PIECES,
    RESHAPE,
    VIEW,
    WRAP,
    Axis,
    Graph,
    KernelNode,
    Shape,
    identity,
    reachable,
    through,
)
from accel.compiler.kernels.operations import OPERATIONS

Index = tuple[Axis, ...]
"""Index of a node in a loop nest: for each of its axes, the loop (None: fixed), the step and the offset."""

_WHOLE: Index = (Axis(None, 0, -1),)
"""Marker for the index of a node that is read as a whole."""

_MOVED_COST = 2
"""Minimum cost of a value to store it because it is read at several indices. Guess."""

_HOISTED_COST = 20
"""Minimum cost of a value to store it although it is needed once per row, or once per nest. Guess."""

_SHARED_COST = 3
"""Minimum cost of a value to store it because several levels need it. Guess."""

_NEST_COST = 300
"""Maximum cost of the values of one loop nest: larger bodies share more, but run out of registers."""

_MOST_PLACES = 64
"""Maximum indices at which a value is read without being stored. Moves of moves may double them. Guess."""

_GATHER_COST = 6
"""Cost of reading an element at a computed index. Guess."""

_LONGEST_CHAIN = 100
"""Maximum length of a chain of unstored operations: each takes up to four frames of Python's stack."""

_MOST_COST = 10_000
"""Upper limit of counted costs. The same value may be reached on many paths through the graph."""


@dataclass(eq=False, slots=True)
class Stored:
    """A stored value.

    reads: for each stored value that it reads, whether each is read only at its own index. costs: of its operations.
    sources: arrays of its shape that it reads.
    """

    node: KernelNode
    level: int = 0
    reads: dict[int, bool] = field(default_factory=dict)
    costs: dict[int, int] = field(default_factory=dict)
    sources: set[int] = field(default_factory=set)

    @property
    def is_call(self) -> bool:
        """Whether a function of its own computes it, instead of a loop nest."""
        return self.node.op in CALLS


@dataclass(frozen=True, slots=True)
class NestStage:
    """Stored values that one loop nest computes over their common shape, or one value that a call computes.

    reads: graph indices of the stored values that it reads. cost: of an element, operations and memory.
    """

    shape: Shape
    stored: tuple[KernelNode, ...]
    reads: frozenset[int]
    cost: int


def planned(graph: Graph, outputs: Sequence[KernelNode]) -> list[NestStage]:
    """Return the stages that compute these nodes, in order."""
    # of a value that no output needs, inputs may be missing
    needed = {node.index for node in reachable(outputs)}
    forced = {node.index for node in outputs} | (_ends_of_chains(graph) & needed)
    while True:
        sweep = _Sweep(graph, forced)
        shared = sweep.shared()
        if not shared:
            return list(_stages(sweep.stored))
        forced |= shared


def _ends_of_chains(graph: Graph) -> set[int]:
    """Return values to store so that no chain of unstored operations exceeds Python's stack."""
    found: set[int] = set()
    lengths: list[int] = []
    for node in graph.nodes:
        length = 1 + max((lengths[each.index] for each in node.operands), default=0)
        if length >= _LONGEST_CHAIN and node.op in OPERATIONS:
            found.add(node.index)
            length = 0
        lengths.append(length)
    return found


def _costs(graph: Graph) -> list[int]:
    """Return, by node, the cost of computing it if none of its inputs is stored."""
    found: list[int] = []
    for node in graph.nodes:
        own = OPERATIONS[node.op].cost if node.op in OPERATIONS else _GATHER_COST if node.op == GATHER else 0
        rest = 0 if node.op in (*CALLS, HALOED, BLOCK) else sum(found[each.index] for each in node.operands)
        found.append(min(own + rest, _MOST_COST))
    return found


class _Sweep:
    """One pass through the graph. forced: indices of nodes that are stored in any case."""

    def __init__(self, graph: Graph, forced: Collection[int]) -> None:
        self._graph, self._forced = graph, forced
        self._costs = _costs(graph)
        self.stored: dict[int, Stored] = {}
        # by node: the stored values whose computation reads it, and where
        self._read_at: dict[int, set[tuple[int, Index]]] = defaultdict(set)
        for node in reversed(graph.nodes):
            readings = self._read_at[node.index]
            if not readings and node.index not in forced:
                continue
            if node.op != INPUT and (node.index in forced or self._is_stored(node, readings)):
                self.stored[node.index] = Stored(node)
                self._note_reads(node, readings)
                readings = {(node.index, identity(len(node.shape)))}
            self._read(node, readings)
        self._set_levels()

    def _frame(self, reader: int) -> Shape:
        return self._graph.nodes[reader].shape

    def _note_reads(self, node: KernelNode, readings: Collection[tuple[int, Index]]) -> None:
        for reader, index in readings:
            stored = self.stored[reader]
            is_own = not stored.is_call and _is_own(node, index, self._frame(reader))
            stored.reads[node.index] = is_own and stored.reads.get(node.index, True)

    def _read(self, node: KernelNode, readings: Collection[tuple[int, Index]]) -> None:
        """Record the indices at which the operands are read."""
        if node.op in OPERATIONS:
            for reader in {reader for reader, _ in readings}:
                self.stored[reader].costs[node.index] = OPERATIONS[node.op].cost
            for operand in node.operands:
                self._read_at[operand.index].update(readings)
            return
        for reader, index in readings:
            if node.op == INPUT and node.shape == self._frame(reader):
                self.stored[reader].sources.add(node.index)
            for operand, at in _operands(node, index):
                self._read_at[operand.index].add((reader, at))

    def _is_stored(self, node: KernelNode, readings: Collection[tuple[int, Index]]) -> bool:
        if node.op in (*CALLS, HALOED):
            return True
        if any(index is _WHOLE for _, index in readings):
            return node.op != CONSTANT or node.size > 0
        if node.op in (CONSTANT, IOTA):
            return False
        if len(readings) > _MOST_PLACES:
            return True
        if node.op == PIECES and node.about[0] == len(node.shape) - 1:
            return len({index[-1] for reader, index in readings if _is_in_innermost(self._frame(reader), index)}) > 2
        if node.op in (*MOVES, RESHAPE):
            return False
        cost = self._costs[node.index]
        if cost < _MOVED_COST:
            return False
        places = {(self._frame(reader), index) for reader, index in readings}
        in_vectors = {(frame, index) for frame, index in places if _is_in_innermost(frame, index)}
        if any(len(_loops(index)) < len([each for each in frame if each > 1]) for frame, index in in_vectors):
            return True  # it would be computed again for each row
        return len(in_vectors) > 1 or (len(places) > len(in_vectors) and cost >= _HOISTED_COST)

    def _set_levels(self) -> None:
        """Assign levels. A value read elsewhere than at its own index must be complete, so its readers are a level
        later."""
        for index in sorted(self.stored):
            stored = self.stored[index]
            levels = [self.stored[each].level + (not is_own) for each, is_own in stored.reads.items()]
            stored.level = max(levels, default=0)

    def shared(self) -> set[int]:
        """Return values that several levels compute at their own index and that cost enough: the last of each chain."""
        found: set[int] = set()
        below: set[int] = set()
        for node in reversed(self._graph.nodes):
            if node.index in self.stored or node.op not in OPERATIONS or node.dtype.kind == "b":
                continue
            readings = self._read_at.get(node.index, ())
            levels = {self.stored[each].level for each, index in readings if _is_own(node, index, self._frame(each))}
            if len(levels) > 1 and node.index not in below and self._costs[node.index] >= _SHARED_COST:
                found.add(node.index)
                _mark(node, below)
        return found


def _operands(node: KernelNode, index: Index) -> Iterator[tuple[KernelNode, Index]]:
    """Yield a node's operands, and the indices at which they are read."""
    if node.op == VIEW:
        yield node.operands[0], tuple(through(axis, index) for axis in node.about)
    elif node.op == PIECES:
        dim, ends = node.about
        for part, start in zip(node.operands, (0, *ends), strict=False):
            yield part, shifted(index, dim, -start)
    elif node.op == WRAP:
        yield node.operands[0], shifted(index, *node.about)
    elif node.op == RESHAPE or node.op in CALLS:
        yield from ((each, _WHOLE) for each in node.operands)
    elif node.op in (GATHER, BLOCK):
        yield placed(node.operands[0]), _WHOLE
        yield from ((each, index if node.op == GATHER else ()) for each in node.operands[1:])
    else:
        yield from ((each, index) for each in node.operands)


def placed(node: KernelNode) -> KernelNode:
    """Return the node to store so that `node` can be read at any index: a view's or reshape's source."""
    while node.op in (VIEW, RESHAPE):
        if node.op == RESHAPE and node.operands[0].op not in (INPUT, RESHAPE):
            return node.operands[0]
        node = node.operands[0]
    return node


def shifted(index: Index, dim: int, by: int) -> Index:
    """Return an index with its offset shifted along one axis."""
    axis = index[dim]
    return (*index[:dim], Axis(axis.dim, axis.step, axis.offset + by), *index[dim + 1 :])


def _loops(index: Index) -> set[int]:
    return {axis.dim for axis in index if axis.dim is not None}


def _is_in_innermost(frame: Shape, index: Index) -> bool:
    return bool(frame) and len(frame) - 1 in _loops(index)


def _is_own(node: KernelNode, index: Index, frame: Shape) -> bool:
    return node.shape == frame and index == identity(len(frame))


def _mark(node: KernelNode, below: set[int]) -> None:
    stack = list(node.operands)
    while stack:
        each = stack.pop()
        if each.index not in below:
            below.add(each.index)
            stack.extend(each.operands)


# -- stages ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Group:
    """Stored values of one level that are computed together."""

    shape: Shape
    stored: list[Stored] = field(default_factory=list)
    indices: set[int] = field(default_factory=set)
    costs: dict[int, int] = field(default_factory=dict)
    sources: set[int] = field(default_factory=set)

    def add(self, stored: Stored) -> None:
        self.stored.append(stored)
        self.indices.add(stored.node.index)
        self.costs.update(stored.costs)
        self.sources |= stored.sources

    def stage(self) -> NestStage:
        reads = frozenset(index for each in self.stored for index in each.reads)
        cost = sum(self.costs.values()) + _MOVED_COST * len(self.indices | self.sources | reads)
        return NestStage(self.shape, tuple(each.node for each in self.stored), reads, cost)


def _stages(stored: Mapping[int, Stored]) -> Iterator[NestStage]:
    by_level: dict[int, list[Stored]] = defaultdict(list)
    for index in sorted(stored):
        by_level[stored[index].level].append(stored[index])
    for level in sorted(by_level):
        groups: list[_Group] = []
        for each in by_level[level]:
            _place(each, groups)
        yield from (group.stage() for group in groups)


def _place(stored: Stored, groups: list[_Group]) -> None:
    """Add a value to the group of its level with which it shares most, or to a new one."""
    # a group runs after those that its values read
    after = max((at for at, each in enumerate(groups) if each.indices & stored.reads.keys()), default=-1)
    best: tuple[int, _Group] | None = None
    for at, group in enumerate(groups):
        if at < after or group.shape != stored.node.shape or stored.is_call or group.stored[0].is_call:
            continue
        added = sum(cost for index, cost in stored.costs.items() if index not in group.costs)
        if sum(group.costs.values()) + added > _NEST_COST:
            continue
        common = sum(cost for index, cost in stored.costs.items() if index in group.costs)
        score = len(group.sources & stored.sources) + 3 * common + 20 * (at == after)
        if best is None or score > best[0]:
            best = score, group
    if best is None:
        groups.append(_Group(stored.node.shape))
    (best[1] if best is not None else groups[-1]).add(stored)
