"""Elementary functions in vectors: NumPy's values at the edges, elsewhere within two units in the last place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import accel
from accel import config
from accel.lower import Known, lower
from accel.record import record
from accel.rules import elementary, load
from accel.rules.elementary import bits, choice
from accel.rules.tables import ufuncs
from accel.rules.tracing import traced

jax = pytest.importorskip("jax")
load()

NAMES = sorted(elementary.FUNCTIONS)
TINY = np.finfo(float).tiny
SIZE = 4096
ULPS = 2.0
OF_A_QUOTIENT = {"tan": 3.0}
"""Of a function that is a quotient of two others."""

EDGES = np.array(
    [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 10.0, 1000.0, 0.1, 7 / 16, 11 / 16, 1e-5, 1e-20, 1e-300, 1e22, 1e300]
    + [1 + 2.0**-52, 1 - 2.0**-53, 2.0**52 + 0.5, 2.0**53, 2.0**53 - 1, 2.0**53 + 2, 710.4, 710.6, 1024.0, 1023.5]
    + [1.0 / 3.0, 745.2, 1074.0, TINY, np.finfo(float).max, np.inf, np.nan]
)
EDGES = np.concatenate([EDGES, -EDGES])


def logarithmic(rng: np.random.Generator, low: float, high: float) -> Any:
    return np.exp(rng.uniform(np.log(low), np.log(high), SIZE)) * rng.choice([1.0, -1.0], SIZE)


RANGES: dict[str, Callable[[np.random.Generator], Any]] = {
    "unit": lambda rng: rng.uniform(-1, 1, SIZE),
    "tens": lambda rng: rng.uniform(-10, 10, SIZE),
    "hundreds": lambda rng: rng.uniform(-720, 720, SIZE),
    "small": lambda rng: logarithmic(rng, 1e-30, 1.0),
    "everything": lambda rng: logarithmic(rng, TINY, 1e308),
    "turns": lambda rng: rng.uniform(-(2.0**20), 2.0**20, SIZE),
    "quarter turns": lambda rng: rng.integers(-600_000, 600_000, SIZE) * (np.pi / 4),
    "near one": lambda rng: 1.0 + logarithmic(rng, 1e-16, 0.3),
    "powers of ten": lambda rng: np.resize(10.0 ** np.arange(-300, 301), SIZE),
}

EXPONENTS: dict[str, Callable[[np.random.Generator], Any]] = {
    **RANGES,
    "whole": lambda rng: rng.integers(-60, 60, SIZE).astype(float),
    "a third": lambda rng: np.full(SIZE, 1.0 / 3.0),
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


@functools.cache
def compiled(name: str, options: tuple[tuple[str, int], ...] = ()) -> Callable[..., Any]:
    return jax.jit(elementary.FUNCTIONS[name], compiler_options=dict(options) or None)


def computed(name: str, *operands: Any) -> Any:
    with jax.enable_x64(True):
        return np.asarray(compiled(name)(*operands))


def normal(x: Any) -> Any:
    """Subnormal numbers as zeros: that is what XLA:CPU takes them for."""
    return np.where(abs(x) < TINY, np.copysign(0.0, x), x)


def ufunc(name: str) -> np.ufunc:
    return getattr(np, name)


def errors(name: str, found: Any, *operands: Any) -> Any:
    """In units of the last place, against long doubles; infinite where NaN, infinities, zeros or signs differ."""
    exact = ufunc(name)(*(x.astype(np.longdouble) for x in operands))
    rounded = ufunc(name)(*operands)
    unit = np.spacing(abs(exact.astype(float)))
    if name == "logaddexp":  # a difference of nearly equal numbers: no formula has its last digits
        finite = [np.where(np.isfinite(x), abs(x), 1.0) for x in operands]
        unit = np.maximum(unit, np.spacing(np.maximum(1.0, np.max(finite, axis=0))))
    off = (abs(found.astype(np.longdouble) - exact) / unit).astype(float)
    ends = (found == rounded) | (np.isnan(found) & np.isnan(rounded)) | (abs(rounded) < TINY) & (abs(found) <= TINY)
    off = np.where(np.isfinite(rounded) & (abs(rounded) >= TINY), off, np.where(ends, 0.0, np.inf))
    signs = np.isnan(rounded) | (np.signbit(found) == np.signbit(rounded)) | ((rounded == 0.0) & (name == "logaddexp"))
    return np.where(signs, off, np.inf)


def check(name: str, *operands: Any, ulps: float | None = None, found: Any = None) -> None:
    ulps = OF_A_QUOTIENT.get(name, ULPS) if ulps is None else ulps
    found = computed(name, *operands) if found is None else found
    off = errors(name, found, *operands)
    at = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
    shown = [float(x[at]) for x in operands]
    assert off[at] <= ulps, f"{name}{shown}: {float(found[at])!r}, NumPy {ufunc(name)(*shown)!r}, off by {off[at]}"


def pairs(x: Any, y: Any) -> tuple[Any, Any]:
    return np.repeat(x, len(y)), np.tile(y, len(x))


long = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="long double has no more digits than double here")


@long
@pytest.mark.parametrize("name", NAMES)
def test_edges_are_numpys(name: str) -> None:
    check(name, *(pairs(EDGES, EDGES) if ufunc(name).nin == 2 else (EDGES,)))


@long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("within", RANGES)
def test_two_units_in_the_last_place(name: str, within: str) -> None:
    rng = np.random.default_rng(NAMES.index(name))
    if ufunc(name).nin == 1:
        check(name, RANGES[within](rng))
    for make in EXPONENTS.values() if ufunc(name).nin == 2 else ():
        check(name, RANGES[within](rng), make(rng))


PATTERNS = arrays.arrays(np.uint64, 128, elements=st.integers(0, 2**64 - 1))


@long
@given(PATTERNS, PATTERNS)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_all_bit_patterns(left: Any, right: Any) -> None:
    operands = [normal(each.view(float)) for each in (left, right)]
    with np.errstate(all="ignore"):
        for name in NAMES:
            check(name, *operands[: ufunc(name).nin])


@long
@pytest.mark.parametrize("name", ["log", "log2", "log10", "cbrt"])
def test_positive_subnormal_numbers_are_not_taken_for_zero(name: str) -> None:
    check(name, np.resize([5e-324, 1e-310, 2.2e-308, 3e-320], 64))


@long
def test_powers_of_subnormal_numbers() -> None:
    check("power", *pairs(np.array([5e-324, 1e-310, 2.2e-308]), np.array([0.5, -0.25, 1 / 3, 0.9, -0.9])))


@long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", [0, 3])
def test_what_stands_beside_them_changes_nothing(name: str, level: int) -> None:
    """XLA computes producers and readers in the same loop, adds constants together, and joins products with sums."""
    rng = np.random.default_rng(7)
    operands = [RANGES["tens"](rng) + 0.25 for _ in range(ufunc(name).nin)]

    def among_others(*halves: Any) -> Any:
        found = elementary.FUNCTIONS[name](*(half * 4.0 - (half + half) for half in halves))
        return found, found * 3.0 + 1.0, (found - 1.0) + halves[0]

    with jax.enable_x64(True):
        options = {"xla_backend_optimization_level": level}
        found, scaled, moved = jax.jit(among_others, compiler_options=options)(*(x / 2 for x in operands))
    check(name, *operands, found=np.asarray(found))
    np.testing.assert_allclose(scaled, np.asarray(found) * 3.0 + 1.0, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(moved, (np.asarray(found) - 1.0) + operands[0] / 2, rtol=1e-15, atol=1e-15)


def test_a_polynomial_of_any_length() -> None:
    for length in range(1, 9):
        coefficients = tuple(float(k + 1) for k in range(length))
        assert bits.polynomial(3.0, coefficients) == np.polyval(coefficients[::-1], 3.0)


# -- where they are used ----------------------------------------------------------------------------------------------


def operations(function: Callable[..., Any], *operands: Any) -> str:
    """The program that JAX traces, as text."""
    with jax.enable_x64(True):
        return str(jax.make_jaxpr(function)(*operands))


BITS = "bitcast_convert_type"


def model(x: Any, y: Any) -> Any:
    return np.log(abs(x) + 1.0) + np.arctan2(x, y) + np.arcsin(0.5 * np.sin(x)) + (abs(y) + 0.5) ** 0.3


def program(dtype: Any = float, size: int = 64, **options: Any) -> str:
    operands = (np.linspace(0.1, 2.0, size).astype(dtype), np.linspace(3.0, 4.0, size).astype(dtype))
    trace = record(model, operands, {}, max_nodes=1000).trace
    assert trace is not None
    made = lower(trace, Known(), **options)
    return operations(made.function, list(operands), [np.bool_(True)], {})


def test_programs_for_the_cpu_use_them() -> None:
    assert program().count(BITS) > 4


@pytest.mark.parametrize(
    "options",
    [{"on_cpu": False}, {"precision": config.FLOAT32}, {"dtype": np.float32}, {"dtype": complex}, {"size": 8}],
    ids=str,
)
def test_other_programs_do_not(options: Any) -> None:
    if options.get("dtype") is complex:
        assert elementary.chosen("log", np.ones(100, complex)) is jax.numpy.log
    else:
        assert BITS not in program(**options)


def test_programs_that_are_differentiated_do_not() -> None:
    x, y = np.linspace(0.1, 2.0, 64), np.linspace(3.0, 4.0, 64)

    def total(x: Any, y: Any) -> Any:
        return np.sum(model(x, y))

    pure = accel.to_jax(total, x, y)
    with jax.enable_x64(True):
        assert BITS not in operations(pure, {"x": x, "y": y})
        found = np.asarray(accel.grad(total)(x, y))
    step = 1e-6
    expected = (model(x + step, y) - model(x - step, y)) / (2 * step)
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_nothing_is_allowed_outside() -> None:
    assert elementary.chosen("log", np.ones(100)) is jax.numpy.log
    with traced(has_elementary=True):
        assert elementary.chosen("log", np.ones(100)) is not jax.numpy.log
        assert elementary.chosen("power", np.ones(100), 0.3) is not jax.numpy.power
        assert elementary.chosen("log", np.float64(1.0)) is jax.numpy.log
        assert elementary.chosen("exp", np.ones(100)) is jax.numpy.exp
    assert elementary.chosen("log", np.ones(100)) is jax.numpy.log


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_ufunc_with_a_row(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row takes it, numbers among the operands included."""
    monkeypatch.setattr(choice, "FEW", 1)
    x = np.linspace(0.1, 0.9, 12).reshape(3, 4)
    rule = ufuncs.rule_for(ufunc(name))
    for operands in ((x,),) if ufunc(name).nin == 1 else ((x, x[0]), (x, 0.7), (2.5, x)):
        loop = ufuncs.loop_of(ufunc(name), operands, None)
        with jax.enable_x64(True), traced(has_elementary=True):
            given_ = [jax.numpy.asarray(each) if isinstance(each, np.ndarray) else each for each in operands]
            assert "select_n" in operations(lambda *each, loop=loop: rule.lower(*each, loop=loop), *given_)
            found = np.asarray(rule.lower(*given_, loop=loop))
        np.testing.assert_allclose(found, ufunc(name)(*operands), rtol=1e-15)
