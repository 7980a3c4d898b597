"""Products of large matrices are NumPy's own calls in a compiled program: same values, no silent failure."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import accel
from accel.backend.compile import compile_trace
from accel.backend.executable import Executable
from accel.compiler.lower import Known, lower
from accel.platform import callbacks
from accel.platform.ledger import open_ledger
from accel.record import record
from accel.rules import products, tracing

pytestmark = pytest.mark.usefixtures("foreground")


def traced(function: Any, *arguments: Any, **how: Any) -> str:
    """The program's operations, as text."""
    trace = record(function, arguments, {}, max_nodes=1000).trace
    assert trace is not None
    program = lower(trace, Known(), **how)
    with jax.enable_x64(True):
        shapes = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arguments]
        return str(jax.make_jaxpr(program.function)(shapes, [jax.ShapeDtypeStruct((), np.bool_)], {}))


def compiled(function: Any, *arguments: Any) -> tuple[Executable, list[Any]]:
    """The program, and what it is to be given."""
    trace = record(function, arguments, {}, max_nodes=1000).trace
    assert trace is not None
    values, _ = trace.inputs.fetch(arguments, {})
    executable = compile_trace(trace, Known(), values)
    return executable, [values[slot] for slot in executable.program.slots]


def matrices(rows: int, inner: int, columns: int, dtype: str = "float64") -> tuple[Any, Any]:
    rng = np.random.default_rng(rows + columns)
    x, y = rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns))
    if np.dtype(dtype).kind == "c":
        x, y = x + 1j * x[::-1], y - 2j * y[::-1]
    return x.astype(dtype), y.astype(dtype)


def layered(x: Any, y: Any) -> Any:
    return np.maximum(x @ y + 1.0, 0.0), np.dot(x * 2.0, y).T @ x


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_a_large_product_is_a_call_and_gives_numpys_numbers(dtype: str) -> None:
    def work(x: Any, y: Any) -> Any:
        return (x @ y), np.dot(x, y)

    x, y = matrices(64, 70, 60, dtype)
    assert traced(work, x, y).count("ffi_call") == 2
    executable, given = compiled(work, x, y)
    made, _ = executable(given, {})
    for found, expected in zip(made, work(x, y), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        matrices(8, 8, 8),  # too small to be worth it
        (np.ones((1, 2000)), np.ones((2000, 200))),  # of a vector
        (np.ones((2000, 200)), np.ones(200)),
        (np.ones((3, 80, 80)), np.ones((80, 80))),
        (np.ones((80, 80), int), np.ones((80, 80), int)),
        (np.ones((80, 80), np.float16), np.ones((80, 80), np.float16)),
    ],
)
def test_what_stays_with_xla(x: Any, y: Any) -> None:
    assert "ffi_call" not in traced(lambda a, b: a @ b, x, y)


def test_other_programs_keep_xlas() -> None:
    assert "ffi_call" not in traced(lambda a, b: a @ b, *matrices(64, 70, 60), on_cpu=False)


def test_where_calls_are_not_possible_products_are_xlas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "version", lambda: (1, 0))
    assert "ffi_call" not in traced(lambda a, b: a @ b, *matrices(64, 70, 60))


def test_many_at_once_are_xlas() -> None:
    x, y = matrices(64, 70, 60)
    with tracing.traced(has_host_calls=True), jax.enable_x64(True):
        many = jax.jit(jax.vmap(products.matmul, (0, None)))
        stack = np.stack([x, 2.0 * x])
        assert "ffi_call" not in str(jax.make_jaxpr(many)(stack, y))
        np.testing.assert_allclose(np.asarray(many(stack, y)), stack @ y, rtol=1e-12, atol=1e-12)


def test_calls_agree_with_numpy_through_loops_and_views() -> None:
    def work(x: Any, y: Any) -> Any:
        for _ in range(5):
            x = np.tanh(x @ y @ y.T * 1e-2) + x[::-1]
        return x, layered(x, y)[1]

    fast = accel.accelerate(work, name="work")
    for i in range(6):
        x, y = (each * (1.0 + i) for each in matrices(64, 70, 60))
        for found, expected in zip(fast(x, y), work(x, y), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    assert open_ledger("work").compiled_calls


def test_a_failure_in_the_call_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where there is no memory left: the run is worth nothing, and the program sees NumPy's result."""

    def work(x: Any, y: Any) -> Any:
        return x @ y + 1.0

    x, y = matrices(64, 70, 60)
    fast = accel.accelerate(work, name="work")
    for _ in range(5):
        fast(x, y)
    before = open_ledger("work").compiled_calls
    assert before
    usual = callbacks.fill

    def broken(function: Any, *about: Any) -> None:
        def raises(*_: Any) -> None:
            raise MemoryError

        usual(raises, *about)

    monkeypatch.setattr(callbacks, "fill", broken)
    for factor in (1.0, 3.0):
        np.testing.assert_array_equal(fast(factor * x, y), work(factor * x, y))
    assert open_ledger("work").compiled_calls == before


def test_the_call_sees_the_programs_own_memory() -> None:
    """So it must not write to the operands."""
    x, y = matrices(64, 70, 60)
    executable, given = compiled(lambda a, b: a @ b, x, y)
    kept = [np.array(each) for each in given]
    executable(given, {})
    for now, then in zip(given, kept, strict=True):
        np.testing.assert_array_equal(now, then)
