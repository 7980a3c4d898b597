"""Casts between all dtypes, bit for bit as NumPy's, at the edges of each dtype and beside the middles between two."""

from __future__ import annotations

import functools
import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import signal

import accel
from accel.platform.ledger import open_ledger
from accel.rules import core, load
from tests.rules.oracle import Job, expression, judge

jax = pytest.importorskip("jax")
load()

DTYPES = "? b h i q B H I Q e f d F D".split()


def integers(dtype: np.dtype[Any]) -> Any:
    """Powers of two and numbers beside them, and the middles between neighbours in float16, float32 and float64."""
    info = np.iinfo(dtype)
    found = {sign * (2**power + by) for power in range(65) for by in range(-3, 4) for sign in (1, -1)}
    for digits, power in itertools.product((11, 24, 53), range(65)):
        half = 2 ** max(power - digits, 0)
        found |= {2**power + odd * half + by for odd in (1, 3) for by in (-1, 0, 1)}
    found |= {sign * (65520 + by) for by in (-1, 0, 1) for sign in (1, -1)}  # float16 ends here
    return np.array(sorted(each for each in found if info.min <= each <= info.max), dtype)


def floats(dtype: np.dtype[Any]) -> Any:
    """All float16 and some float32, the middles between two of them, and the numbers beside all of these."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(float)
    patterns = np.linspace(0x800000, 0x7F7FFFFE, 2000).astype(np.uint32)[:, None] + np.arange(2, dtype=np.uint32)
    singles = patterns.ravel().view(np.float32).astype(float)
    found = [np.array([0.0, np.inf, np.nan, 65520.0, 2.0**128]), 2.0 ** np.arange(-30, 66), 2.0 ** np.arange(66) - 0.5]
    for values in (halves, singles):
        middles = values[:-1] + np.diff(values) / 2
        found += [values, middles, *(middles * (1 + by) for by in (2.0**-30, -(2.0**-30)))]
    with np.errstate(over="ignore"):
        all_of_them = np.concatenate(found).astype(dtype)
        beside = [np.nextafter(all_of_them, dtype.type(end)) for end in (np.inf, -np.inf)]
    every = np.concatenate([all_of_them, *beside])
    return np.concatenate([every, -every])


def values_of(dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "biu":
        return np.array([False, True]) if dtype.kind == "b" else integers(dtype)
    found = floats(np.empty(0, dtype).real.dtype)
    if dtype.kind == "c":
        parts, found = found, np.empty(found.size, dtype)
        found.real, found.imag = parts, parts[::-1]
    return found


def parts_of(array: Any) -> list[Any]:
    return [array.real, array.imag] if array.dtype.kind == "c" else [array]


def flushed(array: Any) -> Any:
    """Where a float32 or float64 is too small to be normal: XLA on the CPU may take it for zero."""
    if array.dtype.kind not in "fc" or array.dtype == np.float16:
        return np.zeros(array.shape, bool)
    small = [(part != 0) & (abs(part) <= np.finfo(part.dtype).tiny) for part in parts_of(array)]
    return np.logical_or.reduce(small)


def bits_of(part: Any) -> Any:
    if part.dtype.kind != "f":
        return part
    same = np.where(np.isnan(part), part.dtype.type(np.nan), part)  # which NaN it is, nothing tells apart
    return same.view(f"u{part.dtype.itemsize}")


def fitting(x: Any, dtype: np.dtype[Any]) -> Any:
    """Where NumPy's cast to integers is defined, but for its wrapping below 32 bits."""
    info, whole = np.iinfo(core.cast_through(dtype)), np.trunc(x.real.astype(float))
    return (whole >= float(info.min)) & (whole < float(info.max) + 1.0)


@pytest.mark.parametrize("source", DTYPES)
def test_casts_give_numpys_bits(source: str) -> None:
    x = values_of(np.dtype(source))
    targets = [np.dtype(each) for each in DTYPES if each != source]
    with jax.enable_x64(True):
        found = jax.jit(lambda given: [core.cast(given, dtype) for dtype in targets])(x)
    for dtype, mine in zip(targets, map(np.asarray, found), strict=True):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of imaginary parts that are dropped
            expected = x.astype(dtype)
        sure = ~flushed(expected) & ~flushed(x)
        if x.dtype.kind in "fc" and dtype.kind in "iu":
            sure &= fitting(x, dtype)
        assert mine.dtype == dtype
        for one, other in zip(parts_of(expected), parts_of(mine), strict=True):
            wrong = np.flatnonzero(sure & (bits_of(one) != bits_of(other)))
            assert not wrong.size, (dtype, wrong.size, x[wrong[:3]], one[wrong[:3]], other[wrong[:3]])


def drawn(size: float, seed: int) -> tuple[Any, ...]:
    return (size * np.random.default_rng(seed).normal(size=100),)


def judged(text: str, size: float) -> Job:
    (job,) = judge([Job(text, expression(text, "x"), functools.partial(drawn, size))])
    assert not job.problems
    return job


@pytest.mark.skipif(not core.IS_X86, reason="which integer it is depends on the processor")
@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16"])
def test_floats_wrap_in_small_integers(dtype: str) -> None:
    """C cuts an `int` off."""
    for text in (f"x.astype(np.{dtype})", f"y = np.zeros(100, np.{dtype}); y[:] = x; y", f"np.array(x, np.{dtype})"):
        assert judged(text, 1e6).hits == 3
    assert judged(f"x[x > 0].astype(np.{dtype}).sum()", 1e6).hits == 3


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("text", ["x.astype(np.{})", "x[x > 0].astype(np.{}).sum()", "np.array(x[x > 0], np.{}).max()"])
def test_what_no_integer_holds_is_left_to_numpy(text: str, dtype: str) -> None:
    assert judged(text.format(dtype), 1e20).status == "rule.parameter"


def test_only_what_a_mask_selects_has_to_fit() -> None:
    assert judged("y = np.where(x > 0, x, np.nan); y[x > 0].astype(int).sum()", 10.0).hits == 3
    assert judged("n = np.zeros(100, int); n[x > 0] = np.sqrt(x)[x > 0]; n", 10.0).hits == 3


def test_a_selection_that_no_longer_fits_is_left_to_numpy() -> None:
    text = "x[x > 0].astype(np.int32).sum()"
    (job,) = judge([Job(text, expression(text, "x"), lambda seed: drawn(10.0 ** (1 + 10 * seed), seed))])
    assert (job.problems, job.hits) == ([], 1)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64"])
@pytest.mark.parametrize(
    "text",
    "x.sum(dtype=np.{0}) | x.prod(dtype=np.{0}) | x.mean(dtype=np.{0}) | np.cumsum(x, dtype=np.{0}) | "
    "np.add.accumulate(x, dtype=np.{0}) | np.nansum(x, dtype=np.{0}) | x[x > 0].mean(dtype=np.{0}) | "
    "np.trace(np.outer(x, x), dtype=np.{0})".split(" | "),
)
def test_floats_reduced_as_whole_numbers_are_left_to_numpy(text: str, dtype: str) -> None:
    """JAX casts 70000.7 to the nearest int16, which is 32767: NumPy's is 4464."""
    assert judged(text.format(dtype), 1e5).status == "rule.parameter"


@pytest.mark.usefixtures("foreground")
@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i2"])
def test_constants_around_an_array_wrap(dtype: str) -> None:
    @accel.accelerate
    def step(a: Any, x: Any) -> Any:
        return np.pad(a, 1, constant_values=(1.75, -3.5)), np.pad(a, 1, constant_values=x[:1]), np.pad(a, 1)

    a = np.arange(6).astype(dtype)
    for call in range(20):
        x = np.array([7.5 - call if call > 12 else 7.5 + call])
        for found, expected in zip(step(a, x), step.__wrapped__(a, x), strict=True):
            np.testing.assert_array_equal(found, expected)
    assert open_ledger(step._self_target.name).compiled_calls > 8


@pytest.mark.usefixtures("foreground")
@pytest.mark.parametrize("method", ["auto", "fft", "direct"])
@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.uint32, np.int64])
@pytest.mark.parametrize("function", [signal.convolve, signal.correlate])
def test_convolutions_of_whole_numbers_that_overflow(function: Any, dtype: Any, method: str) -> None:
    """SciPy's transforms give floats, which are cast."""

    @accel.accelerate
    def step(a: Any, b: Any) -> Any:
        return function(a, b, method=method)

    for size in (*range(1, 10), 2**14, 2**15 - 1, 2**18):
        arrays = [np.full(60, min(size, np.iinfo(dtype).max), dtype).reshape(3, 4, 5) for _ in range(2)]
        np.testing.assert_array_equal(step(*arrays), step.__wrapped__(*arrays))
    if method == "direct" or dtype == np.int64:
        assert open_ledger(step._self_target.name).compiled_calls
