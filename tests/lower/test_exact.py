"""Rounding as NumPy does where a jump reads the result: equal to the last bit, on data that lie on edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accel.backend.compile import compile_trace
from accel.dispatch.replay import Variant
from accel.lower import Known
from accel.record import record
from tests.lower.passes import after_pass


def replayed(program: Any, *arrays: Any) -> Any:
    """The program's compiled result on copies of the arrays, and the operations that had to be exact."""

    def inputs() -> tuple[Any, ...]:
        return tuple(np.array(array) for array in arrays)

    recorded = record(program, inputs(), {}, max_nodes=20_000)
    assert recorded.refusal is None, recorded.refusal
    values, _ = recorded.trace.inputs.fetch(inputs(), {})
    variant = Variant(recorded.trace, compile_trace(recorded.trace, Known(), values))
    staged = variant.run(values)
    return variant.commit(staged), [node.rule.name for node in after_pass("exact", recorded.trace) if node.exact]


def assert_equal(program: Any, *arrays: Any) -> None:
    result, _ = replayed(program, *arrays)
    np.testing.assert_array_equal(result, program(*arrays))


pixels = np.random.default_rng(0).integers(0, 256, (2, 100, 90))
grid = np.arange(4000.0).reshape(40, 100) * 0.01


def blend(a: Any, b: Any) -> Any:
    return (a * 0.3 + b * 0.7).round().astype(np.uint8)


def cell(x: Any) -> Any:
    return np.floor(x / 0.01) + (x / 0.1).astype(int) + np.floor((x - 0.5) / 0.01 / 3.0)


def cell_of_a_row(x: Any) -> Any:
    return np.floor(x / (0.01 + 0.01 * (np.arange(100) % 3)))


def inside(x: Any) -> Any:
    return x * x + x[::-1] ** 2 <= np.sqrt(x) * np.sqrt(x)


def magic(x: Any) -> Any:
    return ((x * 3.0 + 6755399441055744.0) - 6755399441055744.0) == np.rint(x * 3.0)


def products(x: Any) -> Any:
    return np.floor(x * 0.1 * 30.0)


def decimals(x: Any) -> Any:
    return np.round(x * 3.3, 1)


def tens(x: Any) -> Any:
    return np.round(x * 1e4, -2)


def mandelbrot(x: Any) -> Any:
    re, im, count = x * 0, x * 0, np.zeros(x.shape, int)
    for _ in range(30):
        near = re * re + im * im < 4.0
        re, im = np.where(near, re * re - im * im + x * 0.1 - 2.0, re), np.where(near, 2 * re * im + x[::-1] * 0.03, im)
        count = count + near
    return count


def diffusion_of_errors(x: Any) -> Any:
    rows = x * 100.3
    for i in range(1, len(x) - 1):
        whole = np.round(rows[i])
        rows[i + 1] += (rows[i] - whole) * 0.4375
        rows[i] = whole
    return rows[1:-1]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_rounded_sums_of_products(dtype: Any) -> None:
    assert_equal(blend, *pixels.astype(dtype))


@pytest.mark.parametrize(
    "program", [cell, cell_of_a_row, inside, magic, products, decimals, tens, mandelbrot, diffusion_of_errors]
)
def test_jumps_on_edges(program: Any) -> None:
    assert_equal(program, grid)


def test_state_that_a_later_call_s_jump_reads() -> None:
    """`x` is moved after its cells were counted: the next call counts them."""

    class Particles:
        def __init__(self) -> None:
            self.x = grid.ravel().copy()
            self.v = np.linspace(-1.0, 1.0, self.x.size)

    def step(p: Any) -> Any:
        cells = (p.x / 0.01).astype(int)
        p.x = p.x + p.v * 0.05 - cells * 1e-3
        return cells

    mine, theirs = Particles(), Particles()
    recorded = record(step, (mine,), {}, max_nodes=1000)
    step(theirs)
    values, _ = recorded.trace.inputs.fetch((mine,), {})
    variant = Variant(recorded.trace, compile_trace(recorded.trace, Known(), values))
    for _ in range(5):
        values, failed = variant.trace.inputs.fetch((mine,), {})
        assert failed is None
        variant.commit(variant.run(values))
        step(theirs)
        np.testing.assert_array_equal(mine.x, theirs.x)


def test_only_what_a_jump_reads_is_exact() -> None:
    def work(x: Any) -> Any:
        return x * 2.0 + x / 3.0, x * 0.5 + 1.0 > 2.0

    _, exact = replayed(work, grid)
    assert sorted(exact) == ["numpy.add", "numpy.multiply"]


def test_behind_what_rounds_otherwise_nothing_is() -> None:
    def work(x: Any) -> Any:
        return np.floor(np.exp(x) * 0.3 + x * 0.7), np.isfinite(x * 0.3 + 1.0), x.sum() * 0.1 + 0.3 > 1.0

    assert replayed(work, grid)[1] == []


def test_state_that_is_left_inexact_is_not_kept_exact() -> None:
    def work(x: Any) -> Any:
        cells = np.floor(x * 0.3 + x[::-1] * 0.7)
        x += np.exp(-x)
        return cells

    assert replayed(work, grid)[1] == []
