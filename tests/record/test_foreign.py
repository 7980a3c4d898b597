"""Objects whose class is the program's, given to NumPy: their code runs as often as without accel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accel

pytestmark = pytest.mark.usefixtures("foreground")


class Numbers:
    """An array to NumPy, and a number to it and Python, that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.asked += 1
        return np.arange(5.0)

    def __index__(self) -> int:
        self.asked += 1
        return 3

    def __float__(self) -> float:
        self.asked += 1
        return 3.0

    def __radd__(self, other: Any) -> Any:
        self.asked += 1
        return other

    def mean(self, **_: Any) -> float:
        self.asked += 1
        return 2.0


def _stored(x: Any, held: Any) -> Any:
    y = x.copy()
    y[:] = held
    y[held] += 1.0
    return y


USES: dict[str, Callable[[Any, Any], Any]] = {
    "asarray": lambda x, held: np.asarray(held) * 2.0 + x,
    "ufunc": lambda x, held: np.maximum(held, 0.5) + x,
    "operator": lambda x, held: x + held,
    "list": lambda x, held: np.array([held, held])[0] + x,
    "concatenate": lambda x, held: np.concatenate([held, x]),
    "its own method": lambda x, held: np.mean(held) + x,
    "keyword": lambda x, held: np.roll(x, shift=held),
    "method": lambda x, held: x.dot(held) + x,
    "index": lambda x, held: x[held] + x,
    "slice": lambda x, held: x[held:].sum() + x,
    "stored": _stored,
    "math": lambda x, held: math.sqrt(held) + x,
}


@pytest.mark.parametrize("name", USES)
def test_code_runs_once_in_each_call(name: str) -> None:
    held, plain = Numbers(), Numbers()
    fast = accel.accelerate(lambda x: USES[name](x, held), name=f"foreign {name}")
    for _ in range(6):
        x = np.ones(5)
        np.testing.assert_array_equal(fast(x), USES[name](x, plain))
        assert held.asked == plain.asked
