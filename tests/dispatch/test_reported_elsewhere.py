"""Small programs that public reports of other accelerators name as wrong: each gives NumPy's bits when compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accel
from accel.platform import config
from accel.platform.ledger import open_ledger

pytestmark = pytest.mark.usefixtures("foreground")

CALLS = 9


def held(function: Callable[..., Any], make: Callable[[Any], tuple[Any, ...]]) -> None:
    """Assert that results and arguments of all calls have NumPy's bits, and that most calls ran compiled."""
    fast = accel.accelerate(function, name=function.__name__)
    for i in range(CALLS):
        plain, given = make(np.random.default_rng(i)), make(np.random.default_rng(i))
        with np.errstate(all="ignore"):
            expected, found = function(*plain), fast(*given)
        for left, right in zip((expected, *plain), (found, *given), strict=True):
            left, right = np.asarray(left), np.asarray(right)
            assert left.dtype == right.dtype
            np.testing.assert_array_equal(right, left)
            if left.dtype.kind == "f":
                np.testing.assert_array_equal(np.signbit(right), np.signbit(left))
    assert open_ledger(function.__name__).compiled_calls >= 5


def forwards(x: Any) -> Any:
    x[1:] = x[:-1]
    x[2:] += x[:-2]
    return x[::2] * 2.0


def backwards(x: Any) -> Any:
    x[:-1] = x[1:]
    x[::-1] -= x
    x[3:-1], x[2:-2] = x[2:-2], x[3:-1]
    return x + 1.0


@pytest.mark.parametrize("shift", [forwards, backwards])
@pytest.mark.parametrize("size", [8, 10_000, 20_000])
def test_writes_through_overlapping_slices(shift: Any, size: int) -> None:
    held(shift, lambda rng: (rng.normal(size=size),))


def test_a_second_store_to_the_same_array() -> None:
    def twice(x: Any, out: Any) -> Any:
        out[:] = x * 2.0
        out[1:3] = x[1:3] - 1.0
        out[:] = out + x
        out[2] = 5.0
        return out * x

    held(twice, lambda rng: (rng.normal(size=50), rng.normal(size=50)))


def test_empty_slices_on_both_sides() -> None:
    def nothing(x: Any) -> Any:
        x[5:5] = x[3:3]
        x[9:] = x[20:]
        x[4:2] += 1.0
        return x[7:7].sum() + x * 2.0

    held(nothing, lambda rng: (rng.normal(size=9),))


def test_an_exponential_of_nan() -> None:
    def exponential(x: Any) -> Any:
        return np.exp(x * np.nan) + np.exp(x * 0.0 * np.nan)

    held(exponential, lambda rng: (rng.normal(size=100),))


def test_nan_survives_a_product_with_zero() -> None:
    def spoilt(a: Any, b: Any) -> Any:
        return a + b.mean() * 0.0

    def make(rng: Any) -> tuple[Any, ...]:
        b = rng.normal(size=100)
        b[rng.integers(100)] = np.nan if rng.random() < 0.5 else np.inf
        return rng.normal(size=100), b

    held(spoilt, make)


def test_images_with_negative_strides() -> None:
    def mirrored(image: Any) -> Any:
        flipped = image[::-1, ::-1]
        image[:, ::-1] += flipped[::2].repeat(2, axis=0)
        return flipped.astype(np.int16) - image + flipped[:, ::3].max()

    held(mirrored, lambda rng: (rng.integers(0, 256, (64, 48), np.uint8)[::-1, ::-1],))


def test_sums_over_shifted_windows_of_integers() -> None:
    def windows(counts: Any) -> Any:
        total = np.zeros((30, 40), np.float32)
        for i in range(3):
            for j in range(3):
                total += counts[i : i + 30, j : j + 40] * np.float32(0.125)
        return total

    held(windows, lambda rng: (rng.integers(0, 1000, (32, 42)),))


def test_a_gather_from_a_constant_by_a_range() -> None:
    table = np.linspace(0.0, 1.0, 40) ** 2

    def gathered(x: Any) -> Any:
        return x + (table * 2.0)[np.arange(x.size)] - table[np.arange(x.size)[::-1]]

    held(gathered, lambda rng: (rng.normal(size=40),))


def test_a_view_taken_before_its_array_changes() -> None:
    def viewed(x: Any) -> Any:
        row = x[2]
        x += 1.0
        row *= 2.0
        x[2, 1:] = row[:-1]
        return row - x[0]

    held(viewed, lambda rng: (rng.normal(size=(5, 30)),))


def test_a_histogram_of_what_is_not_finite_raises_as_numpy_does() -> None:
    fast = accel.accelerate(lambda x: np.histogram(x, bins=5), name="histogram")
    for i in range(CALLS):
        x = np.random.default_rng(i).normal(size=30)
        np.testing.assert_array_equal(fast(x)[0], np.histogram(x, bins=5)[0])
    assert open_ledger("histogram").compiled_calls >= 5
    for _ in range(3):
        with pytest.raises(ValueError, match="not finite"):
            fast(np.full(30, np.inf))


def test_views_of_empty_arrays_stay_compiled() -> None:
    fast = accel.accelerate(lambda x: (x.T, x[::-1], x * 2.0), name="empty")
    for _ in range(CALLS):
        assert [part.shape for part in fast(np.zeros((0, 3)))] == [(3, 0), (0, 3), (0, 3)]
    assert open_ledger("empty").compiled_calls >= 5


def test_one_exponent_for_an_array_takes_numpys_shortcuts() -> None:
    def powers(x: Any, exponent: float) -> Any:
        return x**exponent

    fast = accel.accelerate(powers, name="powers")
    x = np.concatenate([[-np.inf, -0.0], np.random.default_rng(0).uniform(0.1, 9.0, 500)])
    for i in range(CALLS):
        fast(np.abs(x), 1.1 + i / 10)
    with np.errstate(all="ignore"):
        for exponent in (0.5, 2.0, -1.0):
            np.testing.assert_array_equal(fast(x.copy(), exponent), x**exponent)
    assert open_ledger("powers").compiled_calls >= 5


@pytest.mark.parametrize(("size", "exponent"), [(1, np.array([0.5])), (1, 0.5), (2, np.array([0.5]))])
def test_an_exponent_in_an_array_has_shortcuts_for_several_elements_alone(size: int, exponent: Any) -> None:
    fast = accel.accelerate(lambda x, y: x**y, name="few")
    x = np.full(size, -np.inf)
    with np.errstate(all="ignore"), config.override(ahead_of_time=False):
        for _ in range(CALLS):
            np.testing.assert_array_equal(fast(x, exponent), x**exponent)
            exponent = exponent + 0.0
    assert open_ledger("few").compiled_calls >= 5
