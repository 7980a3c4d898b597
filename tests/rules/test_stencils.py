"""Rolls and stencils in compiled programs: NumPy's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accel
from accel.backend.compile import compile_trace
from accel.compiler.lower import Known
from accel.record import record

few = settings(max_examples=40, derandomize=True)


pytestmark = pytest.mark.usefixtures("foreground")


def both(function: Callable[..., Any], *arguments: Any, changed: Callable[[Any], Any] = lambda x: x * 1.5) -> None:
    """The compiled program gives what NumPy gives, on the recorded arguments and on others."""
    trace = record(function, arguments, {}, max_nodes=1000).trace
    assert trace is not None
    values, failed = trace.inputs.fetch(arguments, {})
    assert failed is None
    executable = compile_trace(trace, Known(), values)
    for given_ in (arguments, tuple(changed(each) for each in arguments)):
        slots = [trace.inputs.fetch(given_, {})[0][slot] for slot in executable.program.slots]
        made, _ = executable(slots, {})
        expected = function(*given_)
        results = expected if isinstance(expected, tuple) else (expected,)
        for result, array in zip(results, made, strict=True):
            np.testing.assert_allclose(np.asarray(array), result, rtol=0, atol=1e-13 * np.abs(result).max(initial=0.0))


@given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=3).map(tuple),
    moves=st.lists(st.tuples(st.integers(-9, 9), st.integers(-3, 2)), min_size=1, max_size=5),
    dtype=st.sampled_from(["float64", "int64", "bool", "complex128"]),
)
@few
def test_rolls_by_any_number_along_any_axis(shape: tuple[int, ...], moves: list[tuple[int, int]], dtype: str) -> None:
    """Of one array, and of each other's results."""
    moves = [(by, axis % len(shape)) for by, axis in moves]

    def rolls(x: Any) -> Any:
        found, last = [], x
        for by, axis in moves:
            last = np.roll(last, by // 2, axis=axis)
            found += [np.roll(x, by, axis=axis), last]
        return tuple(found)

    x = (np.arange(np.prod(shape)).reshape(shape) % 5).astype(dtype)
    both(rolls, x, changed=lambda x: x[::-1].copy())


def neighbours(x: Any) -> Any:
    return np.roll(x, 1, axis=1) + np.roll(x, -1, axis=1) + np.roll(x, 2, axis=-1) - 4.0 * x


def crossed(x: Any) -> Any:
    y = np.exp(x) * np.sin(x)
    return np.roll(y, 1, axis=0) + np.roll(y, -1, axis=0) + np.roll(y, 1, axis=1) - y


def written_to_afterwards(x: Any) -> Any:
    y = x * 2.0
    east = np.roll(y, -1, axis=1)
    y[3] = 7.0
    return east + np.roll(y, -1, axis=1), y


def moved_in_a_loop(x: Any) -> Any:
    for _ in range(30):
        x = x + 0.1 * (np.roll(x, 1, axis=1) - 2.0 * x + np.roll(x, -1, axis=1))
    return x


def read_in_a_loop_and_after_it(x: Any) -> Any:
    y, total = x * 2.0, x
    for i in range(30):
        total = 0.5 * total + np.roll(y, 1, axis=1) * i
    return total + np.roll(y, 1, axis=1) + np.roll(y, -1, axis=1)


def tangents(x: Any) -> Any:
    slope = np.gradient(x, axis=0) - np.roll(np.roll(x, 1, axis=0), 1, axis=1)
    return np.tanh(slope) + np.exp(-(slope**2)), slope


def columns(x: Any) -> Any:
    return np.exp(np.roll(x[:, :1], 1, axis=0)) * x + np.sin(np.concatenate([x[:, 5:], x[:, :5]], axis=1))


def laplacian(x: Any) -> Any:
    return 4.0 * x[1:-1, 1:-1] - (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])


def fluxes(x: Any) -> Any:
    """What a limited fourth-order diffusion takes away."""
    inner, east, south = laplacian(x), np.diff(x[1:-1, 1:-1], axis=1), np.diff(x[1:-1, 1:-1], axis=0)
    along, across = inner[:, 1:] - inner[:, :-1], inner[1:] - inner[:-1]
    along, across = np.where(along * east > 0, 0.0, along), np.where(across * south > 0, 0.0, across)
    return along[1:-1, 1:] - along[1:-1, :-1] + across[1:, 1:-1] - across[:-1, 1:-1]


def smoothed(x: Any) -> Any:
    for _ in range(5):
        x = laplacian(x) * 0.25
    return x


@pytest.mark.parametrize(
    "function",
    [neighbours, crossed, written_to_afterwards, moved_in_a_loop, read_in_a_loop_and_after_it, tangents, columns]
    + [fluxes, smoothed],
)
@pytest.mark.parametrize("shape", [(70, 90), (12, 13)])
def test_stencils(function: Callable[..., Any], shape: tuple[int, int]) -> None:
    both(function, np.random.default_rng(1).normal(size=shape))


def test_results_are_the_callers_own() -> None:
    """A roll that is returned shares no memory with what it was made from."""
    fast = accel.accelerate(lambda x: (np.roll(x, 1, axis=1), np.roll(x, -1, axis=1)))
    x = np.random.default_rng(2).normal(size=(40, 60))
    for _ in range(6):
        west, east = fast(x)
        west[...] = 0.0
        np.testing.assert_array_equal(east, np.roll(x, -1, axis=1))
