"""Folds of many elements by ufuncs that XLA has no running or whole form of: NumPy's values, in compiled calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accel

CASES: dict[str, Callable[[Any, Any], Any]] = {
    "largest so far": lambda x, k: np.maximum.accumulate(x * 2.0, axis=1),
    "least so far": lambda x, k: np.minimum.accumulate(k - 3),
    "a profile less its slope": lambda x, k: np.maximum.accumulate(k[0] - np.arange(131)) + np.arange(131),
    "fmax": lambda x, k: np.fmax.reduce(x + 1.0, axis=0),
    "fmin so far": lambda x, k: np.fmin.accumulate(x + 1.0, axis=-1),
    "parity": lambda x, k: np.bitwise_xor.reduce(k + 1, axis=1, keepdims=True),
    "bits so far": lambda x, k: np.bitwise_or.accumulate(k & 255),
    "common bits": lambda x, k: np.bitwise_and.reduce(k | 5, axis=-1),
    "an odd number of truths": lambda x, k: np.logical_xor.reduce(x > 0.5, axis=0),
    "true so far": lambda x, k: np.logical_and.accumulate(x > -2.0, axis=1),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_many_elements_fold_as_numpys(case: Callable[..., Any], foreground: None) -> None:
    rng = np.random.default_rng(0)
    x, k = rng.standard_normal((129, 131)), rng.integers(-(1 << 40), 1 << 40, (129, 131))
    spoilt = x.copy()
    spoilt[70, 71:75] = np.nan, 0.0, -0.0, np.inf
    fast: Any = accel.accelerate(case)
    for given in (x, -x, x, spoilt, spoilt, x):
        expected, found = case(given, k), fast(given, k)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert fast._self_target.ledger.compiled_calls
