"""The sides of a branch in one program: what is stored while one is traced is not there for the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accel.compiler.lower.passes import branches
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


DEAR = {
    "transform": lambda x: np.fft.irfft(np.fft.rfft(x, axis=1), n=x.shape[1], axis=1),
    "product": lambda x: x @ x,
    "sort": lambda x: np.sort(x, axis=0),
    "solve": lambda x: np.linalg.solve(x + 90.0 * np.eye(len(x)), x),
}


@pytest.mark.parametrize("name", DEAR)
def test_what_is_dear_is_computed_only_on_the_side_that_needs_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    dear, found = DEAR[name], list[Any]()
    branched = branches.branched

    def watched(*args: Any) -> Any:
        found.extend(branched(*args))
        return found[:]

    def filtered(x: Any, limit: float) -> Any:
        if x.sum() > limit:
            x = dear(x)
        return x * 2.0

    x = np.random.default_rng(1).random((80, 80))
    calls = [(x, 0.0), (x, 1e9)]
    monkeypatch.setattr(branches, "branched", watched)
    program = Merged(traces_of(filtered, calls))
    assert any(isinstance(each, branches.Conditional) for each in found)
    for call in calls:
        answered, result = program.run(call)
        assert answered
        np.testing.assert_allclose(result, filtered(*call), rtol=1e-10)
