"""Random programs with loops whose number of iterations the data decide, as source text.

The hostile part is Python state that changes from round to round without leaving a trace on the tape: counters, flags,
lists that grow, names that are bound late, memory that two names share, and tests such as `n == 3`.
"""

from __future__ import annotations

import random

HEADER = """
import numpy as np

class State:
    pass

def step(x, y):
    return 0.5 * x + 0.25 * np.cos(y)

def norm(x):
    return np.max(np.abs(x))

def converged(e, tol):
    return e < tol
"""


class Writer:
    """Writes one program: `main(x, y, s, o)` of two arrays, a float that shrinks, and an object."""

    def __init__(self, generator: random.Random) -> None:
        self._random = generator
        self._lines: list[str] = []
        self._depth = 0
        self._loops = 0

    def program(self) -> str:
        self._lines = ["def main(x, y, s, o):"]
        self._depth = 1
        self._add("n = 0", "flag = False", "seen = []", "z = x * 1.0", "w = np.zeros_like(x)")
        if self._chance(0.5):
            self._add("x = x.copy()")
        if self._chance(0.4):
            self._add("y = y + 0.0")
        for _ in range(self._random.randint(0, 2)):
            self._add(self._pick(_STATEMENTS))
        for _ in range(self._random.choice((1, 1, 2))):
            self._loop()
            for _ in range(self._random.randint(0, 2)):
                self._add(self._pick(_AFTER))
        self._add(self._pick(_RESULTS))
        return HEADER + "\n".join(self._lines) + "\n"

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _pick(self, statements: list[str]) -> str:
        # the plain ones come first, and more often: most programs must have a loop that can be rolled
        plain = statements[: max(1, len(statements) // 2)]
        return self._random.choice(plain if self._chance(0.75) else statements)

    def _add(self, *lines: str) -> None:
        for line in lines:
            self._lines += ["    " * self._depth + part for part in line.split("\n")]

    def _loop(self) -> None:
        self._loops += 1
        name = f"e{self._loops}"
        shrink = self._random.choice(
            ("0.5", "0.37", "(0.3 + 0.1 * np.tanh(norm(x)))", "(0.6 if norm(x) > 0.5 else 0.4)")
        )
        self._add(f"{name} = s * np.sum(np.abs(y))")
        kind = self._random.choice(("while", "while", "while not", "break", "range", "range", "two"))
        limit = self._random.choice(("40", "60", "12", "6"))
        match kind:
            case "while":
                self._add(f"while {name} > 0.01:")
            case "while not":
                self._add(f"while not converged({name}, 0.01):")
            case "break":
                self._add("while True:")
            case "range":
                self._add(f"for k in range({limit}):")
            case "two":
                self._add(f"while {name} > 0.01 and np.sum(x) < 50.0:")
        self._depth += 1
        for _ in range(self._random.randint(1, 4)):
            self._statement()
        self._add(f"{name} = np.minimum(np.nan_to_num({name}), 50.0) * {shrink}")  # whatever x is, it ends
        if kind in ("break", "range"):
            self._add(f"if {name} < 0.01:", "    break")
            if self._chance(0.3):
                self._statement()
        self._depth -= 1
        if kind == "range" and self._chance(0.3):
            self._add("else:", "    x = x + 1.0")

    def _statement(self) -> None:
        if self._depth < 3 and self._chance(0.12):
            self._loop()
        elif self._chance(0.3):
            condition = self._pick(_CONDITIONS)
            self._add(f"if {condition}:")
            self._depth += 1
            self._add(self._pick(_STATEMENTS))
            self._depth -= 1
            if self._chance(0.4):
                self._add("else:")
                self._depth += 1
                self._add(self._pick(_STATEMENTS))
                self._depth -= 1
        else:
            self._add(self._pick(_STATEMENTS))


_STATEMENTS = [
    "x = step(x, y)",
    "y = 0.9 * y + 0.01 * x",
    "z = x - y",
    "x, z = z, 0.5 * x",
    "w = w + x * y",
    "x = np.where(x > y, 0.5 * x, x)",
    "o.u = 0.7 * o.u + 0.1 * x",
    "n += 1",
    "z = x",
    "x = x / (1.0 + norm(y))",
    "w[1:] = x[:-1]",
    "x = 0.5 * (x + o.u)",
    "s = s * 0.9",
    "s = float(np.sum(x)) * 0.1",
    # hostile
    "w += x",
    "z[0] = 1.0",
    "seen.append(1)",
    "seen.append(x)",
    "flag = not flag",
    "flag = True",
    "n = n + 2",
    "late = x * 2.0",
    "w, z = z, w",
    "y = w",
    "o.w[:2] += 0.1",
    "o.n = o.n + 1",
    "o.f = lambda: 1",
    "x = x if n < 2 else x * 1.5",
    "t = (x, y)\nx = 0.5 * t[1] + 0.1 * t[0]",
    "d = {'a': x}\nx = 0.8 * d['a']",
    "pair = [x, y]\ny = 0.8 * pair[1]",
    "try:\n    x = x + late * 0.01\nexcept UnboundLocalError:\n    x = x + 0.5",
    "z = o.u",
    "o.u = x",
    "o.u, x = 0.5 * x, 0.5 * o.u",
    "if norm(x) > 3.0:\n    return x",
]

_CONDITIONS = [
    "np.sum(x) > 1.0",
    "norm(y) > 0.7",
    "x[0] < y[1]",
    "float(x[0]) < 0.3",
    "s > 0.4",
    # hostile
    "n == 3",
    "n > 5",
    "flag",
    "len(seen) > 2",
    "z is x",
    "n % 2 == 0",
]

_AFTER = [
    "x = x + w",
    "y = y * 2.0",
    "x = x - y",
    "w[0] += 1.0",
    # hostile
    "x += 1.0",
    "if flag:\n    x = -x",
    "x = x * n",
    "z[1] = 5.0",
    "x = x + len(seen)",
    "if n > 4:\n    x = x * 2.0",
]

_RESULTS = [
    "return x, y, z, w",
    "return x, s",
    "return z, w",
    "return x, n",
    "return x, seen, flag",
    "return x, y, z, w, n, flag",
]
