"""Programs for ensembles: objects with state, branches, counters and arrays that are held twice."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np


class Ocean:
    """A counter, state that is stored anew and state that is written to, two branches, and a diagnostic."""

    def __init__(self) -> None:
        self.u, self.h = np.array([1.0, 2.0, 3.0]), np.zeros(3)
        self.drag, self.count = 0.1, 0

    def step(self, wind: Any) -> float:
        self.count += 1
        self.u = self.u + wind - self.drag * np.abs(self.u) * self.u
        if self.count % 3 == 0:
            self.u *= 0.5
        if self.u.max() > 2.0:
            self.h += self.u
        self.speed = 2.0 * np.abs(self.u)
        return float(self.u.sum())


class Swapping:
    """State in a tuple, in a dict and in an object below; rounds whose number the data decide."""

    def __init__(self) -> None:
        self.pair, self.fields, self.below = (1.0, np.ones(2)), {"a": np.ones(2)}, Below()

    def step(self) -> dict[str, Any]:
        x, y = self.pair
        while x < 3.0:
            x = x * 1.5
        self.pair = (x - 2.0, y + self.fields["a"])
        self.fields["a"] *= 1.1
        self.fields["b"] = self.fields["a"] - 1.0
        self.below.k = self.below.k + np.sign(x - 3.5)
        return {"x": x, "both": (self.pair[1], self.below)}


class Below:
    def __init__(self) -> None:
        self.k = 0.5


class Holding:
    """What it may change is held by another name, or is a view of another array."""

    def __init__(self) -> None:
        self.u, self.count = np.arange(4.0), 0
        self.begin, self.inner = self.u, self.u[1:-1]

    def rebinds(self) -> None:
        self.u = self.u + 1.0
        if self.u[0] > 2.0:
            self.u = self.u - self.begin

    def writes(self) -> None:
        self.u += 1.0
        if self.u[0] > 2.0:
            self.u -= 0.5 * self.begin.mean()

    def both(self) -> None:
        self.u += 1.0
        if self.u[0] > 2.0:
            self.u = self.u - 0.25 * self.begin

    def overlaps(self) -> float:
        self.u += 1.0
        return float(self.inner.sum())

    def shifts(self) -> None:
        self.begin = self.u
        self.u = self.u * 2.0


SHARED = {"k": np.ones(3)}
HELD = np.ones(3)


class Refused:
    def __init__(self) -> None:
        self.u, self.first, self.log, self.held = np.ones(3), True, [0.0], HELD
        self.rng = np.random.default_rng(1)

    def draws(self) -> None:
        self.u = self.u + self.rng.normal(size=3)

    def prints(self) -> None:
        self.u = self.u + 1.0
        print("a step")

    def flags(self) -> None:
        if self.first:
            self.u = self.u + 1.0
        self.first = False

    def appends(self) -> None:
        self.log.append(float(self.u.sum()))

    def changes_a_global(self) -> None:
        SHARED["k"] = SHARED["k"] + self.u

    def reads_past_itself(self) -> None:
        self.held += self.u
        self.u = self.u + HELD

    def returns_text(self) -> str:
        self.u = self.u + 1.0
        return "done"


class Locked:
    def __init__(self) -> None:
        self.u, self.lock = np.ones(3), threading.Lock()

    def step(self) -> None:
        self.u = self.u + 1.0


class Rare:
    """What only some members do, and no program can."""

    def __init__(self) -> None:
        self.u, self.rng, self.first, self.names = np.ones(3), np.random.default_rng(1), True, ["a"]

    def prints(self) -> None:
        self.u = self.u + 1.0
        if self.u[0] > 5.0:
            print(f"{self.u[0]:.1f}")

    def draws(self) -> None:
        self.u = self.u + 1.0
        if self.u[0] > 5.0:
            self.u = self.u + self.rng.normal(size=3)

    def flags(self) -> None:
        self.u = self.u + (1.0 if self.first else 2.0)
        if self.u[0] > 5.0:
            self.first = False

    def appends(self) -> None:
        self.u = self.u + 1.0
        if self.u[0] > 5.0:
            self.names.append("b")

    def raises(self) -> None:
        self.u = self.u + 1.0
        if self.u[0] > 5.0:
            raise ArithmeticError("too fast")

    def grows(self) -> None:
        self.u = self.u + 1.0
        if self.u[0] > 5.0:
            self.u = np.append(self.u, 1.0)

    def makes(self) -> None:
        self.u = self.u + 1.0
        if self.u[0] > 5.0:
            self.fast = self.u * 2.0


class Ways:
    """Four ways, two of which are long and have little in common, so that no program has both."""

    def __init__(self) -> None:
        self.u, self.kind = np.array([1.0, 2.0, 3.0]), 0.0

    def step(self) -> None:
        if self.kind == 1.0:
            self._turns()
        elif self.kind == 2.0:
            self._grows()
        elif self.kind == 3.0:
            self.u = 0.5 * self.u
        else:
            self.u = self.u + 1.0

    def _turns(self) -> None:
        u = self.u
        for angle in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
            u = np.sin(u + angle) - np.cos(u) * np.tanh(u * angle)
        self.u = u

    def _grows(self) -> None:
        u = self.u
        for power in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
            u = np.sqrt(np.abs(u) + power) + np.exp(-np.abs(u)) / (power + np.log1p(np.abs(u)))
        self.u = u


class Stores:
    """A value that some steps compute, and others set to a constant without reading it."""

    def __init__(self, side: float) -> None:
        self.u, self.n, self.h, self.q, self.side = np.array([0.5, -0.25, 1.5]), 2, np.bool_(True), 1.0, side

    def step(self) -> None:
        self.u = np.roll(self.u, 1)
        if self.u[0] * self.side > 0.0:
            self.n, self.h, self.q = int(4.0 * self.u[0]), self.u[0] > 1.0, float(self.u.sum())
        else:
            self.n, self.h, self.q = 0, np.bool_(False), 0.0

    def step_to_none(self) -> None:
        self.q = float(self.u[0]) if self.u[0] * self.side > 0.0 else None


class Grows:
    """Integers that become larger than JAX's, in other members than the first."""

    def __init__(self) -> None:
        self.n, self.m, self.q = 5, 2, 1.0

    def remainder(self) -> None:
        self.q = float((self.n * self.n * self.m) % 1000003)

    def power(self) -> None:
        self.q = float(self.m**self.n % 1009)

    def shift(self) -> None:
        self.q = float(self.m << self.n)

    def largest(self) -> None:
        self.q = float(max(self.n, self.m))

    def compare(self) -> None:
        self.q = 1.0 if self.n == 9007199254740992.0 else 2.0


class TwoNames:
    """An object and an array by two names, each on a path of its own; and a flag that one path stores and one reads."""

    def __init__(self) -> None:
        self.u, self.count, self.on = np.ones(3), 0, True
        self.one = self.other = Below()
        self.first = self.second = np.ones(3)

    def objects(self) -> None:
        self.count += 1
        if self.count % 2:
            self.one.k *= 1.5
        else:
            self.other.k += 1.0

    def arrays(self) -> None:
        self.count += 1
        if self.count % 2:
            self.first *= 1.5
        else:
            self.second += 1.0

    def flags(self) -> None:
        if self.u[0] > 3.0:
            self.on = False
        if self.u[0] < 2.0:
            self.on = True
        self.u = self.u + 0.7 if self.on else self.u * 0.7
