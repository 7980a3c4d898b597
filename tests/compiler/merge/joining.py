"""Random programs whose branches join again, with what may make a difference behind a join that no operation shows.

Flags, counts, texts and lists; variables of one side; arrays that are one or two, views and writes through them; values
that only a caller holds in the middle of a statement; helpers that return early; loops over what the program changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.compiler.merge.runs import Call, State

SHAPE = (5, 4)

PLAIN = (
    "x = np.sin(x) + y", "y = x * 0.9", "z = np.cos(y)", "x = y - z", "y = y - y.mean()", "z = x[::-1] * 0.7",
    "x = x * k", "y = y + s.u", "x = x + s.k", "k = k * 0.5 + 0.1", "k = float(x[0, 0]) * 0.1", "k = s.k",
    "x = np.where(x > y, x, y)", "y = np.clip(y, -1.0, 1.0)", "x = x * factor", "z = np.sin(a)",
)  # fmt: skip

WRITES = (
    "x += 1.0", "y *= 0.5", "z -= x", "x[0] = y[1]", "w = x[1:3]", "w = y[1:3]", "w += 0.25", "w = w * 2.0",
    "a[1] = 0.5", "b *= 0.9", "s.u = x * 0.5", "s.v[0] = y[0]", "s.k = k + 0.1", "s.k = s.k * 0.5", "s.made = z",
    "s.last = float(y.max())", "s.u = z", "s.v = s.u",
)  # fmt: skip

STATE = (
    "count += 1", "count = count + 1", "flag = not flag", "flag = True", "mode = 'b'", "mode = 'a'", "extra = None",
    "extra = x", "extra = y", "kept.append(x)", "kept.append(y)", "kept = []", "kept[0] = y", "factor = 0.5",
    "factor = 1.5", "z = x", "z = y", "x = z", "x, y = y, x", "x = a", "y = s.u", "pair = (x, y)", "pair = (y, x)",
    "more = {'one': x}", "more = {'one': y}", "first = lambda v: v + z", "first = lambda v: v - z", "k = 2.0",
)  # fmt: skip

USES = (
    "x = x * (count + 1)", "x = x + 1.0 if flag else x - 1.0", "y = y * 2.0 if mode == 'b' else y",
    "x = x + 100.0 if count == 2 else x", "x = x if extra is None else x + extra", "y = y + sum(kept)",
    "x = x + len(kept)", "x = pair[0] * 0.5 + pair[1]", "y = more['one'] + y", "x = first(x)",
    "y = y + kept[0]",
)  # fmt: skip

CALLS = (
    "x = one(x, y, c({}))", "x = y + one(x, y, c({}))", "x, y = two(x, y, c({}))",
    "y = one(one(x, y, c({})), x, c({}))",
    "x = x * k + one(x, z, c({})) * k", "x = one(z, x, c({}))", "kept.append(one(x, y, c({})))",
    "y = [x, y][1] - one(y, x, c({}))", "x = max(k, s.k) * three(x, y, k, c({}))", "k = k + four(k, c({}))",
    "x = s.u + one(s.u, y, c({}))", "y = x + sum(one(v, y, c({})) for v in (x, z))",
)  # fmt: skip

HELPERS = """
def one(p, q, c):
    if c:
        return p
    return p * 0.5 + q

def two(p, q, c):
    r = p
    if c:
        r = q + 1.0
    p = np.cos(p)
    return r, p

def three(p, q, k, c):
    if c:
        p *= 0.5
        k = k + 1.0
    elif k > 0.3:
        p = q
    return p * k

def four(k, c):
    if c:
        k = k * 0.25
    return k
"""


class Joining:
    """Writes one program: `case(s, a, b, t)`; t decides the branches. draw: the source of all choices."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._lines: list[str] = []

    def program(self) -> str:
        """The program's source."""
        start = "x = a * 0.5|y = b + s.u|z = x|w = y[1:3]|k = s.k|factor = 1.0"
        if self._draw.random() < 0.3:
            start = start.replace("x = a * 0.5", "x = a").replace("b + s.u", "s.u")
        start += "|count = 0|flag = False|mode = 'a'|extra = None|kept = [x]|pair = (x, y)|more = {'one': x}"
        start += "|first = lambda v: v|c = lambda i: t[i] > 0.0"
        self._lines = [HELPERS, "def case(s, a, b, t):", *(f"    {line}" for line in start.split("|"))]
        # most programs use but a few of what they could: else no two joins are alike
        self._state = self._draw.sample(STATE, self._draw.choice((0, 1, 2, 4)))
        self._writes = self._draw.sample(WRITES, self._draw.choice((0, 1, 3)))
        self._uses = self._draw.sample(USES, 3)
        for _ in range(self._draw.randint(4, 7)):
            self._statement(1)
        self._add(1, self._draw.choice(self._uses))
        self._add(1, "return " + self._draw.choice(("x", "x, y", "x + y", "(x, y, z, k)", "[x, float(y.sum())]", "y")))
        return "\n".join(self._lines)

    def _add(self, depth: int, line: str) -> None:
        while "{}" in line:
            line = line.replace("{}", str(self._draw.randrange(6)), 1)
        self._lines.append("    " * depth + line)

    def _simple(self, depth: int) -> None:
        tables = [PLAIN, PLAIN, PLAIN, *[each for each in (self._state, self._state, self._writes) if each]]
        self._add(depth, self._draw.choice(self._draw.choice(tables)))

    def _statement(self, depth: int) -> None:
        kind = self._draw.random()
        if kind < 0.5 and depth < 4:
            self._branch(depth)
        elif kind < 0.6 and depth < 3:
            loops = ("range(2)", "(x, y)", "kept[:2]", "range(1, 3)", "(0.5, 1.5)")
            self._add(depth, f"for v in {self._draw.choice(loops)}:")
            self._block(depth + 1)
            self._add(depth + 1, self._draw.choice(("x = x + v * 0.1", "y = y - v * 0.1")))
        elif kind < 0.75:
            self._add(depth, self._draw.choice(CALLS))
        else:
            self._simple(depth)

    def _block(self, depth: int) -> None:
        for _ in range(self._draw.randint(1, 2)):
            (self._statement if self._draw.random() < 0.35 else self._simple)(depth)

    def _branch(self, depth: int) -> None:
        condition = self._draw.choice(
            ("t[{}] > 0.0", "t[{}] > 0.0", "c({})", "t[{}] > 0.0 and t[{}] > 0.0", "t[{}] > 0.0 or c({})",
             "x.mean() > 0.07", "s.n % 2 == 0", "s.n % 3 == 1", "k > 0.23", "float(t[{}]) > 0.0")
        )  # fmt: skip
        if self._draw.random() < 0.1:
            self._add(depth, f"x = x + 1.0 if {condition} else y")
            return
        self._add(depth, f"if {condition}:")
        self._block(depth + 1)
        ending = self._draw.random()
        if ending < 0.06:
            self._add(depth + 1, "return " + self._draw.choice(("y", "x, y", "None")))
        elif ending < 0.5:
            self._add(depth, "else:")
            self._block(depth + 1)
        self._add(depth, self._draw.choice((*self._uses, *["pass"] * 9)))


def joining(source: str) -> Callable[..., Any]:
    """The function that a source defines."""
    namespace: dict[str, Any] = {"np": np, "__name__": "joining"}
    exec(compile(source, "<joining>", "exec"), namespace)
    return namespace["case"]  # type: ignore[no-any-return]


def joining_calls(seed: int, count: int) -> Iterator[Call]:
    """Arguments of calls, with a state of its own for each."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        u, v, a, b = (draw.normal(size=SHAPE) for _ in range(4))
        yield State(u=u, v=v, n=int(draw.integers(6)), k=float(draw.normal())), a, b, draw.choice([-1.0, 1.0], size=6)
