"""Random programs: some twenty lines of NumPy on a few arrays, with views, in-place writes, masks, branches, loops.

All numbers are small multiples of 1/64, kept so by rounding and clipping, so that sums and products are exact and a
comparison never hangs on the last digit. Nor does rounding: halves, which a mean of 24 numbers may leave, are moved off
the tie first. And no function tells the zeros apart, whose sign may differ.
"""

# ruff: noqa: E501  (tables read best by the line)
from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

ROWS, COLUMNS = 4, 6

PARAMETERS = ("a0", "a1", "r0", "i0", "m0", "s0", "n0")
"""What a program is called with: arrays (4, 6) of floats, a row, whole numbers, truths, a float and an int."""

TIDY = "np.clip(np.round(({}) * 64.0000001) / 64, -64, 64)"

FLOATS = """
{a} + {b} | {a} - {b} | {a} * 0.5 | -{a} | np.abs({a}) | np.where({m}, {a}, {b}) | np.where({a} > {b}, {a}, {s})
np.maximum({a}, {b}) | np.minimum({a}, {r}) | {a} + {r} | {a} - {r} | {a}[::-1] | {a}[:, ::-1] + {b} | {a}.copy()
np.roll({a}, 1, axis=0) | np.roll({a}, -2, axis=1) | np.floor({a}) | np.rint({a}) | np.trunc({a}) | {i}.astype(float)
np.concatenate([{a}[1:], {b}[:1]]) | np.flip({a}, 1) | {a}[[3, 0, 1, 2]] | {a}[{p}] | np.clip({a}, -8, 8)
np.clip({a}, {s}, None) | np.stack([{r}, {r}, {r} + 1, {r}]) | np.sort({a}, axis=1) | np.sort({a}, axis=0) | {a} % 4
{a} // 2 | np.fmod({a}, 3) | {a}.T.copy().T | {a} * {m} | {a} + {i} | np.zeros_like({a}) | np.full_like({a}, {s})
np.broadcast_to({r}, (4, 6)) + {a} | np.tile({r}, (4, 1)) | np.negative({a}, out={b}.copy()) | {a} - {a}.mean()
np.diff({a}, axis=1, prepend=0.0) | np.diff({a}, axis=0, append={a}[:1]) | {a} + {s} | np.sign({a}) | {a} ** 2
np.nan_to_num({a} / {b} ** 2) | np.sqrt(np.abs({a})) | np.sin({a}) | np.exp(np.minimum({a}, 2)) | np.arctan2({a} + ({a} == 0), {b})
np.cumsum({a}, axis=1) | np.add.accumulate({a}, axis=0) | {a} * {b} | {a} * {r} | np.outer({r}[:4], {r}) | {a} @ np.eye(6)
np.gradient({a}, axis=0) | np.gradient({a}, 0.5, axis=1) | np.einsum("ij,ij->ij", {a}, {b}) | np.hypot({a}, {b})
np.take_along_axis({a}, np.argsort({b}, axis=1, kind="stable"), axis=1) | np.select([{m}, {a} > 1], [{b}, {a}], {s})
np.tril({a}) | np.triu({a}, 1) | np.pad({a}, 1)[1:-1, 1:-1] | np.pad({a}, 1, mode="edge")[2:, 2:] | np.repeat({r}[None], 4, axis=0)
np.take({a}, {p}, axis=0) | {a}.reshape(6, 4).T | {a}.ravel()[::-1].reshape(4, 6) | np.interp({a}, [-4.0, 0.0, 4.0], [0.0, 1.0, 8.0])
np.moveaxis({a}[None], 0, 2)[:, :, 0] | np.square({a}) | np.choose({i} % 2, [{a}, {b}]) | np.convolve({r}, [1.0, 2.0, 1.0], "same") + {a}
"""
"""Quotients are by squares: the sign of a sorted zero (a known difference) would be that of an infinity."""

ROW_VALUES = """
{a}[0] | {a}[-1] + 1 | {a}.sum(axis=0) | {a}.max(axis=0) | {a}.min(axis=0) | np.median({a}, axis=0) | {r} + {r} | {r}[::-1]
{a}[{n}] | {a}.mean(axis=0) | np.where({m}[1], {r}, 0.0) | np.sort({r}) | np.cumsum({r}) | {a}[1:3].sum(axis=0) | {r} * {s}
{a}[{n}] + {a}[{n}] | {a}[{k}:{k} + 2].sum(axis=0) | {a}[{n}:{n} + 2].max(axis=0, initial=0) | {a}[{n}, ::-1] | {a}[{n}, {n}] * {r}
np.percentile({a}, 25, axis=0) | np.average({a}, axis=0) | np.nanmax({a}, axis=0) | np.ptp({a}, axis=0) | {r}.copy()
"""

MASKS = """
{a} > {b} | {a} <= {r} | {m} & {m} | {m} | ~{m} | {a} == {b} | np.isfinite({a}) | np.logical_xor({m}, {a} > 0) | {i} > 3 | {a} != 0
{a} >= {s} | np.isclose({a}, {b}) | ~{m} | np.isin({i}, [1, 2, 5])
"""

WHOLE = """
{i} + 1 | {i} * 2 - {i} | {i} // 3 | {i} % 5 | np.argsort({a}, axis=1, kind="stable") | {m}.astype(int) | np.arange(24).reshape(4, 6)
np.clip({i}, 0, 9) | {i} ^ 3 | {i} & 5 | {i} << 1 | {i} >> 1 | np.where({m}, {i}, 0) | np.digitize({a}, [-1.0, 0.0, 2.0]) | {i}[::-1]
np.searchsorted([-2.0, 0.0, 1.0], {a}) | np.floor({a}).astype(int) | np.cumsum({m}, axis=1)
"""

SCALARS = """
float({a}.max()) | {a}[1, 2] | {a}.sum() | {s} + 1 | max({s}, 0.5) | min({s}, 2.0) | float({r}[0]) | {a}[{m}].sum() | {s} * 0.5 | abs({s})
{a}[{n}, {n}] | {r}[{n}] | {a}[{n}].sum() | {r}[{k}:{k} + 2].sum() | {a}[{k} - 1:{k} + 2, {n}].sum() | {a}.item({n}, {n})
np.median({a}) | {r}.min() | float({n}) | {i}.max() | {m}.sum() | np.count_nonzero({m}) | {a}[{m}].size
"""

NUMBERS = """
({n} + 1) % 4 | int({i}.max()) % 4 | {i}[1, 2] % 4 | int({a}.argmax()) % 4 | {i}[{n}, {n}] % 4 | int({n}) % 4 - 4 | np.int8({n}) | {i}[{n}].max() % 4
int(np.argmin({r})) % 4 | int({s}) % 4 | {m}.sum() % 4 | np.uint8({n} % 4) | max({n}, 1) | ({n} * {n}) % 4 | int({m}[{n}, 0]) | -(int({n}) % 4)
"""
"""Indices: from -4 to 3, the length of the shorter axis."""

CHANGES = """
{a} += {b} | {a} -= {r} | {a} *= 0.5 | {a}[{m}] = 0 | {a}[{m}] += 1 | {a}[{a} > {b}] = {s} | {a}[1:] = {b}[:-1] | {a}[:, 0] = {r}[:4]
{a}[...] = {r} | {a}[0] += {r} | {a}[:, ::2] -= 1 | np.copyto({a}, {b}, where={m}) | np.clip({a}, -4, 4, out={a}) | {a}[{p}] = {b}
np.putmask({a}, {m}, {b}) | {a}.fill({s}) | np.add({a}, {b}, out={a}, where={m}) | {a}[{m}] = {b}[{m}] | {a}[[0, 2]] = {r} | {a}.T[0] = 2
{a}[2, 3] = {s} | {a}[-1, 1:3] *= 2 | {a}[::-1] += {b} | np.maximum({a}, {r}, out={a}) | {a}.sort(axis=1) | {r} += 1 | {r}[1:4] = {s}
{r}[::2] *= -1 | {i} += 1 | {i}[{m}] = 0 | {m}[0] = True | {m} &= {a} > 0 | np.fill_diagonal({a}, {s}) | {a}[{i} > 2] = -1
np.place({a}, {m}, [1.0, 2.0]) | np.add.at({a}, [0, 1, 1], {r}) | np.put({a}, [0, 5], [1.0, 2.0]) | {a}[1:3, 1:3] = {b}[:2, :2]
{a}[{n}, {n}] = {s} | {a}[{n}] += {r} | {a}[{k}:{k} + 2] *= 0.5 | {r}[{k}:{k} + 3] -= 1 | {i}[{n}] ^= 1 | {m}[{n}, {n}] = False | {a}[{n}, ::2] += 1
{a}[{n}, {k}:{k} + 2] = {b}[{n}, {k}:{k} + 2] | {a}[{n}, {p}] = {r}[:4] | {a}[{p}, {n}] = {r}[2:] | {a}[:, {n}][{k}:{k} + 2] = 1 | {a}[{n}, {m}[0]] = 0
{a}[{n}] = {a}[{n}] | {r}[{n}] += {r}[{n}] | {r}[:] = {a}[{n}] | np.add({a}[{n}], {r}, out={a}[{n}]) | {a}[{n}], {a}[{n}] = {a}[{n}], {b}[{n}]
{a}[{k}:{k} + 2] = {a}[{k}:{k} + 2][::-1] | {a}[{n}][{n}] -= {s} | {a}[{n}, None] = {r} | {a}.T[{n}] += {r}[:4] | {i}[{n}, {n}] += 1
{a}[{n}] = {b}[{n}] | {a}[:, {n}] -= {s} | np.nan_to_num({a}, copy=False) | np.subtract({a}, {b}, {a})
"""

VIEWS = "{a}[:] | {a}[:, :] | {a}.reshape(4, 6) | {a}.T.T | {a}[0:4] | np.asarray({a}) | {a}.view() | np.reshape({a}.ravel(), (4, 6))"
ROW_VIEWS = "{a}[{n}, :] | {a}[{n}][::-1] | {a}[{n}, None][0] | {a}.T[:, {n}] | {a}[{k}:{k} + 2][0] | {a}[0] | {a}[-1] | {a}[{n}] | {r}[:] | {a}.T[:, 1] | np.ravel({a})[6:12]"

TESTS = "{s} > 0 | np.any({m}) | {a}.max() > 2 | {n} > 1 | ({a} > 1).all() | {a}[0, 0] < {a}[1, 1] | {m}[1, 1] | not {m}.any()"


def _rows(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split(" | ")]


TABLES = {
    name: _rows(text)
    for name, text in {
        "a": FLOATS,
        "r": ROW_VALUES,
        "m": MASKS,
        "i": WHOLE,
        "s": SCALARS,
        "n": NUMBERS,
        "change": CHANGES,
        "view": VIEWS,
        "row view": ROW_VIEWS,
        "test": TESTS,
    }.items()
}

KINDS = ("a", "a", "a", "a", "change", "change", "change", "r", "m", "i", "s", "n", "view", "row view", "if", "for")


class Writer:
    """Writes one program, line by line. draw: gives a whole number below its argument."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self._names = {"a": ["a0", "a1"], "r": ["r0"], "i": ["i0"], "m": ["m0"], "s": ["s0"], "n": ["n0"]}
        self._count = 2

    def program(self, lines: int) -> str:
        body = [text for _ in range(lines) for text in self._line("    ")]
        kept = {kind: names[-3:] for kind, names in self._names.items()}
        result = ", ".join(name for names in kept.values() for name in names)
        return "\n".join([f"def case({', '.join(PARAMETERS)}):", *body, f"    return {result}", ""])

    def _pick(self, choices: Any) -> Any:
        return choices[self._draw(len(choices))]

    def _filled(self, template: str) -> str:
        text = template
        for kind in ("a", "b", "r", "m", "i", "s", "n", "k"):
            names = self._names[{"b": "a", "k": "n"}.get(kind, kind)]
            while "{" + kind + "}" in text:  # an array named twice is the same; a second one may be another
                text = text.replace("{" + kind + "}", self._pick(names), -1 if kind in "ak" else 1)
        return text.replace("{p}", "[2, 0, 3, 1]")

    def _line(self, indent: str) -> list[str]:
        kind = self._pick(KINDS)
        if kind == "if":
            return self._block(indent, f"if {self._filled(self._pick(TABLES['test']))}:", 2)
        if kind == "for":
            return self._block(indent, "for step in range(3):", 1)
        if kind == "change":
            return [indent + self._filled(self._pick(TABLES["change"]))]
        made = {"view": "a", "row view": "r"}.get(kind, kind)
        text = self._filled(self._pick(TABLES[kind]))
        if kind in ("a", "r"):
            text = TIDY.format(text)
        elif kind == "i":
            text = f"({text}) % 64"
        elif kind == "s":
            text = f"float({TIDY.format(text)})"
        return [indent + f"{self._new(made, indent)} = {text}"]

    def _new(self, kind: str, indent: str) -> str:
        """A new name; inside a block one that exists already."""
        if indent != "    ":
            return self._pick(self._names[kind])
        name = f"{kind}{self._count}"
        self._count += 1
        self._names[kind].append(name)
        return name

    def _block(self, indent: str, head: str, lines: int) -> list[str]:
        inner = [text for _ in range(lines) for text in self._flat(indent + "    ")]
        return [indent + head, *inner]

    def _flat(self, indent: str) -> list[str]:
        """A line that is no block."""
        made = self._line(indent)
        return made if len(made) == 1 else [indent + "pass"]


@st.composite
def programs(draw: Any, lines: int = 20) -> str:
    return Writer(lambda count: draw(st.integers(0, count - 1))).program(lines)


def inputs(seed: int) -> tuple[Any, ...]:
    """Fresh arguments of a program."""
    rng = np.random.default_rng(seed)

    def floats(*shape: int) -> Any:
        return rng.integers(-256, 257, shape) / 64

    return (
        floats(ROWS, COLUMNS),
        floats(ROWS, COLUMNS),
        floats(COLUMNS),
        rng.integers(0, 10, (ROWS, COLUMNS)),
        rng.integers(0, 2, (ROWS, COLUMNS)).astype(bool),
        float(floats(1)[0]),
        int(rng.integers(0, 4)),
    )
