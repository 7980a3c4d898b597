"""Fusion: what a program stores on the way changes nothing, and is stored once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accel
from accel.backend.compile import compile_trace
from accel.lower import Known, lower
from accel.lower.program import PACKS
from accel.record import record
from accel.rules import fusion

few = settings(max_examples=40, deadline=None, derandomize=True)


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


def equations(function: Callable[..., Any], *arguments: Any, spanned: int | None = None) -> list[Any]:
    """JAX's equations of the traced program. spanned: the number of an array that comes in a span."""
    trace = record(function, arguments, {}, max_nodes=1000).trace
    assert trace is not None
    values, _ = trace.inputs.fetch(arguments, {})
    slots = [] if spanned is None else [slot for slot, each in enumerate(values) if each is arguments[spanned]]
    program = lower(trace, Known(), spanned=frozenset(slots))
    with jax.enable_x64(True):
        shapes = [jax.ShapeDtypeStruct(values[slot].shape, values[slot].dtype) for slot in program.slots]
        packs = {name: np.zeros(9, dtype) for name, dtype in PACKS.items()}
        jaxpr = jax.make_jaxpr(program.function)(shapes, [jax.ShapeDtypeStruct((), np.bool_)], packs)
    return list(jaxpr.jaxpr.eqns)


def operations(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """The names of the traced program's operations."""
    return [equation.primitive.name for equation in equations(function, *arguments)]


def copied(function: Callable[..., Any], *arguments: Any, spanned: int | None = None) -> list[tuple[int, ...]]:
    """The shapes of what the traced program copies apart."""
    found = equations(function, *arguments, spanned=spanned)
    return [each.outvars[0].aval.shape for each in found if each.primitive.name == "optimization_barrier"]


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


def test_rolls_along_the_last_axis_share_one_padded_copy() -> None:
    assert operations(neighbours, np.ones((50, 90))).count("concatenate") == 1


def crossed(x: Any) -> Any:
    y = np.exp(x) * np.sin(x)
    return np.roll(y, 1, axis=0) + np.roll(y, -1, axis=0) + np.roll(y, 1, axis=1) - y


def test_what_is_rolled_sooner_or_later_is_stored_as_its_padded_copy_at_once() -> None:
    found = operations(crossed, np.ones((70, 90)))
    assert found.count("optimization_barrier") == 1 and "dynamic_update_slice" not in found


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


@pytest.mark.parametrize(
    "function",
    [neighbours, crossed, written_to_afterwards, moved_in_a_loop, read_in_a_loop_and_after_it, tangents, columns],
)
@pytest.mark.parametrize("shape", [(70, 90), (5, 8)])
def test_what_is_stored_on_the_way_changes_nothing(function: Callable[..., Any], shape: tuple[int, int]) -> None:
    both(function, np.random.default_rng(1).normal(size=shape))


def test_a_costly_function_is_computed_apart_from_what_looks_around() -> None:
    """Both read one copy of the slope."""
    assert operations(tangents, np.ones((70, 90))).count("optimization_barrier") == 2  # that, and the padded copy
    assert operations(lambda x: np.tanh(x * 2.0 + 1.0), np.ones((70, 90))).count("optimization_barrier") == 0


def winds(fields: Any, at: Any) -> Any:
    """Mixed of two fields of many."""
    k = int(at[0])
    return 0.3 * fields[:, k] + 0.7 * fields[:, k + 1]


def advected(fields: Any, at: Any, x: Any) -> Any:
    u, v = winds(fields, at)
    return (x - 0.1 * (u * x[::-1] + v * x)) * np.exp(-0.1 * np.sqrt(u * u + v * v))


def advected_plainly(fields: Any, at: Any, x: Any) -> Any:
    u, v = winds(fields, at)
    return x - 0.1 * (u * x[::-1] + v * x)


def test_what_is_read_where_a_run_tells_is_stored_before_something_costly_reads_it_from_two_places() -> None:
    """Fused with that, it would keep XLA from whole vectors."""
    arguments = np.random.default_rng(2).normal(size=(2, 9, 70, 90)), np.array([3]), np.ones((70, 90))
    assert copied(advected, *arguments) == [(2, 70, 91)]
    assert copied(advected_plainly, *arguments) == []
    both(advected, *arguments, changed=lambda x: x * 2)


def test_so_is_what_comes_in_a_span() -> None:
    x = np.random.default_rng(3).normal(size=(70, 90))

    def slopes(x: Any) -> Any:
        y = x * 2.0
        return np.exp(-y) * (y[:, ::-1] - x)

    assert (copied(slopes, x), copied(slopes, x, spanned=0)) == ([], [(70, 91)])
    assert copied(lambda x: np.exp(-x) * x, x, spanned=0) == []


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


def test_slices_of_slices_are_computed_together() -> None:
    """Up to what costs more than to store it; the same places count once, however they are come by."""
    x = np.random.default_rng(3).normal(size=(90, 80))
    assert operations(fluxes, x).count("dynamic_update_slice") == 0
    assert 1 <= operations(smoothed, x).count("dynamic_update_slice") <= 3
    both(fluxes, x)
    both(smoothed, x)


def test_outside_a_program_nothing_is_stored() -> None:
    x = np.ones((70, 90))
    assert fusion.wrap_padded(x) is None
    assert fusion.materialize(x) is x
    assert fusion.materialize_by_copy(x) is x
    assert fusion.from_padded(x) is x


def test_results_are_the_callers_own() -> None:
    """A roll that is returned shares no memory with what it was made from."""
    fast = accel.accelerate(lambda x: (np.roll(x, 1, axis=1), np.roll(x, -1, axis=1)))
    x = np.random.default_rng(2).normal(size=(40, 60))
    for _ in range(6):
        west, east = fast(x)
        west[...] = 0.0
        np.testing.assert_array_equal(east, np.roll(x, -1, axis=1))
