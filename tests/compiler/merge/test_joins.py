"""Joins: where sides of branches meet, recordings note what the program holds; merged programs of them are right.

ACCEL_LONG_TESTS and ACCEL_TEST_SEED choose more random programs and others.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from accel.record import Completed, record
from tests.compiler.merge.runs import Call, State
from tests.helpers import SEED, examples
from tests.random_programs import try_joins

PROGRAMS = examples(32, 600)
PARTS = 4


def call_of(bits: Sequence[int]) -> Call:
    """A call of a function of a state, of an array for each branch, and of a field."""
    return (
        State(u=np.arange(4.0), k=2.0, n=bits[0]),
        *(np.array([float(bit), 0.0, 0.0, 0.0]) for bit in bits),
        np.linspace(0.0, 1.0, 4),
    )


def of_two_sides(s: Any, a: Any, b: Any, x: Any) -> Any:
    y = np.sin(x) if a.any() else np.cos(x)
    if b.any():
        y = y + 1.0
    s.u = y
    return y * 2.0


def test_a_long_recording_has_few_joins() -> None:
    from accel.record.state.joins import MOST_VISITS

    def long(x: Any) -> Any:
        for k in range(100):
            if x[k % 4] > 0.5:
                x = x * 0.9
        return x

    recorded = record(long, (np.linspace(0.0, 1.0, 4),), {}, max_nodes=10_000)
    assert isinstance(recorded, Completed)
    assert recorded.trace is not None
    assert 0 < len(recorded.trace.joins) <= MOST_VISITS


def test_a_fault_in_noting_joins_does_not_reach_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    from accel.record.state.joins import Joins

    def failing(*args: Any) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(Joins, "_note", failing)
    recorded = record(of_two_sides, call_of((1, 1)), {}, max_nodes=1000)
    assert isinstance(recorded, Completed)
    assert recorded.refusal is None
    assert recorded.trace is not None
    assert recorded.trace.joins == []
    np.testing.assert_array_equal(recorded.result, of_two_sides(*call_of((1, 1))))


# -- random programs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_agree(part: int) -> None:
    tally: collections.Counter[str] = collections.Counter()
    for number in range(PROGRAMS // PARTS):
        tally.update(try_joins(random.Random(f"{SEED} {part} {number}")))
    assert tally["replayed"] >= tally["merged"]
