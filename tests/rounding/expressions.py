"""Random expressions of arithmetic that NumPy rounds in one way, and operands that lie on its edges.

A template's field is a kind of value: `d` float64, `f` float32, `i` whole numbers, `m` truths. Fields `x` and `y` have
the template's own kind, and the same text wherever they stand. `C` is a constant, `N` a small whole number.
"""

# ruff: noqa: E501  (tables read best by the line)
from __future__ import annotations

import ast
import random
import re
from typing import Any

import numpy as np

SIZE = 67
"""Elements of each operand: whole vectors of any instruction set, and a rest."""

ARITHMETIC = """
{x} + {y} | {x} - {y} | {x} * {y} | {x} / {y} | {x} + {y} | {x} - {y} | {x} * {y} | {x} / {y} | {x} * {x} | np.sqrt({x})
np.sqrt(np.abs({x})) | np.abs({x}) | -{x} | np.minimum({x}, {y}) | np.maximum({x}, {y}) | np.where({m}, {x}, {y})
np.where({x} > {y}, {x}, {y}) | {x} + {C} | {x} - {C} | {C} - {x} | {x} * {C} | {x} / {C} | {C} / {x} | {x} * s | {x} / s | s - {x}
({x} + 1e16) - 1e16 | ({x} + 6755399441055744.0) - 6755399441055744.0 | {x} * 0.1 * 0.3 | {x} / 3.0 | {x} * (1 / 3.0)
({x} + {y}) - {y} | {x} - ({x} - {y}) | {x} * {y} / {y} | {x} / {y} * {y} | {x} * {C} * {C} | {x} / {C} / {C} | {x} * {y} - {y} * {x}
{x} * {y} - {f} * {f} | {x} * {x} - {y} * {y} | {x} * {y} + {x} | {x} - {y} * {y} | {x} ** 2 | np.square({x}) | 1 / {x}
np.floor({x}) | np.ceil({x}) | np.trunc({x}) | np.rint({x}) | np.sign({x}) | np.copysign({x}, np.nan_to_num({y})) | np.reciprocal({x})
np.roll({x}, 1) | np.roll({x}, -2) | {x}[::-1] | np.concatenate(({x}[2:] - {x}[:-2], {y}[:2])) | np.roll({x}, 1) + {x} + np.roll({x}, -1)
np.append({x}[1:] * {y}[:-1] - {x}[:-1] * {y}[1:], s) | {x} * {m} | {x} + {m} | np.clip({x}, -1.0, 3.0) | np.clip({x}, None, s)
"""

DOUBLE = """
{f}.astype(np.float64) | {i}.astype(np.float64) | {x} + {f} | {x} * {f} | {x} + {i} | {x} * {i} | {i} / {i} | {i} * 0.1
{x}.astype(np.float32).astype(np.float64) | {x}.astype(np.float16).astype(np.float64) | np.sqrt({i})
"""

SINGLE = """
{d}.astype(np.float32) | {i}.astype(np.float32) | {x}.astype(np.float16).astype(np.float32) | np.float32(0.1) * {x}
"""

WHOLE = """
{x} + {y} | {x} - {y} | {x} * {y} | {x} + {N} | {x} * {N} | {x} // {N} | {x} % {N} | {x} & {y} | np.bitwise_or({x}, {y}) | {x} ^ {y} | {x} << 3 | {x} >> 2
np.abs({x}) | -{x} | ~{x} | np.minimum({x}, {y}) | np.maximum({x}, {y}) | np.where({m}, {x}, {y}) | {x}.astype(np.int32) | {x}.astype(np.uint8)
{x}.astype(np.int8).astype(np.int64) | {m}.astype(np.int64) | np.clip(np.nan_to_num({d}), -1e9, 1e9).astype(np.int64) | {x} ** 2
np.clip(np.nan_to_num({f}), -1e6, 1e6).astype(np.int32) | np.floor(np.clip(np.nan_to_num({d}), -1e6, 1e6)).astype(np.int64) | np.roll({x}, 3)
{x} // {y} | {x} % {y}
"""

TRUTHS = """
{d} > {d} | {d} >= {d} | {d} == {d} | {d} != {d} | {d} < {C} | {f} > {f} | {f} <= {f} | {f} == {f} | {i} > {i} | {i} == {N} | {d} > {f} | {d} < {i}
{d} * {d} - {d} * {d} > 0 | {d} * {d} - {d} * {d} == 0 | {m} & {m} | np.logical_or({m}, {m}) | ~{m} | {m} ^ {m} | np.isnan({d}) | np.isfinite({d}) | np.signbit(np.nan_to_num({d}))
{d} / 3.0 == {d} * (1 / 3.0) | {d} - {d} >= {C} | np.isinf({f})
"""

TOPS = """
np.sqrt({d} * {d} - {d} * {d}) | 1 / ({d} * {d} - {d} * {d}) | np.floor({d} * {d} - {d} * {d}) | {d} * {d} - {d} * {d} > 0
np.sqrt({f} * {f} - {f} * {f}) | 1 / ({f} * {f} - {f} * {f}) | np.floor({d} / {C}) | np.count_nonzero({m}) | ({m}).sum() | ({m}).any()
({d}).max() > 1.0 | ({d}).min() < s | np.isnan({d}).sum() | ({i}).max() | ({m}).argmax() | np.count_nonzero({d}) | ({i}).sum()
"""

LOOSE = """
np.log(np.abs({d})) | np.log({d} * {d} - {d} * {d}) | np.arccos({d}) | np.arccos({d} / {d}) | np.log(np.abs({f})) | np.exp({d} - {d})
"""
"""The last bits depend on the library: only at the top, and compared by their kind."""

CONSTANTS = "3.0 0.1 0.3 0.7 7.0 2.0 0.5 1.0 -1.0 0.0 -0.0 1e16 (1/3.0) 6755399441055744.0 1e-3 1e10 49.0 1e300 1e-300 np.inf np.pi 3 10".split()
NAMES = {"d": "a b c d e".split(), "f": "f g h".split(), "i": "i j k u".split(), "m": "m n".split()}
PARAMETERS = [name for names in NAMES.values() for name in names] + ["s"]


def _rows(*tables: str) -> list[str]:
    return [part.strip() for table in tables for line in table.strip().splitlines() for part in line.split(" | ")]


TABLES = {
    "d": _rows(ARITHMETIC.replace("{f}", "{d}"), DOUBLE),
    "f": _rows(ARITHMETIC, SINGLE),
    "i": _rows(WHOLE),
    "m": _rows(TRUTHS),
    "top": _rows(TOPS),
    "loose": _rows(LOOSE),
}
KINDS = ("d",) * 9 + ("f",) * 4 + ("i",) * 2 + ("m",) * 2 + ("top",) * 4


def random_expression(draw: random.Random, kind: str | None = None, depth: int = 4) -> str:
    """An expression of a kind, with templates in templates down to a depth."""
    kind = kind or draw.choice(KINDS)
    if depth <= 0 or (kind in NAMES and draw.random() < 0.25 and depth < 4):
        return draw.choice(NAMES[kind])
    shared: dict[str, str] = {}

    def filled(field: re.Match[str]) -> str:
        name = field[1]
        if name == "C":
            return draw.choice(CONSTANTS)
        if name == "N":
            return str(draw.randint(1, 9))
        if name in shared:
            return shared[name]
        text = random_expression(draw, kind if name in "xy" else name, depth - draw.choice((1, 1, 2, 3)))
        text = text if len(text) == 1 else f"({text})"
        return shared.setdefault(name, text) if name in "xy" else text

    return re.sub(r"\{(\w)\}", filled, draw.choice(TABLES[kind]))


def parts_of(text: str) -> list[str]:
    """The expression and all that is computed in it, the shortest first."""
    computed = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Subscript)
    nodes = [node for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, computed)]
    return sorted({ast.unparse(node) for node in nodes}, key=len)


def operands_of(text: str) -> list[str]:
    """The operands that an expression reads."""
    return sorted({node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)} - {"np"})


# -- operands ----------------------------------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.1, 0.3, 1 / 3, 3.0, 1e16, 2.0**53 + 2]
EXTREMES = {
    np.float64: [1.7e308, -1e300, 1e160, 1e-160, 1e-300, -3e-308, 2.0**-1022, 2.5],
    np.float32: [3e38, -1e36, 1e20, 1e-20, 1e-36, -2e-38, 2.0**-126, 2.5],
}


def _floats(rng: np.random.Generator, dtype: Any, earlier: list[np.ndarray]) -> np.ndarray:
    """Random numbers, one of five on an edge, and two of five equal to what an earlier operand has there."""
    values = rng.choice([1.0, 1.0, 10.0, 1e-3, 1e8], SIZE) * rng.normal(size=SIZE)
    coarse = rng.integers(-40, 41, SIZE) / rng.choice([1.0, 8.0, 10.0], SIZE)
    edges = rng.choice(SPECIAL + EXTREMES[dtype], SIZE)
    which = rng.random(SIZE)
    values = np.where(which < 0.2, edges, np.where(which < 0.4, coarse, values)).astype(dtype)
    if earlier and rng.random() < 0.8:
        values = np.where(rng.random(SIZE) < 0.5, earlier[rng.integers(len(earlier))], values)
    return values


def operands(seed: int) -> tuple[Any, ...]:
    """Fresh operands, in the order of PARAMETERS."""
    rng = np.random.default_rng(seed)
    found: list[Any] = []
    for dtype, kind in ((np.float64, "d"), (np.float32, "f")):
        made: list[np.ndarray] = []
        for _ in NAMES[kind]:
            made.append(_floats(rng, dtype, made))
        found += made
    i = rng.integers(-20, 20, SIZE)
    j = np.where(rng.random(SIZE) < 0.2, rng.choice([2**63 - 1, -(2**63), 2**53 + 1, 2**31], SIZE), i)
    found += [i, j, rng.integers(-(2**31), 2**31, SIZE).astype(np.int32), rng.integers(0, 256, SIZE).astype(np.uint8)]
    found += [rng.random(SIZE) < 0.5, found[0] > found[1]]
    return (*found, float(rng.choice([0.1, 3.0, -7.3, 1e10])))
