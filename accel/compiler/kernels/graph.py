"""The graph of a kernel: elementwise operations and index moves. Equal operations are one node.

Operations have the names and the meaning of `jax.lax`'s. Moves are of three kinds, and cost nothing to read through:

view     each axis of the source is read at a fixed index, or in steps along an axis of the result
pieces   parts of the result along one axis come from different nodes (concatenation, padding, writes into rows)
wrap     the source is read past its end and around along one axis (`np.roll`, periodic borders)
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Shape = tuple[int, ...]

INPUT, CONSTANT, IOTA = "input", "constant", "iota"
VIEW, PIECES, WRAP, RESHAPE = "view", "pieces", "wrap", "reshape"
MOVES = frozenset([VIEW, PIECES, WRAP])
HALOED = "haloed"
"""Operation: a copy whose rows are stored with their last elements in front of them, and their first ones behind."""

REDUCE = "reduce"
"""Operation: a reduction. about: its name, and "rows" or "columns"; see accel.compiler.kernels.reductions."""

SCATTER = "scatter"
"""Operation: the first operand, with the updates (third operand) at the flat indices of the second.

about: the operation that combines an element with an update, or "rows": at each index, several updates are stored.
"""

CALLS = frozenset([REDUCE, SCATTER])
"""Operations that are functions over memory, outside loop nests."""

GATHER = "gather"
"""Operation: elements of the first operand. The other operands are the indices, one per axis, in the shape of the
result."""

BLOCK = "block"
"""Operation: a block of the first operand, which lies inside. The other operands are its starts along the axes in
`about`; along others it starts at 0."""

HALO = 8
"""Number of elements repeated before and after a row. A wrap by more is read in pieces. Guess."""


class Axis(NamedTuple):
    """Index map of a source's axis: `offset`, plus `step` per index along axis `dim` of the result."""

    dim: int | None
    step: int
    offset: int

    def ends(self, region: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
        """Return the smallest and the largest index in a region."""
        if self.dim is None:
            return self.offset, self.offset
        first, last = region[self.dim]
        ends = self.step * first + self.offset, self.step * (last - 1) + self.offset
        return min(ends), max(ends)


@dataclass(eq=False, slots=True)
class KernelNode:
    """One value of the graph.

    about: data that distinguishes it from other nodes with the same operation and operands, see `Graph`.
    """

    index: int
    op: str
    operands: tuple[KernelNode, ...]
    shape: Shape
    dtype: np.dtype[Any]
    about: Any

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def is_like(self, other: KernelNode) -> bool:
        """Whether the same operation computes both, of whatever operands of the same dtypes."""
        return self._kind() == other._kind()

    def _kind(self) -> tuple[object, ...]:
        return self.op, self.dtype, self.about, tuple(each.dtype for each in self.operands)

    def __repr__(self) -> str:
        given = ", ".join(f"%{each.index}" for each in self.operands)
        return f"%{self.index} = {self.op}({given}) {self.dtype}{list(self.shape)} {self.about or ''}"


@functools.cache
def identity(rank: int) -> tuple[Axis, ...]:
    """Return the index map in which each axis is read along the same axis of the result."""
    return tuple(Axis(dim, 1, 0) for dim in range(rank))


def strides_of(shape: Sequence[int], last: int = 0) -> tuple[int, ...]:
    """Return the strides, in elements, of a C-ordered array. last: length of its rows in memory, if they are longer."""
    found, step = [], 1
    for dim in reversed(range(len(shape))):
        found.append(step)
        step *= last if last and dim == len(shape) - 1 else shape[dim]
    return tuple(reversed(found))


class Graph:
    """Creates nodes. Shapes and dtypes follow `jax.lax`."""

    def __init__(self) -> None:
        self.nodes: list[KernelNode] = []
        self._known: dict[Any, KernelNode] = {}

    def make(self, op: str, operands: Sequence[KernelNode], shape: Shape, dtype: Any, about: Any = None) -> KernelNode:
        """Return a node of any operation."""
        key = op, tuple(each.index for each in operands), tuple(shape), np.dtype(dtype).str, about
        if key not in self._known:
            node = KernelNode(len(self.nodes), op, tuple(operands), tuple(shape), np.dtype(dtype), about)
            self._known[key] = node
            self.nodes.append(node)
        return self._known[key]

    def input(self, number: int, shape: Shape, dtype: Any) -> KernelNode:
        return self.make(INPUT, (), shape, dtype, number)

    def constant(self, value: Any, shape: Shape, dtype: Any) -> KernelNode:
        """Return an array filled with one number. It is compared by its bits, so that -0.0 and NaN stay distinct."""
        return self.make(CONSTANT, (), shape, dtype, np.asarray(value, dtype).tobytes())

    def view(self, source: KernelNode, shape: Shape, axes: Sequence[Axis]) -> KernelNode:
        axes = tuple(axes)
        if source.op == CONSTANT:
            return self.make(CONSTANT, (), shape, source.dtype, source.about)
        if source.op == VIEW:
            axes, source = tuple(through(axis, axes) for axis in source.about), source.operands[0]
        if source.shape == tuple(shape) and axes == identity(len(shape)):
            return source
        return self.make(VIEW, (source,), shape, source.dtype, axes)

    def pieces(self, parts: Sequence[KernelNode], dim: int) -> KernelNode:
        """Concatenate parts along an axis."""
        parts = [each for each in _merged(self, parts, dim) if each.shape[dim]] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        ends = tuple(itertools.accumulate(each.shape[dim] for each in parts))
        shape = (*parts[0].shape[:dim], ends[-1], *parts[0].shape[dim + 1 :])
        wrapped = _wrapped(parts, dim)
        if wrapped is not None:
            source, shift = wrapped
            length = source.shape[dim]
            fits = length >= 2 * HALO and shift >= -HALO and shape[dim] + shift <= length + HALO
            if dim == len(shape) - 1 and fits:
                source = self.make(HALOED, (source,), source.shape, source.dtype)
            return self.make(WRAP, (source,), shape, source.dtype, (dim, shift))
        return self.make(PIECES, parts, shape, parts[0].dtype, (dim, ends))

    def box(self, source: KernelNode, starts: Sequence[int], shape: Shape) -> KernelNode:
        """Return the block of a node that begins at `starts`."""
        return self.view(source, shape, [Axis(dim, 1, start) for dim, start in enumerate(starts)])

    def placed(self, inner: KernelNode, around: KernelNode, starts: Sequence[int]) -> KernelNode:
        """Return `around`, with `inner` written over it at `starts`."""
        for dim in reversed(range(len(around.shape))):
            # so far, inner has the whole length of all later axes
            first, last = starts[dim], starts[dim] + inner.shape[dim]
            at = [*starts[:dim], 0, *(0 for _ in starts[dim + 1 :])]
            shape = [*inner.shape[:dim], first, *inner.shape[dim + 1 :]]
            before = self.box(around, at, tuple(shape))
            at[dim], shape[dim] = last, around.shape[dim] - last
            inner = self.pieces([before, inner, self.box(around, at, tuple(shape))], dim)
        return inner

    def transposed(self, source: KernelNode, order: Sequence[int]) -> KernelNode:
        """Return a node with its axes in this order."""
        axes = [Axis(list(order).index(dim), 1, 0) for dim in range(len(order))]
        return self.view(source, tuple(source.shape[dim] for dim in order), axes)

    def plain(self, source: KernelNode) -> KernelNode:
        """Return a node whose truths are the bytes 0 and 1: nests write no others, inputs may hold others."""
        if source.dtype.kind != "b" or source.op != INPUT:
            return source
        return self.make("copy", (source,), source.shape, source.dtype)

    def reshape(self, source: KernelNode, shape: Shape) -> KernelNode:
        """Reshape a node, in C order."""
        shape = tuple(shape)
        if source.op == CONSTANT:
            return self.make(CONSTANT, (), shape, source.dtype, source.about)
        if source.op == RESHAPE:
            return self.reshape(source.operands[0], shape)
        if [each for each in shape if each != 1] == [each for each in source.shape if each != 1]:
            long = (dim for dim, length in enumerate(shape) if length != 1)
            axes = [Axis(None, 0, 0) if length == 1 else Axis(next(long), 1, 0) for length in source.shape]
            return self.view(source, shape, axes)
        return self.make(RESHAPE, (source,), shape, source.dtype)


def through(axis: Axis, outer: Sequence[Axis]) -> Axis:
    """Compose two index maps: return an axis of a view's source, as read by a view of that view."""
    if axis.dim is None:
        return axis
    dim, step, offset = outer[axis.dim]
    return Axis(dim, axis.step * step if dim is not None else 0, axis.step * offset + axis.offset)


def _merged(graph: Graph, parts: Iterable[KernelNode], dim: int) -> list[KernelNode]:
    """Flatten nested pieces along the same axis, and merge neighbouring parts of one source."""
    found: list[KernelNode] = []
    for part in parts:
        for each in _pieces_of(graph, part, dim):
            joined = _joined(graph, found[-1], each, dim) if found else None
            if joined is None:
                found.append(each)
            else:
                found[-1] = joined
    return found


def _pieces_of(graph: Graph, node: KernelNode, dim: int) -> Sequence[KernelNode]:
    """Return the nodes that a node, or the source of a block, was put together of along an axis."""
    if node.op == PIECES and node.about[0] == dim:
        return node.operands
    source = node.operands[0] if node.op == VIEW else node
    if node.op != VIEW or source.op != PIECES or source.about[0] != dim or not _is_box(node):
        return (node,)
    starts = [axis.offset for axis in node.about]
    low, high, found = starts[dim], starts[dim] + node.shape[dim], []
    for part, start, end in zip(source.operands, (0, *source.about[1]), source.about[1], strict=False):
        first, last = max(start, low), min(end, high)
        if first < last:
            starts[dim] = first - start
            found.append(graph.box(part, starts, (*node.shape[:dim], last - first, *node.shape[dim + 1 :])))
    return found


def _joined(graph: Graph, first: KernelNode, second: KernelNode, dim: int) -> KernelNode | None:
    """Return two parts as one, if the second continues where the first ends; else None."""
    shape = (*first.shape[:dim], first.shape[dim] + second.shape[dim], *first.shape[dim + 1 :])
    if first.op == CONSTANT == second.op and first.about == second.about:
        return graph.make(CONSTANT, (), shape, first.dtype, first.about)
    if not first.op == VIEW == second.op or first.operands != second.operands:
        return None
    length = first.shape[dim]
    goes_on = all(
        one == Axis(two.dim, two.step, two.offset - (two.step * length if two.dim == dim else 0))
        for one, two in zip(first.about, second.about, strict=True)
    )
    return graph.view(first.operands[0], shape, first.about) if goes_on else None


def _wrapped(parts: Sequence[KernelNode], dim: int) -> tuple[KernelNode, int] | None:
    """Return source and shift of parts that read one node around its end: `parts[i] = source[(i + shift) % length]`."""
    found = [_run(each, dim) for each in parts]
    source, shift = found[0]
    length, place = source.shape[dim] if dim < len(source.shape) else 0, 0
    for part, (each, offset) in zip(parts, found, strict=True):
        if each is not source or not length or (offset - shift - place) % length:
            return None
        if part.shape[:dim] + part.shape[dim + 1 :] != source.shape[:dim] + source.shape[dim + 1 :]:
            return None
        place += part.shape[dim]
    return source, shift if shift <= length // 2 else shift - length


def _run(node: KernelNode, dim: int) -> tuple[KernelNode, int]:
    """Return the source and the offset along an axis of a node that reads consecutive elements, perhaps around the
    source's end."""
    offset = 0
    if node.op == VIEW and _is_box(node) and not any(axis.offset for at, axis in enumerate(node.about) if at != dim):
        node, offset = node.operands[0], node.about[dim].offset
    if node.op == WRAP and node.about[0] == dim:
        node, offset = node.operands[0], node.about[1] + offset
    return (node.operands[0] if node.op == HALOED else node), offset


def _is_box(node: KernelNode) -> bool:
    """Whether a view is a block of its source."""
    return [axis[:2] for axis in node.about] == [axis[:2] for axis in identity(len(node.shape))]


def reachable(nodes: Iterable[KernelNode]) -> set[KernelNode]:
    """Return these nodes and all nodes that they depend on."""
    found: set[KernelNode] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(node.operands)
    return found
