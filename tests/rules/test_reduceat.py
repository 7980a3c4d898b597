"""`ufunc.reduceat` with indices that the function computes, or that are arguments: programs call it on the host."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import accel

STARTS = ([0, 3, 9, 40], [2, 2, 5, 6], [0, 1, 1, 49], [7, 20, 20, 20])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int8])
@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.minimum], ids=lambda ufunc: ufunc.__name__)
def test_totals_between_computed_starts(ufunc: Any, dtype: Any, axis: int, foreground: None) -> None:
    def work(x: Any, firsts: Any) -> Any:
        return ufunc.reduceat(x, firsts + 1 - 1, axis=axis)

    fast: Any = accel.accelerate(work)
    rng = np.random.default_rng(0)
    for starts in STARTS + STARTS:
        x = rng.integers(-3, 4, (50, 50)).astype(dtype)
        expected, found = work(x, np.array(starts)), fast(x, np.array(starts))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert fast._self_target.ledger.compiled_calls


@pytest.mark.parametrize("starts", [[5, 3, 9, 1], [-1, 2, 3, 4], [0, 5, 9, 50]], ids=["falling", "negative", "beyond"])
def test_other_starts_are_numpys_to_answer(starts: list[int], foreground: None) -> None:
    fast: Any = accel.accelerate(lambda x, firsts: np.add.reduceat(x, firsts) * 2)
    x = np.arange(50.0)
    good = np.array([0, 3, 9, 40])
    for firsts in (good, good, good, np.array(starts), good, np.array(starts)):
        try:
            expected = np.add.reduceat(x, firsts) * 2
        except IndexError as error:
            with pytest.raises(IndexError, match=re.escape(str(error))):
                fast(x, firsts)
        else:
            np.testing.assert_array_equal(fast(x, firsts), expected)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int8])
@pytest.mark.parametrize("ufunc", [np.hypot, np.gcd, np.power, np.arctan2, np.subtract], ids=lambda each: each.__name__)
def test_few_elements(ufunc: Any, dtype: Any, count: int, foreground: None) -> None:
    """Reductions start at the ufunc's identity, if it has one; others at the first element."""

    def work(x: Any) -> Any:
        return ufunc.reduce(x), ufunc.reduceat(x, [0]), ufunc.reduceat(x, [0, 0])

    if ufunc is np.gcd and dtype is np.float64:
        return
    fast: Any = accel.accelerate(work)
    for _ in range(6):
        x = np.array([-3, 4, 0][:count], dtype)
        for found, expected in zip(fast(x), work(x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert fast._self_target.ledger.compiled_calls or ufunc in (np.power, np.arctan2)
