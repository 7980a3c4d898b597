"""Reductions: functions in LLVM IR over contiguous memory.

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

from accel.kernels.graph import INPUT, REDUCE, Axis, Graph, KernelNode
from accel.kernels.ir import MEMORY, literal_text

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

_LANES = 8

_BLOCK = 128
"""Longest row that NumPy adds without halving it."""


def reduced(
    graph: Graph, name: str, source: KernelNode, axes: Sequence[int], shape: tuple[int, ...]
) -> KernelNode | None:
    """Return a reduction over these axes by an operation of `jax.lax`; None if the operation is not supported."""
    kept = [dim for dim in range(len(source.shape)) if dim not in axes]
    order = [dim for dim in range(len(source.shape)) if source.shape[dim] != 1 and dim in axes]
    others = [dim for dim in kept if source.shape[dim] != 1]
    if name not in REDUCED:
        return None
    if not source.size:
        return _of_nothing(graph, REDUCED[name], shape, source.dtype)
    if name == "reduce_sum" and source.dtype.kind == "b":
        return None
    if source.dtype.kind == "b" and source.op == INPUT:
        # its truths may be bytes other than 0 and 1: nests write no others
        source = graph.make("copy", (source,), source.shape, source.dtype)
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
        source = _turned(graph, source, [*kept, *sorted(axes)])
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
    if source.dtype.kind == "b" and source.op == INPUT:
        source = graph.make("copy", (source,), source.shape, source.dtype)
    source = _turned(graph, source, [*(dim for dim in range(len(source.shape)) if dim != axis), axis])
    return graph.make(REDUCE, (source,), source.shape[:-1], dtype, (PLACED[name], PLACES))


def _turned(graph: Graph, source: KernelNode, order: Sequence[int]) -> KernelNode:
    """Transpose the source."""
    moved = [Axis(order.index(dim), 1, 0) for dim in range(len(order))]
    return graph.view(source, tuple(source.shape[dim] for dim in order), moved)


def function_of(node: KernelNode) -> tuple[str, str]:
    """Return the name and the definition of the function that computes a reduction.

    It takes pointers to the source and to the results, their number, and the number of elements of each.
    """
    kind, how, *lengths = node.about
    dtype = node.dtype
    if how in (RUNNING, COLUMNS):
        name = f"{kind}_{how}_{lengths[-1]}_{dtype.name}"
        return name, (_running if how == RUNNING else _columns)(name, kind, dtype, lengths[-1])
    if how == PLACES:
        source = node.operands[0].dtype
        name = f"{kind}_{how}_{source.name}_{dtype.name}"
        return name, _places(name, kind, source, MEMORY[dtype])
    name = f"{kind}_{how}_{dtype.name}"
    return name, _rows(name, kind, dtype)


def lengths_of(node: KernelNode) -> tuple[int, int]:
    """Return the number of results, and of elements of each. For columns and running reductions: of groups of columns,
    and of rows."""
    if node.about[1] == RUNNING:
        return node.size // math.prod(node.about[2:]), node.about[2]
    if node.about[1] == COLUMNS:
        return node.size // node.about[2], node.operands[0].size // node.size
    return node.size, node.operands[0].size // node.size


def joined(kind: str, dtype: np.dtype[Any], register: str, x: str, y: str, out: str) -> list[str]:
    """Return the instructions of `out = x OP y`. NaN wins over numbers, as in NumPy."""
    if kind in ("or", "and"):
        return [f"{out} = {kind} {register} {x}, {y}"]
    if kind in ("add", "sub", "mul"):
        return [f"{out} = {'f' if dtype.kind == 'f' else ''}{kind} {register} {x}, {y}"]
    if dtype.kind == "f":
        truth = "i1" if not register.startswith("<") else f"<{_LANES} x i1>"
        how = "ogt" if kind == "max" else "olt"
        return [
            f"{out}a = fcmp {how} {register} {x}, {y}",
            f"{out}b = fcmp uno {register} {x}, {x}",
            f"{out}c = or {truth} {out}a, {out}b",
            f"{out} = select {truth} {out}c, {register} {x}, {register} {y}",
        ]
    how = ("u" if dtype.kind in "ub" else "s") + ("gt" if kind == "max" else "lt")
    truth = "i1" if not register.startswith("<") else f"<{_LANES} x i1>"
    return [
        f"{out}a = icmp {how} {register} {x}, {y}",
        f"{out} = select {truth} {out}a, {register} {x}, {register} {y}",
    ]


def _neutral(kind: str, dtype: np.dtype[Any]) -> str:
    if kind in ("add", "or"):
        return literal_text(-0.0 if dtype.kind == "f" else 0, np.dtype(np.uint8) if dtype.kind == "b" else dtype)
    if kind == "mul":
        return literal_text(1, dtype)
    if kind == "and":
        return "1" if dtype.kind == "b" else "-1" if dtype.kind == "i" else str(np.iinfo(dtype).max)
    if dtype.kind == "f":
        return literal_text(-math.inf if kind == "max" else math.inf, dtype)
    if dtype.kind == "b":
        return "0" if kind == "max" else "1"
    about = np.iinfo(dtype)
    return str(about.min if kind == "max" else about.max)


def _rows(name: str, kind: str, dtype: np.dtype[Any]) -> str:
    stored, size = MEMORY[dtype], dtype.itemsize
    pairwise = kind == "add" and dtype.kind == "f"
    inner = _pairwise(name, dtype) if pairwise else _block(f"{name}_row", kind, dtype)
    return "\n".join(
        [
            inner,
            f"define internal void @{name}(ptr %source, ptr %result, i64 %count, i64 %length) #0 {{",
            "br label %loop",
            "loop:",
            "%i = phi i64 [ 0, %0 ], [ %next, %loop ]",
            "%first = mul i64 %i, %length",
            f"%row = getelementptr {stored}, ptr %source, i64 %first",
            f"%sum = call {stored} @{name}_row(ptr %row, i64 %length)",
            # 0.0 where all are -0.0, as NumPy's, which starts with 0.0
            f"%found = fadd {stored} %sum, {literal_text(0.0, dtype)}"
            if pairwise
            else f"%found = freeze {stored} %sum",
            f"%to = getelementptr {stored}, ptr %result, i64 %i",
            f"store {stored} %found, ptr %to, align {size}",
            "%next = add i64 %i, 1",
            "%more = icmp slt i64 %next, %count",
            "br i1 %more, label %loop, label %end",
            "end:",
            "ret void",
            "}",
        ]
    )


def _block(name: str, kind: str, dtype: np.dtype[Any]) -> str:
    """Return a function of one row: 8 accumulators, joined in pairs; then the rest, from left to right.

    A product of floats is computed entirely from left to right.
    """
    stored, size = MEMORY[dtype], dtype.itemsize
    vector = f"<{_LANES} x {stored}>"
    neutral = _neutral(kind, dtype)
    lines = [
        f"define internal {stored} @{name}(ptr %source, i64 %length) #0 {{",
        f"%whole = and i64 %length, {0 if kind == 'mul' and dtype.kind == 'f' else -_LANES}",
        "%is_long = icmp sgt i64 %whole, 0",
        "br i1 %is_long, label %head, label %rest",
        "head:",
        f"%first = load {vector}, ptr %source, align {size}",
        "br label %test",
        "test:",
        f"%i = phi i64 [ {_LANES}, %head ], [ %next, %loop ]",
        f"%sum = phi {vector} [ %first, %head ], [ %joined, %loop ]",
        "%more = icmp slt i64 %i, %whole",
        "br i1 %more, label %loop, label %halves",
        "loop:",
        f"%at = getelementptr {stored}, ptr %source, i64 %i",
        f"%here = load {vector}, ptr %at, align {size}",
        *joined(kind, dtype, vector, "%sum", "%here", "%joined"),
        f"%next = add i64 %i, {_LANES}",
        "br label %test",
        "halves:",
        *(f"%r{lane} = extractelement {vector} %sum, i64 {lane}" for lane in range(_LANES)),
    ]
    for out, x, y in (
        ("a", "%r0", "%r1"),
        ("b", "%r2", "%r3"),
        ("c", "%r4", "%r5"),
        ("d", "%r6", "%r7"),
        ("e", "%a", "%b"),
        ("f", "%c", "%d"),
        ("g", "%e", "%f"),
    ):
        lines += joined(kind, dtype, stored, x, y, f"%{out}")
    lines += [
        "br label %rest",
        "rest:",
        f"%so_far = phi {stored} [ {neutral}, %0 ], [ %g, %halves ]",
        "br label %tail_test",
        "tail_test:",
        "%j = phi i64 [ %whole, %rest ], [ %after, %tail ]",
        f"%total = phi {stored} [ %so_far, %rest ], [ %longer, %tail ]",
        "%is_more = icmp slt i64 %j, %length",
        "br i1 %is_more, label %tail, label %end",
        "tail:",
        f"%place = getelementptr {stored}, ptr %source, i64 %j",
        f"%element = load {stored}, ptr %place, align {size}",
        *joined(kind, dtype, stored, "%total", "%element", "%longer"),
        "%after = add i64 %j, 1",
        "br label %tail_test",
        "end:",
        f"ret {stored} %total",
        "}",
    ]
    return "\n".join(lines)


def _pairwise(name: str, dtype: np.dtype[Any]) -> str:
    stored = MEMORY[dtype]
    return "\n".join(
        [
            _block(f"{name}_block", "add", dtype),
            f"define internal {stored} @{name}_row(ptr %source, i64 %length) #0 {{",
            f"%is_short = icmp sle i64 %length, {_BLOCK}",
            "br i1 %is_short, label %short, label %long",
            "short:",
            f"%block = call {stored} @{name}_block(ptr %source, i64 %length)",
            f"ret {stored} %block",
            "long:",
            "%middle = lshr i64 %length, 1",
            f"%half = and i64 %middle, -{_LANES}",
            "%others = sub i64 %length, %half",
            f"%second = getelementptr {stored}, ptr %source, i64 %half",
            f"%one = call {stored} @{name}_row(ptr %source, i64 %half)",
            f"%two = call {stored} @{name}_row(ptr %second, i64 %others)",
            f"%both = fadd {stored} %one, %two",
            f"ret {stored} %both",
            "}",
        ]
    )


def _columns(name: str, kind: str, dtype: np.dtype[Any], width: int) -> str:
    """Return a function that reduces groups of `width` columns row by row.

    LLVM does not vectorise it: results are read and written each time. Sums start with 0, as NumPy's: a sum of -0.0
    alone is 0.0.
    """
    stored, size, first = MEMORY[dtype], dtype.itemsize, 0 if kind == "add" else 1
    return "\n".join(
        [
            f"define internal void @{name}(ptr %source, ptr %result, i64 %count, i64 %length) #0 {{",
            f"%group = mul i64 %length, {width}",
            "br label %groups",
            "groups:",
            "%g = phi i64 [ 0, %0 ], [ %next_g, %next_group ]",
            "%start = mul i64 %g, %group",
            f"%from = getelementptr {stored}, ptr %source, i64 %start",
            f"%out = mul i64 %g, {width}",
            f"%to = getelementptr {stored}, ptr %result, i64 %out",
            f"call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 {width * size}, i1 false)"
            if kind == "add"
            else f"call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 {width * size}, i1 false)",
            f"%is_more = icmp sgt i64 %length, {first}",
            "br i1 %is_more, label %rows, label %next_group",
            "rows:",
            f"%i = phi i64 [ {first}, %groups ], [ %next, %next_row ]",
            f"%first = mul i64 %i, {width}",
            f"%row = getelementptr {stored}, ptr %from, i64 %first",
            "br label %columns",
            "columns:",
            "%j = phi i64 [ 0, %rows ], [ %after, %columns ]",
            f"%sum = getelementptr {stored}, ptr %to, i64 %j",
            f"%at = getelementptr {stored}, ptr %row, i64 %j",
            f"%x = load {stored}, ptr %sum, align {size}",
            f"%y = load {stored}, ptr %at, align {size}",
            *joined(kind, dtype, stored, "%x", "%y", "%z"),
            f"store {stored} %z, ptr %sum, align {size}",
            "%after = add i64 %j, 1",
            f"%has_columns = icmp slt i64 %after, {width}",
            "br i1 %has_columns, label %columns, label %next_row",
            "next_row:",
            "%next = add i64 %i, 1",
            "%has_rows = icmp slt i64 %next, %length",
            "br i1 %has_rows, label %rows, label %next_group",
            "next_group:",
            "%next_g = add i64 %g, 1",
            "%has_groups = icmp slt i64 %next_g, %count",
            "br i1 %has_groups, label %groups, label %end",
            "end:",
            "ret void",
            "}",
        ]
    )


def _running(name: str, kind: str, dtype: np.dtype[Any], width: int) -> str:
    """Return a function over rows of `width` elements, each joined to the one before it in its column.

    `%count` groups have `%length` rows.
    """
    stored, size = MEMORY[dtype], dtype.itemsize
    return "\n".join(
        [
            f"define internal void @{name}(ptr %source, ptr %result, i64 %count, i64 %length) #0 {{",
            f"%group = mul i64 %length, {width}",
            "br label %groups",
            "groups:",
            "%i = phi i64 [ 0, %0 ], [ %next, %next_group ]",
            "%start = mul i64 %i, %group",
            f"%from = getelementptr {stored}, ptr %source, i64 %start",
            f"%to = getelementptr {stored}, ptr %result, i64 %start",
            f"call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 {width * size}, i1 false)",
            "br label %test",
            "test:",
            f"%j = phi i64 [ {width}, %groups ], [ %after, %elements ]",
            "%more = icmp slt i64 %j, %group",
            "br i1 %more, label %elements, label %next_group",
            "elements:",
            f"%before = sub i64 %j, {width}",
            f"%at_before = getelementptr {stored}, ptr %to, i64 %before",
            f"%at = getelementptr {stored}, ptr %from, i64 %j",
            f"%x = load {stored}, ptr %at_before, align {size}",
            f"%y = load {stored}, ptr %at, align {size}",
            *joined(kind, dtype, stored, "%x", "%y", "%z"),
            f"%at_result = getelementptr {stored}, ptr %to, i64 %j",
            f"store {stored} %z, ptr %at_result, align {size}",
            "%after = add i64 %j, 1",
            "br label %test",
            "next_group:",
            "%next = add i64 %i, 1",
            "%has_groups = icmp slt i64 %next, %count",
            "br i1 %has_groups, label %groups, label %end",
            "end:",
            "ret void",
            "}",
        ]
    )


def _places(name: str, kind: str, dtype: np.dtype[Any], result: str) -> str:
    """Return a function that searches element by element. The first of equal elements wins, and the first NaN."""
    stored, size = MEMORY[dtype], dtype.itemsize
    how = {"max": "gt", "min": "lt"}[kind]
    better = [f"%is_better = icmp {'s' if dtype.kind == 'i' else 'u'}{how} {stored} %x, %best"]
    if dtype.kind == "f":
        better = [
            f"%is_beyond = fcmp o{how} {stored} %x, %best",
            f"%is_nan = fcmp uno {stored} %x, %x",
            f"%was_number = fcmp ord {stored} %best, %best",
            "%is_first_nan = and i1 %is_nan, %was_number",
            "%is_better = or i1 %is_beyond, %is_first_nan",
        ]
    return "\n".join(
        [
            f"define internal void @{name}(ptr %source, ptr %result, i64 %count, i64 %length) #0 {{",
            "br label %rows",
            "rows:",
            "%i = phi i64 [ 0, %0 ], [ %next, %next_row ]",
            "%start = mul i64 %i, %length",
            f"%row = getelementptr {stored}, ptr %source, i64 %start",
            f"%first = load {stored}, ptr %row, align {size}",
            "br label %elements",
            "elements:",
            "%j = phi i64 [ 0, %rows ], [ %after, %elements ]",
            "%place = phi i64 [ 0, %rows ], [ %place_now, %elements ]",
            f"%best = phi {stored} [ %first, %rows ], [ %best_now, %elements ]",
            f"%at = getelementptr {stored}, ptr %row, i64 %j",
            f"%x = load {stored}, ptr %at, align {size}",
            *better,
            f"%best_now = select i1 %is_better, {stored} %x, {stored} %best",
            "%place_now = select i1 %is_better, i64 %j, i64 %place",
            "%after = add i64 %j, 1",
            "%has_elements = icmp slt i64 %after, %length",
            "br i1 %has_elements, label %elements, label %next_row",
            "next_row:",
            f"%to = getelementptr {result}, ptr %result, i64 %i",
            f"%found = {'freeze i64' if result == 'i64' else 'trunc i64'} %place_now"
            + ("" if result == "i64" else f" to {result}"),
            f"store {result} %found, ptr %to",
            "%next = add i64 %i, 1",
            "%has_rows = icmp slt i64 %next, %count",
            "br i1 %has_rows, label %rows, label %end",
            "end:",
            "ret void",
            "}",
        ]
    )


DECLARED = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\ndeclare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
