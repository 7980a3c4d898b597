"""Numbers that a narrower float does not hold: NumPy's results, where JAX would compute in that float."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

import accel
from accel.platform.ledger import open_ledger

CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "close integers": lambda k, f, n: np.isclose(k, k + 1, rtol=0, atol=0.5),
    "integers close to floats": lambda k, f, n: np.isclose(k, f, rtol=0, atol=0.5),
    "floats close to integers": lambda k, f, n: np.isclose(f, k, rtol=0, atol=0.5),
    "floats close to a number": lambda k, f, n: np.isclose(f, float(k[0]) + 1.0, rtol=0, atol=0.5),
    "all are close": lambda k, f, n: np.allclose(k[:1], k[:1] + 1, rtol=0, atol=0.5),
    "equal arrays": lambda k, f, n: np.array_equal(k[:1] + 1, f[:1]),
    "equivalent arrays": lambda k, f, n: np.array_equiv(k[:1] + 1, f[0]),
    "borders of means": lambda k, f, n: np.pad(k, 2, mode="mean"),
    "borders of medians": lambda k, f, n: np.pad(k, 2, mode="median"),
    "borders of some means": lambda k, f, n: np.pad(k, 1, mode="mean", stat_length=3),
    "slopes over wider distances": lambda k, f, n: np.gradient(f, np.cumsum(np.abs(n - 2**53) + 0.3)),
    "slopes over narrower distances": lambda k, f, n: np.gradient(k / 3, np.cumsum(f / np.float32(3))),
    "slopes at the edges": lambda k, f, n: [
        np.gradient(np.sqrt(k), distance, edge_order=2) for distance in (n % 97 / 7 + 0.3).tolist()
    ],
    "medians of long integers": lambda k, f, n: ndimage.median_filter(n, 3),
    "ranks of long integers": lambda k, f, n: ndimage.rank_filter(n.astype(np.uint64), 2, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_compared_and_computed_as_numpys(name: str, foreground: None) -> None:
    fast, plain = accel.accelerate(CASES[name], name=name), CASES[name]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        k = rng.integers(2**24 - 3, 2**24 + 9, 9, dtype=np.int32)
        k[0] = 2**24
        given = k, k.astype(np.float32), rng.integers(2**53 - 9, 2**53 + 9, 9)
        found, expected = fast(*given), plain(*given)
        np.testing.assert_array_equal(found, expected)
        assert np.asarray(found).dtype == np.asarray(expected).dtype
    assert open_ledger(name).compiled_calls
    assert not open_ledger(name).refusals


def test_a_distance_of_zero_raises_where_python_divides_by_it(foreground: None) -> None:
    def slopes(x: Any, distance: float) -> Any:
        return np.gradient(x, distance, edge_order=2)

    fast, x = accel.accelerate(slopes, name="distances of zero"), np.arange(6.0) ** 2
    for distance in (0.5, 0.7, 0.9, 1.1, 1.3):
        np.testing.assert_array_equal(fast(x, distance), slopes(x, distance))
    with pytest.raises(ZeroDivisionError):
        fast(x, 0.0)
    assert open_ledger("distances of zero").compiled_calls
    assert "verify.mismatch" not in [each.reason for each in open_ledger("distances of zero").refusals]


REFUSED: dict[str, Callable[[Any], Any]] = {
    "variances of integers around a number": lambda x: (np.var(x, mean=0), np.std(x.astype(np.int8), mean=3)),
    "variances of floats around a wider mean": lambda x: np.var(x.astype(np.float32), mean=x[0] / 3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_and_scipy_compute_in_a_narrower_dtype_stays_theirs(name: str, foreground: None) -> None:
    fast, plain = accel.accelerate(REFUSED[name], name=name), REFUSED[name]
    for seed in range(6):
        x = np.random.default_rng(seed).integers(-100, 100, 9).astype(np.int16)
        np.testing.assert_array_equal(fast(x), plain(x))
    assert {refusal.reason for refusal in open_ledger(name).refusals} == {"rule.parameter"}
