"""Programs in float32: what is rounded and what is not, NumPy's dtypes outside, and control flow in one dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel.backend.compile import compile_trace
from accel.compiler.loops import rolled
from accel.compiler.lower import Known
from accel.compiler.lower.precision import reduced
from accel.dispatch.replay import StagedOutputs, Variant
from accel.dispatch.replay.commit import commit
from accel.platform import config
from accel.record import record

EPS = 2.0**-24
"""Half the distance of float32's neighbours of 1."""

REDUCED = (config.FLOAT32, config.MIXED)


def replayed(function: Callable[..., Any], precision: str, *args: Any) -> Any:
    """What the function's program gives in this precision. Changed arguments are changed in `args`."""
    recorded = record(function, tuple(map(np.copy, args)), {}, max_nodes=20_000)
    assert recorded.refusal is None, recorded.refusal
    trace = rolled(recorded.trace)
    values, failed = trace.inputs.fetch(args, {})
    assert failed is None
    with config.override(precision=precision, cache_dir=None):
        variant = Variant(trace, compile_trace(trace, Known(), values))
    assert variant.executable.precision == precision
    staged = variant.run(values)
    assert isinstance(staged, StagedOutputs), staged
    return commit(staged)


def field(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape) + 3.0


def error(found: Any, expected: Any) -> float:
    """The largest error, relative to the largest magnitude."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    return float(np.abs(found - expected).max() / np.abs(expected).max())


# -- what is rounded ---------------------------------------------------------------------------------------------------


def smooth(x: Any) -> Any:
    return 0.5 * x + 0.25 * (np.roll(x, 1, axis=0) + np.roll(x, -1, axis=0)) * np.sin(x)


@pytest.mark.parametrize("precision", REDUCED)
def test_arithmetic_on_arrays_is_rounded_to_float32(precision: str) -> None:
    x = field(30, 20)
    assert EPS / 4 < error(replayed(smooth, precision, x), smooth(x)) < 20 * EPS
    assert error(replayed(smooth, config.FLOAT64, x), smooth(x)) < 1e-15


def moved(x: Any, y: Any) -> Any:
    x[2:4] = 7.5
    x[0, :3] += 1.0
    y[y > 3.0] = 0.1
    joined = np.concatenate([x[::2], y.T[:, :20].reshape(-1, 20)])
    return joined, np.where(x > y, x, y), np.sort(x, axis=0), x[:, ::-1].copy(), -x, np.abs(y), x.max(), y[3, 2]


@pytest.mark.parametrize("precision", REDUCED)
def test_what_is_moved_chosen_or_not_written_to_is_not_rounded(precision: str) -> None:
    mine, theirs = (field(30, 20), field(30, 20, seed=1)), (field(30, 20), field(30, 20, seed=1))
    found, expected = replayed(moved, precision, *mine), moved(*theirs)
    for one, other in zip((*found, *mine), (*expected, *theirs), strict=True):
        touched = one != other
        assert np.count_nonzero(touched) <= 4  # x[0, :3], and the largest of all may be one of these
        np.testing.assert_allclose(one, other, rtol=2 * EPS)


def tied(x: Any) -> Any:
    y = x * 1.0
    return y >= 0.1, (y == 0.1).sum(), x > 0.1, np.argmax(y), np.floor(x * 10.0)


@pytest.mark.parametrize("precision", REDUCED)
def test_what_is_equal_in_float64_stays_equal(precision: str) -> None:
    x = np.full((5, 6), 0.1)
    x[2, 3] += 1e-15  # compared as it is, as long as nothing was computed of it
    assert np.array_equal(x > 0.1, replayed(tied, precision, x)[2]) and x[2, 3] > 0.1
    x[2, 3] = 0.1
    for found, expected in zip(replayed(tied, precision, x), tied(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def clock(x: Any, t: Any) -> Any:
    later = t + 0.125
    return x * np.sin(2.0 * np.pi * (later - np.floor(later))), later, float(later * 3.0)


@pytest.mark.parametrize("precision", REDUCED)
def test_numbers_that_come_from_numbers_stay_float64(precision: str) -> None:
    x, t = field(9, 8), np.array(123456789.0625)
    found, expected = replayed(clock, precision, x, t), clock(x, t)
    assert found[1:] == expected[1:]
    assert error(found[0], expected[0]) < 4 * EPS


def sums(x: Any) -> Any:
    return x.sum(), x.mean(), x.sum(axis=0), np.cumsum(x), x @ x.T, np.dot(x[0], x[1]), np.einsum("ij,kj->ik", x, x)


def test_mixed_accumulates_in_float64() -> None:
    x = field(200, 150) * 1e3
    for mixed, single, expected in zip(replayed(sums, "mixed", x), replayed(sums, "float32", x), sums(x), strict=True):
        assert error(mixed, expected) < 1e-14
        assert 1e-9 < error(single, expected) < 1e-4


def test_products_are_float32s_on_every_device() -> None:
    """GPUs and TPUs multiply fewer bits of float32 where nothing is said."""
    import jax

    with jax.enable_x64(True):
        text = str(jax.make_jaxpr(reduced(lambda x: x @ x, config.FLOAT32))(np.ones((3, 3))))
    assert "f32[3,3] = dot_general" in text and text.count("HIGHEST") == 2, text


def algebra(x: Any) -> Any:
    square = x[:8, :8] + 30.0 * np.eye(8)
    return np.linalg.solve(square, x[0, :8]), np.linalg.inv(square), np.linalg.det(square), np.fft.rfft(x)


@pytest.mark.parametrize("precision", REDUCED)
def test_linear_algebra_and_transforms(precision: str) -> None:
    x = field(20, 16)
    for found, expected in zip(replayed(algebra, precision, x), algebra(x), strict=True):
        assert error(found, expected) < 1e-5


def other_dtypes(x: Any, i: Any, s: Any, z: Any) -> Any:
    return (
        i * 3 + 1,
        s * np.float32(0.1),
        (s.astype(float) * 0.1),
        z * z.conj(),
        (x * 100).astype(np.int16),
        i / 3,
        x > i,
    )


@pytest.mark.parametrize("precision", REDUCED)
def test_other_dtypes_are_as_they_were(precision: str) -> None:
    x = field(6, 5)
    args = x, np.arange(30).reshape(6, 5), x.astype(np.float32), x + 1j * x
    found, expected = replayed(other_dtypes, precision, *args), other_dtypes(*args)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=4 * EPS)


# -- control flow ------------------------------------------------------------------------------------------------------


def sweep(x: Any) -> Any:
    """A recurrence over rows, which becomes a scan: its carry begins as float64."""
    y = x.copy()
    for i in range(1, 40):
        y[i] = 0.5 * y[i - 1] + np.sin(y[i])
    return y


def settle(x: Any) -> Any:
    """A loop by data."""
    change, count, total = 1.0, 0, 0.0
    while change > 1e-3 and count < 60:
        y = 0.5 * (x + np.roll(x, 1, axis=1))
        change = float(np.abs(y - x).max())
        total = total + change
        x = y
        count += 1
    return x, total


def substeps(x: Any) -> Any:
    """Loops in loops."""
    for k in range(1, 6):
        for i in range(k, 30):
            x[i] = x[i] + 0.1 * k * (x[i - 1] - x[i])
    return x.sum(axis=1)


@pytest.mark.parametrize("precision", REDUCED)
@pytest.mark.parametrize("function", [sweep, settle, substeps])
def test_loops(function: Callable[..., Any], precision: str) -> None:
    mine, theirs = field(40, 30), field(40, 30)
    found, expected = replayed(function, precision, mine), function(theirs)
    if isinstance(expected, tuple):
        assert abs(found[1] - expected[1]) < 1e-5 * expected[1]
        found, expected = found[0], expected[0]
    assert error(found, expected) < 1e-5
    assert error(mine, theirs) < 1e-5


def test_a_choice_has_one_dtype_and_a_computation_of_its_own_is_traced_again() -> None:
    import jax
    from jax import lax
    from jax import numpy as jnp

    def function(x: Any, i: Any) -> Any:
        chosen = lax.cond(x.sum() > 0, lambda x: x * 2.0, lambda x: x, x)
        picked = lax.reduce(x * 1.1, np.float64(0), lambda a, b: lax.select(a >= b, a, b), (0, 1))
        carry, rows = lax.scan(lambda c, row: (jnp.minimum(c, row), (row * 1.5, c)), x[0], x)
        last = lax.while_loop(lambda c: c[1] < 5, lambda c: (c[0] * 1.1, c[1] + 1), (x, 0))
        return (
            chosen,
            picked,
            carry,
            rows,
            last,
            x.at[i].add(1.0),
            (x * 1.5).at[i].max(3.0),
            jax.scipy.special.gammaln(x),
        )

    with jax.enable_x64(True):
        x, i = jnp.asarray(field(6, 5)), jnp.array([1, 1, 4])
        expected = jax.jit(function)(x, i)
        for precision in REDUCED:
            found = jax.jit(reduced(function, precision))(x, i)
            for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, rtol=1e-4)
            text = str(jax.make_jaxpr(reduced(function, precision))(x, i))
            assert "f32[6,5]" in text


def test_one_pass_over_a_program_does_not_trace_its_loops_again_and_again() -> None:
    """The dtypes of a loop's carry follow from tables: nested loops are traced once for each level, not twice."""
    import jax
    from jax import lax

    traced = []

    def nested(depth: int, x: Any) -> Any:
        if not depth:
            return x * 1.5
        return lax.fori_loop(0, 2, lambda _, x: nested(depth - 1, x), x)

    with jax.enable_x64(True):
        closed = jax.make_jaxpr(lambda x: nested(6, x))(np.ones(3))
        from accel.compiler.lower.precision import widths

        counted = widths.Widths(config.FLOAT32)
        plain = counted._of
        counted._of = lambda *args: (traced.append(1), plain(*args))[1]  # type: ignore[method-assign]
        assert counted.of(closed, [np.dtype(float)]) == [np.float32]
    assert len(traced) < 40
