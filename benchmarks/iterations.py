"""Iterative methods, whose numbers of rounds the data decide: compiled against NumPy.

`python -m benchmarks.iterations [--methods NAME ...] [--rounds 15]`. Each method is written as for NumPy, and one
function. It is compiled at first need, called with several sets of data, so that numbers of rounds differ, checked
against NumPy, and timed in turns with it. Compiling is not among the times: they are what a long program sees.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from benchmarks import harness
from benchmarks.harness import BadInput, Goal

CALLS = 8
"""Calls before the timing: of different data, so that all branches are recorded and compiled."""
TOLERANCE = 1e-9


def cube_roots(a, tolerance):
    """Newton's method."""
    x = np.maximum(a, 1.0)
    rounds = 0
    while True:
        step = (x * x * x - a) / (3.0 * x * x)
        x = x - step
        rounds += 1
        if np.max(np.abs(step)) < tolerance:
            return x, rounds


def solve(A, b, tolerance):
    """Conjugate gradients."""
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rr = r @ r
    rounds = 0
    while np.sqrt(rr) > tolerance:
        Ap = A @ p
        alpha = rr / (p @ Ap)
        x = x + alpha * p
        r = r - alpha * Ap
        new = r @ r
        p = r + (new / rr) * p
        rr = new
        rounds += 1
    return x, rounds


def bisect(target, tolerance):
    """The roots of x exp(x) = target, between 0 and 4."""
    low = np.zeros_like(target)
    high = np.full_like(target, 4.0)
    while np.max(high - low) > tolerance:
        middle = 0.5 * (low + high)
        above = middle * np.exp(middle) > target
        high = np.where(above, middle, high)
        low = np.where(above, low, middle)
    return 0.5 * (low + high), 0


def relax(f, tolerance):
    """Jacobi's relaxation of a potential."""
    u = np.zeros_like(f)
    change = 1.0
    rounds = 0
    while change > tolerance and rounds < 3000:
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - f[1:-1, 1:-1])
        change = np.max(np.abs(new - u))
        u = new
        rounds += 1
    return u, rounds


def swing(y, end, tolerance):
    """Pendulums by Heun's method, with steps that are rejected and made again."""
    t, h, rounds = 0.0, 0.01, 0
    while t < end:
        h = min(h, end - t)
        k1 = np.stack([y[1], -np.sin(y[0])])
        k2 = np.stack([y[1] + h * k1[1], -np.sin(y[0] + h * k1[0])])
        error = np.max(np.abs(0.5 * h * (k2 - k1)))
        if error < tolerance:
            y = y + 0.5 * h * (k1 + k2)
            t += h
        h = h * min(2.0, max(0.3, 0.9 * np.sqrt(tolerance / (error + 1e-30))))
        rounds += 1
    return y, rounds


def look_up(table, start, steps):
    """Follow entries of a table from where the data of the step before lead."""
    total = np.zeros(table.shape[1])
    at = start
    for _ in range(steps):
        row = table[at]
        total = 0.9 * total + np.sqrt(np.abs(row))
        at = int(np.abs(row[at % 7]) * 1e6) % len(table)
    return total, at


def positive_definite(rng: Generator) -> tuple[Any, ...]:
    """An equation of 300 unknowns."""
    Q = rng.standard_normal((300, 300))
    return Q @ Q.T + 300.0 * np.eye(300), rng.standard_normal(300), 1e-9


@functools.cache
def table() -> Any:
    """The table, made once: a program that looks things up keeps it."""
    return np.random.default_rng(0).standard_normal((200, 40_000))


class Method(NamedTuple):
    """One function, and what makes its data."""

    function: Callable[..., Any]
    make: Callable[[Generator], tuple[Any, ...]]


METHODS = {
    "newton": Method(cube_roots, lambda rng: (rng.uniform(1, 9 + rng.integers(9), 40_000), 1e-10)),
    "conjugate gradients": Method(solve, positive_definite),
    "bisection": Method(bisect, lambda rng: (rng.uniform(0.1, 5.0, 10_000), 10.0 ** -rng.integers(8, 11))),
    "relaxation": Method(relax, lambda rng: (rng.standard_normal((100, 100)), 1e-3)),
    "adaptive steps": Method(swing, lambda rng: (rng.uniform(-1, 1, (2, 5000)), rng.uniform(1.0, 2.0), 1e-6)),
    "table look-ups": Method(look_up, lambda rng: (table(), int(rng.integers(200)), 40)),
}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.iterations", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--methods", metavar="NAME", nargs="+", default=list(METHODS), help=", ".join(METHODS))
    arguments.add_argument("--rounds", type=harness.positive_int, default=15)
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print; 1 when a method is wrong, stays on NumPy, or is slower than NumPy."""
    options = parser().parse_args(argv)
    unknown = [name for name in options.methods if name not in METHODS]
    if unknown:
        raise BadInput(f"--methods: {', '.join(unknown)}: not one of {', '.join(METHODS)}")
    os.environ["QD_JAX_AOT"] = "0"  # read when accel is imported
    os.environ.setdefault("QD_JAX_QUIET", "1")
    verdicts: list[Goal] = []
    for name in options.methods:
        print(f"{name} ...", file=sys.stderr, flush=True)
        verdicts += measured(name, METHODS[name], options.rounds)
    print("\n".join([harness.goals_table(verdicts), "", f"commit {harness.commit()}"]))
    return 0 if all(goal.met for goal in verdicts) else 1


def measured(name: str, method: Method, rounds: int) -> list[Goal]:
    """The verdicts on one method."""
    import accel

    fast = accel.accelerate(method.function)
    seeds = itertools.count()

    def data() -> tuple[Any, ...]:
        return method.make(np.random.default_rng(next(seeds) % CALLS))

    worst = 0.0
    for _ in range(2 * CALLS):
        given = data()
        for found, expected in zip(fast(*given), method.function(*given), strict=True):
            worst = max(worst, harness.relative_error(found, expected))
    before = _compiled(fast)
    times = harness.interleaved({"numpy": method.function, "accel": fast}, data, rounds, budget_s=60.0)
    numpy_ms, accel_ms = harness.median_ms(times["numpy"]), harness.median_ms(times["accel"])
    print(f"  NumPy {numpy_ms:.2f} ms, accel {accel_ms:.2f} ms", file=sys.stderr)
    return [
        Goal(f"{name}: largest error", worst, TOLERANCE),
        Goal(f"{name}: calls that stayed on NumPy", len(times["accel"]) - (_compiled(fast) - before), 0),
        Goal(f"{name}: times as fast as NumPy", numpy_ms / accel_ms, 1.0, at_least=True),
    ]


def _compiled(fast: Any) -> int:
    """The number of compiled calls so far."""
    import json

    import accel

    name = f"{fast.__module__}.{fast.__qualname__}"
    found = json.loads(accel.report(format="json"))["functions"]
    return next((int(each["compiled_calls"]) for each in found if each["target"].replace(":", ".") == name), 0)


if __name__ == "__main__":
    harness.run_command(main)
