"""Reductions: which kernels take, and how.

Sums of floats are added in NumPy's order (`pairwise_sum` in its loops_utils.h). Rows of fewer than 8 numbers are added
from left to right, rows of up to 128 by 8 accumulators, longer ones by halves. Columns are added row by row. Products
of floats are multiplied from left to right, as NumPy's. So are running sums and products: another order overflows
elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from accel.compiler.kernels import accumulators
from accel.compiler.kernels.graph import REDUCE, Graph, KernelNode
from accel.compiler.kernels.ir import MEMORY

ROWS, COLUMNS, RUNNING, PLACES = "rows", "columns", "running", "places"
"""Kinds of reductions, by the elements of each result.

ROWS: a row of contiguous elements. COLUMNS: a column of each group. RUNNING: a column up to the result's own index.
PLACES: the result is the index of an element in its row.
"""

REDUCED = {
    "reduce_sum": "add",
    "reduce_prod": "mul",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_or": "or",
    "reduce_and": "and",
}

PLACED = {"argmax": "max", "argmin": "min"}
"""Reductions of `jax.lax` to the index of an element, and the comparison that each makes."""

RUN = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}
"""Running reductions of `jax.lax`, and the operation that joins two elements."""


def reduced(
    graph: Graph, name: str, source: KernelNode, axes: Sequence[int], shape: tuple[int, ...]
) -> KernelNode | None:
    """Return a reduction over these axes by an operation of `jax.lax`; None if the operation is not supported."""
    kept = [dim for dim in range(len(source.shape)) if dim not in axes]
    order = [dim for dim in range(len(source.shape)) if source.shape[dim] != 1 and dim in axes]
    others = [dim for dim in kept if source.shape[dim] != 1]
    if not source.size:
        return _of_nothing(graph, REDUCED[name], shape, source.dtype)
    if name == "reduce_sum" and source.dtype.kind == "b":
        return None
    source = graph.plain(source)
    if not order:
        same = graph.reshape(source, shape)
        if name != "reduce_sum" or source.dtype.kind != "f":
            return same
        return graph.make("add", (same, graph.constant(0.0, shape, source.dtype)), shape, source.dtype)
    inner = [dim for dim in others if dim > max(order)]
    if inner and all(dim < min(order) or dim in inner for dim in others):
        width = math.prod(source.shape[dim] for dim in inner)
        return graph.make(REDUCE, (source,), shape, source.dtype, (REDUCED[name], COLUMNS, width))
    if inner or any(dim > min(order) for dim in others):
        if name == "reduce_sum" and source.dtype.kind == "f":
            return None
        # move the reduced axes to the end, in their order
        source = graph.transposed(source, [*kept, *sorted(axes)])
    return graph.make(REDUCE, (source,), shape, source.dtype, (REDUCED[name], ROWS))


def _of_nothing(graph: Graph, kind: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> KernelNode | None:
    """Return a reduction of no elements; None if it has no value, where NumPy raises."""
    values = {"add": 0, "mul": 1, "or": 0, "and": np.invert(np.zeros((), bool if dtype.kind == "f" else dtype))}
    return graph.constant(values[kind], shape, dtype) if kind in values else None


def running(graph: Graph, name: str, source: KernelNode, *, axis: int, reverse: bool) -> KernelNode | None:
    """Return a running reduction along an axis; None if the operation is not supported."""
    if reverse or source.dtype.kind == "b":
        return None
    about = RUN[name], RUNNING, source.shape[axis], math.prod(source.shape[axis + 1 :])
    return graph.make(REDUCE, (source,), source.shape, source.dtype, about)


def placed(graph: Graph, name: str, source: KernelNode, axis: int, dtype: Any) -> KernelNode | None:
    """Return the index of the largest or smallest element along an axis."""
    if not source.size:
        return None
    others = [dim for dim in range(len(source.shape)) if dim != axis]
    source = graph.transposed(graph.plain(source), [*others, axis])
    return graph.make(REDUCE, (source,), source.shape[:-1], dtype, (PLACED[name], PLACES))


def function_of(node: KernelNode) -> tuple[str, str]:
    """Return the name and the definition of the function that computes a reduction.

    It takes pointers to the source and to the results, their number, and the number of elements of each.
    """
    kind, how, *lengths = node.about
    dtype = node.dtype
    if how in (RUNNING, COLUMNS):
        name = f"{kind}_{how}_{lengths[-1]}_{dtype.name}"
        return name, (accumulators.running if how == RUNNING else accumulators.columns)(name, kind, dtype, lengths[-1])
    if how == PLACES:
        source = node.operands[0].dtype
        name = f"{kind}_{how}_{source.name}_{dtype.name}"
        return name, accumulators.places(name, kind, source, MEMORY[dtype])
    name = f"{kind}_{how}_{dtype.name}"
    return name, accumulators.rows(name, kind, dtype)


def lengths_of(node: KernelNode) -> tuple[int, int]:
    """Return the number of results, and of elements of each. For columns and running reductions: of groups of columns,
    and of rows."""
    if node.about[1] == RUNNING:
        return node.size // math.prod(node.about[2:]), node.about[2]
    if node.about[1] == COLUMNS:
        return node.size // node.about[2], node.operands[0].size // node.size
    return node.size, node.operands[0].size // node.size
