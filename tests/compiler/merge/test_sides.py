"""The sides of a branch in one program: what is stored while one is traced is not there for the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.compiler.merge.runs import Merged, traces_of


def neighbours(x: Any, y: Any, way: int) -> Any:
    up, right = [(1, 0), (-1, 0), (0, 1), (0, -1)][way]
    return x - np.exp(np.roll(x, (up, right), (0, 1))), y - np.roll(y, (up, right), (0, 1))


def test_copies_for_rolls_belong_to_the_side_that_makes_them() -> None:
    draw = np.random.default_rng(1)
    x, y = draw.random((2, 80, 90))  # large enough for copies with continued ends
    calls = [(x, y, way) for way in range(4)]
    program = Merged(traces_of(neighbours, calls))
    for call in calls:
        answered, result = program.run(call)
        assert answered
        np.testing.assert_allclose(result, neighbours(*call), rtol=1e-10)
