"""Sorting and selecting by NumPy in a compiled program: NumPy's values, for whatever numbers there are."""

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
from accel.compiler.lower import Known, lower
from accel.record import record
from accel.rules import order
from accel.rules.tables.statistics import sorting
from accel.rules.tracing import traced
from tests.helpers import some

pytestmark = [
    pytest.mark.usefixtures("foreground"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # of medians of nothing, and of NaN
]

SIZE = 2 * order.WORTH

WORKS: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: np.sort(x),
    "sort flat": lambda x: np.sort(x.reshape(2, -1), axis=None),
    "sort columns": lambda x: np.sort(x.reshape(-1, 2), axis=0),
    "argsort": lambda x: np.argsort(x, kind="stable"),
    "sort selected": lambda x: np.sort(x[x > 0]).sum(),
    "median": lambda x: np.median(x),
    "median selected": lambda x: np.median(x[x > 0]),
    "nanmedian": lambda x: np.nanmedian(x),
    "percentile": lambda x: np.percentile(x, 90.0),
    "percentiles": lambda x: np.percentile(x, [0.0, 5.0, 50.0, 100.0]),
    "many quantiles": lambda x: np.quantile(x, [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]),
    "lower": lambda x: np.quantile(x, 0.3, method="lower"),
    "nanquantile": lambda x: np.nanquantile(x, 0.3),
}


def program(work: Callable[[Any], Any], x: Any, **how: Any) -> tuple[Callable[[Any], Any], str]:
    """What computes the first result of a compiled program, and the program's operations as text."""
    trace = record(work, (x,), {}, max_nodes=1000).trace  # type: ignore[arg-type]
    assert trace is not None
    lowered = lower(trace, Known(), **how)
    with jax.enable_x64(True):
        shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype)], [jax.ShapeDtypeStruct((), np.bool_)], {}
        text = str(jax.make_jaxpr(lowered.function)(*shapes))
    values, _ = trace.inputs.fetch((x,), {})
    executable = compile_trace(trace, Known(), values)

    def run(x: Any) -> Any:
        arrays, packs = executable([x], {})
        return np.asarray(arrays[0]) if arrays else np.asarray(packs[next(reversed(packs))])[-1]

    return run, text


def mixed(dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.choice([-2.0, 0.0, 1.0, 3.0, 7.0], SIZE) if seed % 2 else 100.0 * rng.standard_normal(SIZE)
    if np.dtype(dtype).kind == "f" and seed % 3 == 1:
        x[rng.integers(0, SIZE, 5)] = np.inf, -np.inf, -0.0, 0.0, -np.inf
    if np.dtype(dtype).kind == "f" and seed % 5 == 2:
        x[rng.integers(0, SIZE, 9)] = np.nan
    if seed == 7:
        x[:] = -1.0  # no element is positive
    return np.abs(x).astype(dtype) if np.dtype(dtype).kind in "ub" else x.astype(dtype)


@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8"])
def test_results_are_numpys(name: str, dtype: str) -> None:
    work = WORKS[name]
    run, text = program(work, mixed(dtype, 0))
    is_called = "ffi_call" in text
    assert is_called or (np.dtype(dtype).kind != "f" and "sort" not in name), "integers are selected by XLA"
    for seed in range(10):
        x = mixed(dtype, seed)
        np.testing.assert_allclose(run(x), work(x), rtol=1e-6 if dtype == "float32" else 1e-14)


@settings(max_examples=40)
@given(st.lists(st.floats(allow_subnormal=False), min_size=1, max_size=40), st.floats(0.0, 100.0))
def test_random_numbers_are_selected_as_numpy_does(numbers: list[float], percent: float) -> None:
    x = np.resize(numbers, SIZE)
    with traced(has_host_calls=True), jax.enable_x64(True), np.errstate(all="ignore"):
        k = np.array([int((SIZE - 1) * percent / 100.0)], np.int32)
        low, high = order.two_of(x, k, lambda x, k: (x, x))
        expected = np.sort(x)
        if not np.isnan(x).any():
            assert low[0] == expected[k[0]]
            assert high[0] == (expected[k[0] + 1] if k[0] + 1 < SIZE else np.inf)
        np.testing.assert_array_equal(sorting.sort(a=jax.numpy.asarray(x)), expected)


SHAPED: dict[str, Callable[[Any], Any]] = {
    "random": lambda x: x,
    "few values": lambda x: np.round(x),
    "half zero": lambda x: np.maximum(x, 0.0),
    "ascending": lambda x: np.sort(x),
    "descending": lambda x: -np.sort(x),
    "one value": lambda x: np.ones_like(x),
    "infinities": lambda x: np.where(np.abs(x) < 0.5, x, np.copysign(np.inf, x)),
    "a sample that misleads": lambda x: np.where(np.arange(len(x)) % 2, x, -9.0),
    "float32": lambda x: x.astype(np.float32),
}


@pytest.mark.parametrize("shape", SHAPED)
@pytest.mark.parametrize("size", [order.SAMPLED - 1, order.SAMPLED, 5000])
def test_pairs_of_many_elements_are_those_of_all_in_order(shape: str, size: int) -> None:
    x = SHAPED[shape](some(3, size) * 2.0)
    whole = np.append(np.sort(x), np.inf)
    for k in (0, 1, size // 100, size // 3, size // 2, size - 2, size - 1):
        assert order._pair(x, k) == (whole[k], whole[k + 1])


@pytest.mark.parametrize("name", ["sort", "argsort", "median"])
def test_other_programs_have_no_calls(name: str) -> None:
    trace = record(WORKS[name], (mixed("float64", 0),), {}, max_nodes=1000).trace  # type: ignore[arg-type]
    assert trace is not None
    function = lower(trace, Known(), on_cpu=False).function
    with jax.enable_x64(True):
        shapes = [jax.ShapeDtypeStruct((SIZE,), np.float64)], [jax.ShapeDtypeStruct((), np.bool_)], {}
        assert "ffi_call" not in str(jax.make_jaxpr(function)(*shapes))


def test_few_elements_are_left_to_xla() -> None:
    _, text = program(WORKS["median"], np.arange(order.WORTH - 1.0))
    assert "ffi_call" not in text


def test_in_rounds_that_are_computed_together_and_in_loops() -> None:
    def work(x: Any) -> Any:
        found = [np.median(row * 2.0) for row in x]
        while np.median(x) > 1.0:
            x = np.sort(x * 0.5, axis=0)[::-1]
        return np.array(found), x

    fast = accel.accelerate(work, name="work")
    for seed in range(6):
        x = np.random.default_rng(seed).random((12, order.WORTH)) * 10.0
        for found, expected in zip(fast(x), work(x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14)
