"""Reads and writes at indices that arrays contain: gathers, scatters, and blocks with a dynamic start.

A gather is computed element by element in a loop nest. A scatter is a function of its own: it copies the array, then
applies the updates in order, as NumPy does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from accel.compiler.kernels.accumulators import COPY, joined, loop
from accel.compiler.kernels.graph import BLOCK, GATHER, IOTA, SCATTER, Axis, Graph, KernelNode, Shape, strides_of
from accel.compiler.kernels.ir import MEMORY

SCATTERED = {
    "scatter": "set",
    "scatter-add": "add",
    "scatter-sub": "sub",
    "scatter-mul": "mul",
    "scatter-min": "min",
    "scatter-max": "max",
}
"""Scatter operations of `jax.lax`, and how each combines an element with an update."""

ROWS = "rows"
"""Kind of scatter: updates that lie one after the other in the array, with one index for all of them."""

_LEAST_IN_ROW = 8
"""Minimum number of them. Guess."""

_INDEX = np.dtype(np.int64)
_DROPS = frozenset({"FILL_OR_DROP", "2"})
_CLIPS = frozenset({"CLIP", "0"})
"""Values of `jax.lax.GatherScatterMode` that clip, as different versions of JAX write them."""


def gathered(graph: Graph, source: KernelNode, places: KernelNode, params: Any, shape: Shape) -> KernelNode | None:
    """Return a gather; None if the source is empty."""
    about, sizes = params["dimension_numbers"], params["slice_sizes"]
    if places.dtype.kind not in "iu" or not source.size:
        return None
    block = _Block(graph, shape, source.shape, sizes)
    windows = _windows(source.shape, about.collapsed_slice_dims, about.operand_batching_dims, about.offset_dims)
    batching = zip(about.operand_batching_dims, about.start_indices_batching_dims, strict=True)
    block.lie(windows, batching, places, about.start_index_map)
    mode = _mode(params)
    found = graph.make(GATHER, (source, *block.places(clips=True)), shape, source.dtype)
    fits = block.fits() if mode in _DROPS else None
    if fits is None:
        return found
    filling = graph.constant(_filling(params, source.dtype), shape, source.dtype)
    return graph.make("select_n", (fits, filling, found), shape, source.dtype)


def scattered(graph: Graph, name: str, given: Sequence[KernelNode], params: Any) -> KernelNode | None:
    """Return a scatter; None if it is not supported."""
    target, places, updates = given
    about, kind = params["dimension_numbers"], SCATTERED[name]
    if places.dtype.kind not in "iu" or (target.dtype.kind == "b" and kind not in ("set", "add", "mul")):
        return None
    if not updates.size:
        return target
    windows = _windows(target.shape, about.inserted_window_dims, about.operand_batching_dims, about.update_window_dims)
    sizes = [updates.shape[windows[dim]] if dim in windows else 1 for dim in range(len(target.shape))]
    block, kind = _blocks_of(graph, target.shape, sizes, windows, updates.shape, kind)
    batching = zip(about.operand_batching_dims, about.scatter_indices_batching_dims, strict=True)
    block.lie(windows, batching, places, about.scatter_dims_to_operand_dims)
    clips = _mode(params) in _CLIPS
    return _scatter(graph, target, block.flat(clips=clips), updates, kind)


def _blocks_of(
    graph: Graph, whole: Shape, sizes: Sequence[int], inside: Mapping[int, int], shape: Shape, kind: str
) -> tuple[_Block, str]:
    """Return the blocks of updates of this shape, each with an index for what lies one after the other, and the kind of
    scatter.

    sizes: of a block, along the array's axes. inside: by axis of the array, the updates' axis that runs through it.
    """
    row = _axes_in_row(whole, sizes, inside, shape) if kind == "set" else 0
    return _Block(graph, (*shape[: len(shape) - row], *(1,) * row), whole, sizes), ROWS if row else kind


def _axes_in_row(whole: Shape, sizes: Sequence[int], inside: Mapping[int, int], shape: Shape) -> int:
    """Return how many of the updates' last axes lie one after the other in the array; 0 if too few elements do."""
    count, length = 0, 1
    for dim in reversed(range(len(whole))):
        if inside.get(dim) != len(shape) - count - 1:
            break
        count, length = count + 1, length * sizes[dim]
        if sizes[dim] != whole[dim]:
            break
    return count if length >= _LEAST_IN_ROW else 0


def _windows(whole: Shape, single: Sequence[int], batching: Sequence[int], along: Sequence[int]) -> dict[int, int]:
    """Return by axis of the array that runs through a block the axis `along` which it is read or written.

    single: axes of one element in a block. batching: axes with a block for each index.
    """
    dims = [dim for dim in range(len(whole)) if dim not in single and dim not in batching]
    return dict(zip(dims, along, strict=True))


def _scatter(graph: Graph, target: KernelNode, at: KernelNode, updates: KernelNode, kind: str) -> KernelNode:
    if target.dtype.kind == "b":
        kind = {"add": "or", "mul": "and"}.get(kind, kind)
    return graph.make(SCATTER, (graph.plain(target), at, graph.plain(updates)), target.shape, target.dtype, kind)


def block_read(graph: Graph, source: KernelNode, starts: Sequence[KernelNode], shape: Shape) -> KernelNode | None:
    """Return a block of an array, shifted so that it lies inside."""
    if not source.size:
        return None
    block = _Block(graph, (), source.shape, shape)
    block.starts.update(enumerate(starts))
    dims = tuple(dim for dim, length in enumerate(shape) if length < source.shape[dim])
    return graph.make(BLOCK, (source, *map(block.clipped, dims)), shape, source.dtype, dims)


def block_written(graph: Graph, around: KernelNode, inner: KernelNode, starts: Sequence[KernelNode]) -> KernelNode:
    """Return an array with a block written over it, shifted so that it lies inside."""
    if not inner.size:
        return around
    inside = {dim: dim for dim in range(len(inner.shape))}
    block, kind = _blocks_of(graph, around.shape, inner.shape, inside, inner.shape, "set")
    block.inside.update(inside)
    block.starts.update((dim, graph.view(start, block.shape, ())) for dim, start in enumerate(starts))
    return _scatter(graph, around, block.flat(clips=True), inner, kind)


class _Block:
    """Blocks of an array, one for each index.

    shape: of the elements read or written. whole: of the array. sizes: of a block, along the array's axes. inside: by
    axis of the array, the axis of `shape` that runs through the block. starts: by axis, the start of the block, in
    `shape`.
    """

    def __init__(self, graph: Graph, shape: Shape, whole: Shape, sizes: Sequence[int]) -> None:
        self._graph, self.shape, self._whole, self._sizes = graph, shape, whole, sizes
        self.inside: dict[int, int] = {}
        self.starts: dict[int, KernelNode] = {}

    def lie(
        self, windows: Mapping[int, int], batching: Iterable[tuple[int, int]], places: KernelNode, dims: Sequence[int]
    ) -> None:
        """Set where blocks lie. windows: see `_windows`. batching: axes of the array, with their axes of `places`.

        The last axis of `places` holds a start for each of `dims`; the others run along the axes of no window.
        """
        batch = [dim for dim in range(len(self.shape)) if dim not in windows.values()]
        self.inside.update(windows)
        self.inside.update((dim, batch[place]) for dim, place in batching)
        for number, dim in enumerate(dims):
            axes = [*(Axis(along, 1, 0) for along in batch), Axis(None, 0, number)]
            self.starts[dim] = self._graph.view(places, self.shape, axes)

    def _made(self, op: str, *given: KernelNode, dtype: Any = None) -> KernelNode:
        return self._graph.make(op, given, self.shape, dtype or given[0].dtype)

    def _constant(self, value: int, dtype: Any = _INDEX) -> KernelNode:
        return self._graph.constant(value, self.shape, dtype)

    def _last(self, dim: int) -> int:
        """Return the last index at which a block may start."""
        return self._whole[dim] - self._sizes[dim]

    def clipped(self, dim: int) -> KernelNode:
        """Return the start of a block along an axis, moved so that the block lies inside."""
        start, last = self.starts[dim], self._last(dim)
        # in its own dtype: as int64, a large unsigned one would be less than 0
        if last <= np.iinfo(start.dtype).max:
            start = self._made("min", start, self._constant(last, start.dtype))
        if start.dtype.kind == "i":
            start = self._made("max", start, self._constant(0, start.dtype))
        return self._wide(start)

    def _wide(self, start: KernelNode) -> KernelNode:
        return start if start.dtype == _INDEX else self._made("convert_element_type", start, dtype=_INDEX)

    def places(self, *, clips: bool) -> list[KernelNode]:
        """Return, along each axis of the array, the index of each element."""
        found = []
        for dim in range(len(self._whole)):
            inside = self._graph.make(IOTA, (), self.shape, _INDEX, self.inside[dim]) if dim in self.inside else None
            start = None
            if dim in self.starts and (not clips or self._last(dim)):
                start = self.clipped(dim) if clips else self._wide(self.starts[dim])
            if start is not None and inside is not None and self._sizes[dim] > 1:
                found.append(self._made("add", start, inside))
            else:
                found.append(start or (self._constant(0) if inside is None else inside))
        return found

    def fits(self) -> KernelNode | None:
        """Return whether a block lies inside the array; None if all do."""
        found: KernelNode | None = None
        for dim, start in self.starts.items():
            last, limits = self._last(dim), np.iinfo(start.dtype)
            tests = [("le", last)] if last < limits.max else []
            tests += [("ge", 0)] if start.dtype.kind == "i" else []
            for how, limit in tests:
                test = self._made(how, start, self._constant(limit, start.dtype), dtype=bool)
                found = test if found is None else self._made("and", found, test)
        return found

    def flat(self, *, clips: bool) -> KernelNode:
        """Return the flat index of each element in the array; -1 for elements of a block that is not fully inside."""
        at = self._constant(0)
        for stride, place in zip(strides_of(self._whole), self.places(clips=clips), strict=True):
            scaled = place if stride == 1 else self._made("mul", place, self._constant(stride))
            at = scaled if at == self._constant(0) else self._made("add", at, scaled)
        fits = None if clips else self.fits()
        return at if fits is None else self._made("select_n", fits, self._constant(-1), at, dtype=_INDEX)


def _mode(params: Any) -> str:
    return str(params["mode"]).rpartition(".")[-1]


def _filling(params: Any, dtype: np.dtype[Any]) -> Any:
    """Return the value that `jax.lax.gather` fills in beyond an array's ends."""
    if params.get("fill_value") is not None:
        return params["fill_value"]
    if dtype.kind == "f":
        return np.nan
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max


# -- the function of a scatter -----------------------------------------------------------------------------------------


def function_of(node: KernelNode) -> tuple[str, str]:
    """Return the name and the definition of the function that computes a scatter.

    It takes pointers to the array, the indices, the updates and the result, and the numbers of elements, of indices and
    of updates for each. The result may be where the array is.
    """
    kind, dtype = node.about, node.dtype
    stored = MEMORY[dtype]
    name = f"scatter_{kind}_{dtype.name}"
    update = [
        "%from = getelementptr i64, ptr %places, i64 %i",
        "%place = load i64, ptr %from, align 8",
        "%is_inside = icmp ult i64 %place, %size",
        "br i1 %is_inside, label %write, label %done",
        "write:",
        "%number = mul i64 %i, %row",
        f"%update = getelementptr {stored}, ptr %updates, i64 %number",
        f"%to = getelementptr {stored}, ptr %result, i64 %place",
        *_joined_update(kind, dtype),
        "br label %done",
        "done:",
    ]
    lines = [
        f"define internal void @{name}(ptr %source, ptr %places, ptr %updates, ptr %result, i64 %size, i64 %count,"
        " i64 %row) #0 {",
        "%is_there = icmp eq ptr %result, %source",
        "br i1 %is_there, label %copied, label %copy",
        "copy:",
        f"%bytes = mul i64 %size, {dtype.itemsize}",
        COPY.format("%result", "%source", "%bytes"),
        "br label %copied",
        "copied:",
        *loop("i", "%count", update),
        "ret void",
        "}",
    ]
    return name, "\n".join(lines)


def _joined_update(kind: str, dtype: np.dtype[Any]) -> list[str]:
    """Return the instructions that join `%update` with what is at `%to`."""
    if kind == ROWS:
        return [f"%length = mul i64 %row, {dtype.itemsize}", COPY.format("%to", "%update", "%length")]
    stored, align = MEMORY[dtype], f"align {dtype.itemsize}"
    new = f"%new = load {stored}, ptr %update, {align}"
    if kind == "set":
        return [new, f"store {stored} %new, ptr %to, {align}"]
    return [
        new,
        f"%old = load {stored}, ptr %to, {align}",
        *joined(kind, dtype, stored, "%old", "%new", "%both"),
        f"store {stored} %both, ptr %to, {align}",
    ]


def lengths_of(node: KernelNode) -> tuple[int, int, int]:
    """Return the numbers of elements, of indices, and of updates for each."""
    _, at, updates = node.operands
    return node.size, at.size, updates.size // at.size
