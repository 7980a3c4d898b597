"""Helpers that many tests share."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

LONG = int(os.environ.get("ACCEL_LONG_TESTS", "0"))
"""0 for the short form of random and conformance tests, as in CI; 1 for the long one (`make test-all`); N for N times
as many random programs as in the long one."""

SEED = int(os.environ.get("ACCEL_TEST_SEED", "0"))
"""Seed of all random programs."""


def examples(short: int, long: int) -> int:
    """Number of random programs to try."""
    return long * LONG if LONG else short


def some(seed: int, *shape: int) -> Any:
    """An array of normal random numbers, the same for a seed; of four elements where no shape is given."""
    return np.random.default_rng(seed).normal(size=shape or (4,))
