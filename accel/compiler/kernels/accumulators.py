"""Functions in LLVM IR that reduce contiguous memory. Their kinds are those of accel.compiler.kernels.reductions.

Each takes pointers to the source and to the results, their number, and the number of elements of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from accel.compiler.kernels.ir import MEMORY, literal_text

_LANES = 8

_BLOCK = 128
"""Longest row that NumPy adds without halving it."""


def joined(kind: str, dtype: np.dtype[Any], register: str, x: str, y: str, out: str) -> list[str]:
    """Return the instructions of `out = x OP y`. NaN wins over numbers, as in NumPy."""
    if kind in ("or", "and"):
        return [f"{out} = {kind} {register} {x}, {y}"]
    if kind in ("add", "sub", "mul"):
        return [f"{out} = {'f' if dtype.kind == 'f' else ''}{kind} {register} {x}, {y}"]
    truth = f"<{_LANES} x i1>" if register.startswith("<") else "i1"
    chosen, how = f"{out}a", {"max": "gt", "min": "lt"}[kind]
    if dtype.kind != "f":
        lines = [f"{chosen} = icmp {'u' if dtype.kind in 'ub' else 's'}{how} {register} {x}, {y}"]
    else:
        chosen = f"{out}c"
        lines = [
            f"{out}a = fcmp o{how} {register} {x}, {y}",
            f"{out}b = fcmp uno {register} {x}, {x}",
            f"{chosen} = or {truth} {out}a, {out}b",
        ]
    return [*lines, f"{out} = select {truth} {chosen}, {register} {x}, {register} {y}"]


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


def rows(name: str, kind: str, dtype: np.dtype[Any]) -> str:
    stored = MEMORY[dtype]
    pairwise = kind == "add" and dtype.kind == "f"
    # 0.0 where all are -0.0, as NumPy's, which starts with 0.0
    found = f"fadd {stored} %sum, {literal_text(0.0, dtype)}" if pairwise else f"freeze {stored} %sum"
    body = [
        "%first = mul i64 %i, %length",
        f"%row = getelementptr {stored}, ptr %source, i64 %first",
        f"%sum = call {stored} @{name}_row(ptr %row, i64 %length)",
        f"%found = {found}",
        f"%to = getelementptr {stored}, ptr %result, i64 %i",
        f"store {stored} %found, ptr %to, align {dtype.itemsize}",
    ]
    inner = _pairwise(name, dtype) if pairwise else _block(f"{name}_row", kind, dtype)
    return f"{inner}\n{_reduction(name, loop('i', '%count', body))}"


def _reduction(name: str, lines: Sequence[str]) -> str:
    """Return a function as this module's text describes it, of these instructions."""
    head = f"define internal void @{name}(ptr %source, ptr %result, i64 %count, i64 %length) #0 {{"
    return "\n".join([head, *lines, "ret void", "}"])


def loop(
    index: str,
    count: str,
    body: Sequence[str],
    *,
    first: int | str = 0,
    step: int = 1,
    carried: Mapping[str, tuple[str, str, str]] = MappingProxyType({}),
) -> list[str]:
    """Return the instructions of a loop over `%index` from `first` to `count`, exclusive. What follows comes after it.

    body: begins in the block `index_loop`; it may hold loops. carried: by name, the type of a value that an iteration
    hands to the next one, its first value, and what it is after an iteration.
    """
    phis = {f"%{index}": ("i64", first, f"%{index}_next"), **carried}
    return [
        f"br label %{index}_start",
        f"{index}_start:",
        f"br label %{index}_test",
        f"{index}_test:",
        *(
            f"{name} = phi {kind} [ {begin}, %{index}_start ], [ {after}, %{index}_last ]"
            for name, (kind, begin, after) in phis.items()
        ),
        f"%{index}_more = icmp slt i64 %{index}, {count}",
        f"br i1 %{index}_more, label %{index}_loop, label %{index}_end",
        f"{index}_loop:",
        *body,
        f"br label %{index}_last",
        f"{index}_last:",
        f"%{index}_next = add i64 %{index}, {step}",
        f"br label %{index}_test",
        f"{index}_end:",
    ]


def _block(name: str, kind: str, dtype: np.dtype[Any]) -> str:
    """Return a function of one row: 8 accumulators, joined in pairs; then the rest, from left to right.

    A product of floats is computed entirely from left to right.
    """
    stored, size = MEMORY[dtype], dtype.itemsize
    vector = f"<{_LANES} x {stored}>"
    lanes = [f"%r{lane}" for lane in range(_LANES)]
    pairs = []
    while len(lanes) > 1:
        joins = [(x, y, f"{x}{y[1:]}") for x, y in zip(lanes[::2], lanes[1::2], strict=True)]
        pairs += [line for x, y, out in joins for line in joined(kind, dtype, stored, x, y, out)]
        lanes = [out for _, _, out in joins]
    eight = [
        f"%at = getelementptr {stored}, ptr %source, i64 %i",
        f"%here = load {vector}, ptr %at, align {size}",
        *joined(kind, dtype, vector, "%sum", "%here", "%joined"),
    ]
    one = [
        f"%place = getelementptr {stored}, ptr %source, i64 %j",
        f"%element = load {stored}, ptr %place, align {size}",
        *joined(kind, dtype, stored, "%total", "%element", "%longer"),
    ]
    lines = [
        f"define internal {stored} @{name}(ptr %source, i64 %length) #0 {{",
        f"%whole = and i64 %length, {0 if kind == 'mul' and dtype.kind == 'f' else -_LANES}",
        "%is_long = icmp sgt i64 %whole, 0",
        "br i1 %is_long, label %head, label %rest",
        "head:",
        f"%first = load {vector}, ptr %source, align {size}",
        *loop("i", "%whole", eight, first=_LANES, step=_LANES, carried={"%sum": (vector, "%first", "%joined")}),
        *(f"%r{lane} = extractelement {vector} %sum, i64 {lane}" for lane in range(_LANES)),
        *pairs,
        "br label %rest",
        "rest:",
        f"%so_far = phi {stored} [ {_neutral(kind, dtype)}, %0 ], [ {lanes[0]}, %i_end ]",
        *loop("j", "%length", one, first="%whole", carried={"%total": (stored, "%so_far", "%longer")}),
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


def columns(name: str, kind: str, dtype: np.dtype[Any], width: int) -> str:
    """Return a function that reduces groups of `width` columns row by row.

    LLVM does not vectorise it: results are read and written each time. Sums start with 0, as NumPy's: a sum of -0.0
    alone is 0.0.
    """
    stored, size = MEMORY[dtype], dtype.itemsize
    column = [
        f"%sum = getelementptr {stored}, ptr %to, i64 %j",
        f"%at = getelementptr {stored}, ptr %row, i64 %j",
        *_joined_in_memory(kind, dtype, "%sum", "%at", "%sum"),
    ]
    row = [
        f"%first = mul i64 %i, {width}",
        f"%row = getelementptr {stored}, ptr %from, i64 %first",
        *loop("j", str(width), column),
    ]
    group = [
        f"%rows = mul i64 %length, {width}",
        "%start = mul i64 %g, %rows",
        f"%from = getelementptr {stored}, ptr %source, i64 %start",
        f"%out = mul i64 %g, {width}",
        f"%to = getelementptr {stored}, ptr %result, i64 %out",
        f"call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 {width * size}, i1 false)"
        if kind == "add"
        else COPY.format("%to", "%from", width * size),
        *loop("i", "%length", row, first=0 if kind == "add" else 1),
    ]
    return _reduction(name, loop("g", "%count", group))


def _joined_in_memory(kind: str, dtype: np.dtype[Any], first: str, second: str, result: str) -> list[str]:
    """Return the instructions that join two elements. first, second, result: their addresses."""
    stored, size = MEMORY[dtype], dtype.itemsize
    return [
        f"%x = load {stored}, ptr {first}, align {size}",
        f"%y = load {stored}, ptr {second}, align {size}",
        *joined(kind, dtype, stored, "%x", "%y", "%z"),
        f"store {stored} %z, ptr {result}, align {size}",
    ]


def running(name: str, kind: str, dtype: np.dtype[Any], width: int) -> str:
    """Return a function over rows of `width` elements, each joined to the one before it in its column.

    `%count` groups have `%length` rows.
    """
    stored, size = MEMORY[dtype], dtype.itemsize
    element = [
        f"%before = sub i64 %j, {width}",
        f"%at_before = getelementptr {stored}, ptr %to, i64 %before",
        f"%at = getelementptr {stored}, ptr %from, i64 %j",
        f"%at_result = getelementptr {stored}, ptr %to, i64 %j",
        *_joined_in_memory(kind, dtype, "%at_before", "%at", "%at_result"),
    ]
    group = [
        f"%group = mul i64 %length, {width}",
        "%start = mul i64 %i, %group",
        f"%from = getelementptr {stored}, ptr %source, i64 %start",
        f"%to = getelementptr {stored}, ptr %result, i64 %start",
        COPY.format("%to", "%from", width * size),
        *loop("j", "%group", element, first=width),
    ]
    return _reduction(name, loop("i", "%count", group))


def places(name: str, kind: str, dtype: np.dtype[Any], result: str) -> str:
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
    element = [
        f"%at = getelementptr {stored}, ptr %row, i64 %j",
        f"%x = load {stored}, ptr %at, align {size}",
        *better,
        f"%best_now = select i1 %is_better, {stored} %x, {stored} %best",
        "%place_now = select i1 %is_better, i64 %j, i64 %place",
    ]
    carried = {"%place": ("i64", "0", "%place_now"), "%best": (stored, "%first", "%best_now")}
    row = [
        "%start = mul i64 %i, %length",
        f"%row = getelementptr {stored}, ptr %source, i64 %start",
        f"%first = load {stored}, ptr %row, align {size}",
        *loop("j", "%length", element, carried=carried),
        f"%to = getelementptr {result}, ptr %result, i64 %i",
        f"%place_found = {'freeze i64 %place' if result == 'i64' else f'trunc i64 %place to {result}'}",
        f"store {result} %place_found, ptr %to",
    ]
    return _reduction(name, loop("i", "%count", row))


COPY = "call void @llvm.memcpy.p0.p0.i64(ptr {}, ptr {}, i64 {}, i1 false)"
"""The instruction that copies to a pointer, from another one, this number of bytes."""

DECLARED = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\ndeclare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
