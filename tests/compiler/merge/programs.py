"""Random programs with branches: on arrays, on counters, nested, with writes, loops, returns, recursion, exceptions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.compiler.merge.runs import Call, State

SHAPE = (5, 4)

HELPERS = """
def deeper(p, n):
    if n <= 0:
        return p
    return deeper(np.cos(p) * 0.5, n - 1) + p

def halved(p):
    if 0.83 < p.max() < 1e6:
        return halved(p * 0.5)
    return p

def checked(p):
    if p[0, 0] > 0.23:
        raise ValueError("too large")
    return p * 1.1
"""
"""Functions that call themselves, as often as a number or the data say, and one that raises on one side."""


class Writer:
    """Writes one program: `case(s, a, b)`, with state s. draw: the source of all choices."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._lines: list[str] = []

    def program(self) -> str:
        """The program's source."""
        self._lines = [
            HELPERS,
            "def case(s, a, b):",
            "    count = 0",
            "    x = a * 0.5",
            "    y = b + s.u",
            "    s.n += 1",
        ]
        self._lines.append("    k = s.n % 4")
        self._block(1, self._draw.randint(4, 8))
        results = "x", "x, y", "x + y", "(x, float(y.sum()))", "None", "count, x", "a[k], y[k - 3, 1:], x"
        self._lines.append(f"    return {self._pick(*results)}")
        return "\n".join(self._lines)

    def _pick(self, *choices: str) -> str:
        return self._draw.choice(choices)

    def _block(self, depth: int, statements: int) -> None:
        kinds = (*[self._plain] * 4, self._write, self._write, self._branch, self._branch, self._loop, self._call)
        for _ in range(statements):
            self._draw.choice(kinds)(depth)

    def _add(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _value(self) -> str:
        return self._pick(
            "np.sin(x) + y", "x * 0.9", "np.cos(y)", "np.roll(x, 1, axis=0)", "x.T.copy().T", "np.where(x > y, x, y)",
            "y - y.mean()", "x[::-1] * 0.7", "np.clip(x, -1.0, 1.0)", "s.v * 0.5 + x", "np.maximum(x, s.u)",
        )  # fmt: skip

    def _plain(self, depth: int) -> None:
        self._add(depth, f"{self._pick('x', 'y')} = {self._value()}")

    def _write(self, depth: int) -> None:
        self._add(
            depth,
            self._pick(
                f"s.u = {self._value()}", f"s.v[1:3] = ({self._value()})[1:3]", f"a[0] = ({self._value()})[0]",
                f"x[:, 1] += ({self._value()})[:, 1]", "y[y > 0.3] = 0.3", "s.last = float(x.max())",
                "s.made = x * 2.0", "b *= 0.9", "s.k = s.k * 0.5 + 0.1", "s.log = (count, x[0, 0])", "s.v = s.u",
                "a.T[1] = y[:, 1]", "count += 1", "k = (k + 1) % 4", "k = int(x[:, 1].argmax()) - 1",
                "x[k] += y[k - 2]", "a[k, 1] = x[s.n % 5, k]", "s.row = y[k]", "s.v[k:k + 2] = x[:2]",
                "y[k] = b[k] * 0.5", "s.n = s.n + k",
            ),
        )  # fmt: skip

    def _condition(self) -> str:
        limit = self._pick("-0.41", "0.07", "0.23", "0.52")  # no values that rounding alone could pass
        return self._pick(
            f"x.mean() > {limit}", f"np.any(y > {limit} + 0.5)", f"x[0, 0] > {limit}", "s.n % 2 == 0", "count == 1",
            f"a.max() < {limit} + 0.6 and y.min() < {limit}", f"s.k > {limit}", f"float(np.median(x)) < {limit}",
            "s.n % 3 == 1", "hasattr(s, 'made')",
        )  # fmt: skip

    def _branch(self, depth: int) -> None:
        if depth > 3:
            self._plain(depth)
            return
        self._add(depth, f"if {self._condition()}:")
        self._block(depth + 1, self._draw.randint(1, 3))
        ending = self._draw.random()
        if ending < 0.12:
            self._add(depth + 1, f"return {self._pick('y', 'x, y', 'None', 'x.sum()')}")
        elif ending < 0.16:
            self._add(depth + 1, "raise ValueError('of the program')")
        elif ending < 0.6:
            self._add(depth, "else:")
            self._block(depth + 1, self._draw.randint(1, 2))

    def _call(self, depth: int) -> None:
        kind = self._pick("deeper", "halved", "checked")
        if kind == "checked":
            for line in (
                "try:",
                "    x = checked(x)",
                "except ValueError:",
                f"    {self._pick('count += 1', 'y = -y')}",
            ):
                self._add(depth, line)
        elif kind == "deeper":
            self._add(depth, f"x = deeper({self._pick('x', 'y')}, {self._pick('s.n % 3', 'count', 'k')})")
        else:
            self._add(depth, f"y = halved({self._pick('x', 'y')})")

    def _loop(self, depth: int) -> None:
        if depth > 2:
            self._plain(depth)
            return
        count = self._pick("int(np.ceil(abs(a[0, 1]) * 2)) % 3", "s.n % 3", "2", "int((x > 0.2).sum()) % 3")
        self._add(depth, f"for _ in range({count}):")
        self._block(depth + 1, self._draw.randint(1, 2))


def program_of(source: str) -> Callable[..., Any]:
    """The function that a source defines."""
    namespace: dict[str, Any] = {"np": np, "__name__": "branching"}
    exec(compile(source, "<branching>", "exec"), namespace)
    return namespace["case"]  # type: ignore[no-any-return]


def calls(seed: int, count: int) -> Iterator[Call]:
    """Arguments of calls, with a state of its own for each."""
    draw = np.random.default_rng(seed)
    for number in range(count):
        state = State(u=draw.normal(size=SHAPE), v=draw.normal(size=SHAPE), n=number, k=float(draw.normal()))
        if draw.random() < 0.2:
            state.made = draw.normal(size=SHAPE)
        yield state, draw.normal(size=SHAPE), draw.normal(size=SHAPE)
