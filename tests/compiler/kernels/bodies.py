"""Random bodies of loops: statements on arrays with branches around them, so that several paths become one program of kernels.

A body is `case(s, ways)`: s holds the arrays of `programs.PARAMETERS` and a counter, ways decides branches. Hundreds of
operations make the plan use memory again. Expressions are those of tests.compiler.kernels.programs.
"""

# ruff: noqa: E501  (tables read best by the line)
from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.compiler.kernels.programs import HELPERS, NAMES, PARAMETERS, TABLES, Expressions, operands, rows_of
from tests.compiler.merge.runs import Call, State

SHAPES = (
    (41,),
    (9, 37),
    (12, 12),
    (16, 40),
    (5, 5, 8),
    (3, 3, 3, 9),
    (4, 6, 17),
    (4, 4, 21),
    (1, 20),
    (24, 1),
    (2, 2, 18),
)
"""Axes of equal and of other lengths; rows of more and of fewer elements than a vector and a border have."""

MORE_HELPERS = """
def tame(x, y):
    return np.where(np.abs(x) < x.dtype.type(8), x, y)
def alike(x, y, axis, n):
    return np.concatenate([np.split(y * x.dtype.type(3) - x, [n], axis)[0], np.split(x * x.dtype.type(3) - y, [n], axis)[1]], axis)
def bordered(x, y, axis, n):
    return np.concatenate([np.split(x, [n], axis)[0], np.split(y, [n], axis)[1]], axis)
def cornered(x, y):
    return sum(bordered(x, y, axis, 1) * x.dtype.type(axis + 1) for axis in range(x.ndim))
def thrice(x, y, axis):
    n = x.shape[axis] // 3
    one, two = (x * y + x, y * x + y)
    return np.concatenate([np.split(one, [n], axis)[0], np.split(two, [n, 2 * n], axis)[1], np.split(one, [2 * n], axis)[1]], axis)
def around(x, y, n):
    for _ in range(n):
        x = np.roll(x, 1, -1) - np.roll(x, -1, -1) + y
    return x
def spread(x, y, n):
    for k in range(n):
        x = np.roll(x, 1, 0) * x.dtype.type(2) - np.roll(y, k, -1)
        y = np.roll(x, -1, 0) - y
    return x
def laplacian(x):
    return np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, -1) + np.roll(x, -1, -1) - x * x.dtype.type(4)
def walled(x, y):
    z = laplacian(x)
    z[0] = z[len(z) // 2]
    z[-1] = y[-1] * x.dtype.type(2)
    z[..., 0] = z[..., -1]
    return z
def framed(x, y):
    one, two = x + y, x - y
    z = one.copy()
    z[0] = two[-1]
    z[1:-1] = np.roll(two, 1, -1)[1:-1]
    z[..., -1] = one[..., 0]
    return z
def crossed(x, y):
    return x.T + y if x.shape == x.shape[::-1] else np.flip(x) + y
def outer(x, y):
    return x[:1] * y[..., :1] - y[-1:] + x[..., -1:] + y
def ordered(x, y):
    low, high = np.minimum(x, y), np.maximum(x, y)
    low -= high
    np.add(low, y, out=high)
    return high
def gathered(x, y, i):
    z, at = y.copy(), np.abs(i.ravel()[: len(x)]) % len(x)
    np.add.at(z, at, x)
    return np.take(x, at, axis=0) - z
def settled(x, y):
    x = np.clip(np.nan_to_num(x), -8, 60)
    while x.max() > 1:
        x = np.roll(x, 1, -1) / 2
    return x + y
def longer(x, y):
    for _ in range(20):
        x, y = tame(np.roll(x, 1, -1) - y, y), x
    return x
def chained(x, y):
    z, last = x.copy(), y[0]
    for k in range(1, len(x)):
        z[k] = z[k - 1] - y[k] * last
        last = x[k].copy()
    return z + last
def summed(x, y):
    return np.cumsum(x, axis=0) - np.cumsum(y, axis=-1) + x.sum(axis=-1, keepdims=True)
"""

MORE = """
bordered({x} + {y}, {x}, A, 1) | bordered({x} * {x}.dtype.type(3), {y}, A, 1) | bordered({x}, tame({y}, {x}), A, -1) | bordered({y}, {x}, A, 1) | cornered({x}, {y}) | {x} * {x}.dtype.type(3) | {x} + {y} | tame({x} - {y}, {y})
alike({x}, {y}, A, 1) | alike({x}, {y}, A, -1) | alike({x}, {y}, -1, 1) | thrice({x}, {y}, A) | around({x}, {y}, 3) | spread({x}, {y}, 2) | laplacian({x}) + {y} | walled({x}, {y})
framed({x}, {y}) | crossed({x}, {y}) | outer({x}, {y}) | ordered({x}, {y}) | gathered({x}, {y}, {i}) | {x} * {y} + {x} | {x} - {y} * {x} | np.where({m}, laplacian({x}), laplacian({y})) | settled({x}, {y}) | longer({x}, {y}) | chained({x}, {y}) | summed({x}, {y})
"""

WRITES = """
V[0] = {x}[-1] | V[..., 0] = {x}[..., -1] | V[1:] = {x}[:-1] | V += {x} | V -= np.roll({x}, 1, axis=-1) | np.add({x}, {y}, out=V) | np.subtract(V, {x}, out=V) | V[...] = {x}
V[::2] = {x}[::2] * V.dtype.type(2) | V[{m}] = V.dtype.type(1) | V[-1] += {x}[0] | V.T[0] = {x}.T[-1] | np.multiply({x}[1:], V[:-1], out=V[1:]) | V[1:-1] -= {x}[1:-1] | V = V[::-1]
V = W | V, W = W, V | V[..., 1:-1] = {x}[..., 2:] - {x}[..., :-2] | V[..., :3] = W[..., -3:] | np.copyto(V, {x}, where={m}) | z = V[1:]; z += {x}[:-1] | s.a = a * 1 | s.b[0] = b[-1] | W = V.copy()
"""

CONDITIONS = """
ways[N] > 0.0 | ways[N] > 0.0 | ways[N] > 0.0 | ways[N] > 0.0 and ways[N] < 2.0 | s.steps % 2 == 0 | s.steps % 3 == 1 | {d}.ravel()[0] > 0.1 | np.any({d} > 1.9) | np.count_nonzero({m}) % 2 == 0 | {i}.ravel()[-1] > 0
""".replace("{m}", "m")

RESULTS = "{d} | {d} | {d}.T | {f} | {i} | {m} | {u} | {d}[0] | {d}.sum(axis=-1) | {d}[..., ::2] | {d}.max(axis=0) + 0 | {i}.sum() | ({d} > {d}).any() | np.stack([{d}, {d}])"

_WRITES, _CONDITIONS, _RESULTS = rows_of(WRITES), rows_of(CONDITIONS), rows_of(RESULTS)
_NAMES = {kind: [*names, *(f"{name}{at}" for name in names[:2] for at in range(3))] for kind, names in NAMES.items()}
_TABLES = {
    kind: [each for each in table if "scattered" not in each] + rows_of(MORE) * 3 * (kind in "df")
    for kind, table in TABLES.items()
}
"""Assignments through indices that repeat are not recorded."""


class Writer:
    """Writes one body. draw: the source of all choices. size: number of statements."""

    def __init__(self, draw: random.Random, shape: tuple[int, ...], size: int) -> None:
        self._draw, self._left = draw, size
        self._expressions = Expressions(draw, shape, _NAMES, _TABLES)
        # some programs are of one kind of number, others of many
        self._kinds = draw.choice(("d", "d", "dddf", "ddddffiiuswm"))
        self._lines: list[str] = []

    def program(self) -> str:
        """The body's source."""
        self._lines = [HELPERS, MORE_HELPERS, "def case(s, ways):"]
        self._lines += [f"    {name} = s.{name[0]}" for names in _NAMES.values() for name in names]
        self._lines.append("    s.steps += 1")
        while self._left > 0:
            self._statement(1)
        for name in self._draw.sample(PARAMETERS, 3):
            changed = self._draw.choice(("s.{0} = {0}", "s.{0}[...] = {0}", "s.{0} = {0} * 1"))
            self._add(1, changed.format(name))
        self._add(1, f"return {self._results()},")
        return "\n".join(self._lines)

    def _add(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _results(self) -> str:
        return ", ".join(self._filled(self._draw.choice(_RESULTS), "d") for _ in range(self._draw.randint(2, 6)))

    def _filled(self, template: str, kind: str, depth: int = 1) -> str:
        return self._expressions.filled(template, kind, depth)

    def _statement(self, depth: int) -> None:
        self._left -= 1
        draw = self._draw
        if draw.random() < 0.14 and depth < 4:
            self._branch(depth)
            return
        kind = draw.choice(self._kinds)
        name, other = draw.choice(_NAMES[kind]), draw.choice(_NAMES[kind])
        if draw.random() < 0.25 and kind != "m":
            line = self._filled(draw.choice(_WRITES).replace("W", other), kind)
            self._add(depth, line.replace("V", name))
            return
        text = self._filled(draw.choice(_TABLES[kind]), kind, draw.choice((1, 2, 3)))
        if kind == "m":
            text = f"({text}) | ({draw.choice(NAMES['d'])} > 7.0)"
        elif kind in "df" and draw.random() < 0.7:
            text = f"tame({text}, s.{draw.choice(NAMES[kind])})"
        self._add(depth, f"{name} = {text}")

    def _branch(self, depth: int) -> None:
        draw = self._draw
        self._add(depth, f"if {self._filled(draw.choice(_CONDITIONS), 'd').replace('N', str(draw.randrange(4)))}:")
        at = len(self._lines)
        for _ in range(draw.randint(1, 4)):
            self._statement(depth + 1)
        ending = draw.random()
        if ending < 0.1:
            self._add(depth + 1, f"return {self._results()},")
        elif ending < 0.6:
            same = [
                line
                for line in self._lines[at:]
                if line.startswith("    " * (depth + 1)) and line[4 * depth + 4] != " "
            ]
            self._add(depth, "else:")
            if draw.random() < 0.4:  # an equal statement on both sides
                self._lines += [line for line in same[:1] if not line.rstrip().endswith(":")]
            for _ in range(draw.randint(1, 3)):
                self._statement(depth + 1)


def random_body(draw: random.Random, shape: tuple[int, ...]) -> str:
    """The source of a body."""
    return Writer(draw, shape, draw.choice((8, 20, 40, 60))).program()


def body_of(source: str) -> Callable[..., Any]:
    """The function that a source defines."""
    namespace: dict[str, Any] = {"np": np, "__name__": "bodies"}
    exec(compile(source, "<bodies>", "exec"), namespace)
    return namespace["case"]  # type: ignore[no-any-return]


def body_calls(shape: tuple[int, ...], seed: int, count: int) -> Iterator[Call]:
    """Arguments of calls, with a state of its own for each."""
    for number in range(count):
        draw = np.random.default_rng([seed, number])
        arrays = dict(zip(PARAMETERS, operands(shape, int(draw.integers(2**30))), strict=True))
        yield State(**arrays, steps=int(draw.integers(6))), draw.choice([-1.0, 1.0], size=4)
