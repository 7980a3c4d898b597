"""Loops that the recording unrolled: found, rolled, and equal to NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel.backend.compile import compile_trace
from accel.compiler.lower import Known
from accel.compiler.lower.passes.loops import reroll
from accel.compiler.lower.passes.loops.loop import Loop
from accel.dispatch.replay import Variant
from accel.dispatch.replay.commit import commit
from accel.record import record


def diffusion(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x + 0.1 * (np.roll(x, 1) - 2.0 * x + np.roll(x, -1))
    return x


def in_place(x: Any, n: int) -> Any:
    x = x.copy()
    for _ in range(n):
        x[1:-1] += 0.1 * (x[2:] - 2.0 * x[1:-1] + x[:-2])
    return x


def rows(a: Any, n: int) -> Any:
    out = np.zeros_like(a)
    out[0] = a[0]
    for i in range(1, n):
        out[i] = 0.5 * out[i - 1] + a[i] * i
    return out


def two_sweeps(a: Any, n: int) -> Any:
    """A loop forward and one backward, as a tridiagonal solver has them."""
    forward, backward = np.zeros(n), np.zeros(n)
    forward[0] = a[0, 0]
    for i in range(1, n):
        forward[i] = a[i, 0] - 0.3 * forward[i - 1]
    backward[-1] = forward[-1]
    for i in range(n - 2, -1, -1):
        backward[i] = forward[i] - 0.2 * backward[i + 1]
    return backward


def every_round_used(a: Any, n: int) -> Any:
    """Values of all iterations leave the loop."""
    x, seen = a[0], []
    for _ in range(n):
        x = np.sin(x) + 0.5
        seen.append(x.sum())
    return np.array(seen)


def two_carried(a: Any, n: int) -> Any:
    older, newer = a[0], a[1]
    for _ in range(n):
        older, newer = newer, 0.5 * (older + newer) + 1.0
    return older, newer


def reads_in_both_directions(a: Any, n: int) -> Any:
    """The tape holds each read of `a` once; the loops use them in other orders, and so does what comes after."""
    down, up = np.zeros_like(a), np.zeros_like(a)
    for i in range(2, n):
        down[i] = a[i] + 0.5 * a[i - 1] + 0.3 * down[i - 1] - 0.1 * down[i - 2]
    for i in range(n - 3, -1, -1):
        up[i] = a[i + 1] - 0.5 * a[i + 2] + 0.3 * up[i + 1] - 0.1 * up[i + 2]
    return down + up + a[3] + a[n - 2]


def known_rows(a: Any, n: int) -> Any:
    """What one loop computes from numbers alone is known when the program is made; the other looks it up."""
    p = np.zeros((n, 5))
    for i in range(1, n):
        p[i] = 0.7 / (0.3 * p[i - 1] + 2.0)
    x = a[0]
    for i in range(1, n):
        x = x * p[i] + a[i]
    return x


def columns(a: Any, n: int) -> Any:
    """Columns that depend on one another through two arrays: each is read beside its own array's write."""
    p, q = np.zeros((6, n)), np.ones((6, n))
    p[:5, 0] = a[0]
    for j in range(1, n):
        p[1:-1, j] = 1.0 / (0.3 * p[1:-1, j - 1] + 2.0)
        q[1:-1, j] = (a[j, 0] + q[1:-1, j - 1]) * p[1:-1, j - 1] + p[1:-1, j]
    return p, q


PROGRAMS = {
    program.__name__: program
    for program in (
        diffusion,
        in_place,
        rows,
        two_sweeps,
        every_round_used,
        two_carried,
        reads_in_both_directions,
        known_rows,
        columns,
    )
}
LOOPS = dict.fromkeys(PROGRAMS, 1) | {"two_sweeps": 2, "reads_in_both_directions": 2}
ROUNDS = 40


def variant_of(program: Callable[..., Any], array: Any) -> tuple[Variant, list[Any]]:
    recorded = record(program, (array, ROUNDS), {}, max_nodes=20_000)
    assert recorded.refusal is None, recorded.refusal
    values, failed = recorded.trace.inputs.fetch((array, ROUNDS), {})
    assert failed is None
    known = Known(scalars={slot: values[slot] for slot in recorded.trace.scalar_slots})
    return Variant(recorded.trace, compile_trace(recorded.trace, known, values)), values


@pytest.mark.parametrize("name", PROGRAMS)
def test_rolled_programs_equal_numpy_on_fresh_inputs(name: str) -> None:
    generator = np.random.default_rng(7)
    variant, _ = variant_of(PROGRAMS[name], generator.random((ROUNDS, 5)))
    for _ in range(3):
        array = generator.random((ROUNDS, 5))
        values, _ = variant.trace.inputs.fetch((array.copy(), ROUNDS), {})
        staged = variant.run(values)
        expected = PROGRAMS[name](array, ROUNDS)
        np.testing.assert_allclose(np.asarray(commit(staged)), np.asarray(expected), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_loop_is_rolled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rolled: list[Any] = []
    real = reroll.roll

    def spy(*args: Any) -> Any:
        parts = real(*args)
        rolled.extend(part for part in parts if isinstance(part, Loop))
        return parts

    monkeypatch.setattr(reroll, "roll", spy)
    variant_of(PROGRAMS[name], np.random.default_rng(1).random((ROUNDS, 5)))
    assert len(rolled) == LOOPS[name]
    assert all(len(loop.iterations) >= ROUNDS - 6 for loop in rolled)


def test_a_round_that_reads_further_back_than_one_round_is_not_rolled() -> None:
    def fibonacci(x: Any, n: int) -> Any:
        values = [x, x + 1.0]
        for i in range(n):
            values.append(values[i] + np.sin(values[i + 1]))
        return values[-1]

    array = np.random.default_rng(3).random(4)
    recorded = record(fibonacci, (array, ROUNDS), {}, max_nodes=20_000)
    values, _ = recorded.trace.inputs.fetch((array, ROUNDS), {})
    known = Known(scalars={slot: values[slot] for slot in recorded.trace.scalar_slots})
    variant = Variant(recorded.trace, compile_trace(recorded.trace, known, values))
    np.testing.assert_allclose(commit(variant.run(values)), fibonacci(array, ROUNDS), rtol=1e-12)


def test_a_short_program_is_left_alone() -> None:
    recorded = record(diffusion, (np.ones(4), 3), {}, max_nodes=1000)
    body = recorded.trace.tape.nodes
    assert reroll.roll(body, frozenset(), lambda node: None) == body
