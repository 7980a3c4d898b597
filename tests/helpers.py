"""Helpers that many tests share."""

from __future__ import annotations

from typing import Any

import numpy as np


def some(seed: int, *shape: int) -> Any:
    """An array of normal random numbers, the same for a seed; of four elements where no shape is given."""
    return np.random.default_rng(seed).normal(size=shape or (4,))
