"""Replay: host tapes, guards of constants, and commits."""

from __future__ import annotations

import math
import os
from collections import deque
from typing import Any

import numpy as np
import pytest

import accel
from accel.dispatch.replay import GuardFailure, Matcher
from accel.dispatch.replay.build import as_scalar
from accel.dispatch.replay.commit import store
from accel.dispatch.replay.host import HostTape
from accel.dispatch.replay.steps import steps_of
from accel.platform.ledger import State, open_ledger
from accel.record import record
from accel.record.state.changes import Ends, Write
from accel.record.state.inputs import MISSING, Environment


def recorded(function: Any, *args: Any) -> Any:
    found = record(function, args, {}, max_nodes=1000)
    assert found.refusal is None, found.refusal
    return found.trace


def test_a_host_tape_evaluates_as_python_does() -> None:
    def work(x: Any, n: int, s: float) -> Any:
        return x * ((n % 6) + round(s, 1) + max(n, 2) // 2), (n + 1) * 2

    trace = recorded(work, np.ones(3), 7, 1.25)
    nodes = [node for node in trace.tape.nodes if node.host]
    tape = HostTape(nodes)
    values, failed = trace.inputs.fetch((np.ones(3), 8, 2.75), {})
    assert failed is None
    found = tape.evaluate(values)
    assert found[trace.outputs.numbers[0].index] == 18


def test_a_matcher_names_what_is_different() -> None:
    def work(x: Any, mode: str, n: int) -> Any:
        return x * 2 if n > 3 else x

    matcher = Matcher(recorded(work, np.ones(3), "a", 5))
    assert isinstance(matcher.match((np.zeros(3), "a", 4), {}), list)
    misses = {
        "mode differs from the recording": (np.ones(3), "b", 5),
        "x differs from the recording": (np.ones(4), "a", 5),
        "n differs from the recording": (np.ones(3), "a", 5.0),
        "the number of arguments differs from the recording": (np.ones(3), "a", 5, 6),
    }
    for why, args in misses.items():
        miss = matcher.match(args, {})
        assert isinstance(miss, GuardFailure)
        assert miss.why == why
    taken = matcher.match((np.ones(3), "a", 2), {})
    assert isinstance(taken, GuardFailure)
    assert "was False, not True" in taken.why


def test_a_matcher_sees_new_aliases() -> None:
    def work(x: Any, y: Any) -> Any:
        x += 1
        return y * 2

    matcher = Matcher(recorded(work, np.ones(3), np.ones(3)))
    same = np.ones(4)
    assert isinstance(matcher.match((same[:3], np.ones(3)), {}), list)
    assert isinstance(matcher.match((same[:3], same[1:]), {}), GuardFailure)
    assert isinstance(matcher.match((same[1:], same[1:]), {}), GuardFailure)


@pytest.mark.parametrize("kind", [int, float, complex, np.float32, np.int8, np.bool_])
def test_scalars_keep_their_type(kind: Any) -> None:
    assert type(as_scalar(np.float64(1.0), kind)) is kind


def test_what_is_done_is_not_done_again() -> None:
    class Owner:
        gone = 1

    owner, table, queue, row = Owner(), {"a": 1, "b": 2}, deque([1, 2, 3]), [1, 2]
    owner.gone = 2
    changes = [
        (owner, Write(0, "new", 5, False)),
        (owner, Write(0, "gone", MISSING, False)),
        (table, Write(1, "a", 7, True, is_anew=True)),
        (queue, Ends(2, 1, [7, 8], 1, [9])),
        (row, Ends(3, 1, [], 0, [3, 4])),
    ]
    steps = [step for owner, change in changes for step in steps_of(change, owner, lambda value: value)]
    done: list[Any] = []
    for count in range(len(steps) + 1):
        store(steps[:count], done)
        assert len(done) == count
    store(steps, done)
    assert vars(owner) == {"new": 5}
    assert list(table.items()) == [("b", 2), ("a", 7)]
    assert list(queue) == [7, 8, 2, 9]
    assert row == [2, 3, 4]


# -- the environment --------------------------------------------------------------------------------------------------


def test_environment_variables_are_checked_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_TEST_SET", "1")
    monkeypatch.delenv("ACCEL_TEST_UNSET", raising=False)
    environment = Environment(
        {"ACCEL_TEST_SET": "1", "ACCEL_TEST_UNSET": None}, {"ACCEL_TEST_SET": 3, "ACCEL_TEST_UNSET": 4}
    )
    assert environment.changed() is None
    monkeypatch.setenv("ACCEL_TEST_UNSET", "x")
    assert environment.changed() == 4
    monkeypatch.setenv("ACCEL_TEST_SET", "2")
    assert environment.changed() == 3
    monkeypatch.setenv("ACCEL_TEST_SET", "1")
    monkeypatch.delenv("ACCEL_TEST_UNSET")
    assert environment.changed() is None
    monkeypatch.setattr(os, "environ", dict(os.environ))
    assert environment.changed() is not None


def test_a_miss_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(x: Any) -> Any:
        return x * float(os.getenv("ACCEL_TEST_FACTOR", "2"))

    matcher = Matcher(recorded(work, np.ones(3)))
    assert isinstance(matcher.match((np.ones(3),), {}), list)
    monkeypatch.setenv("ACCEL_TEST_FACTOR", "3")
    miss = matcher.match((np.ones(3),), {})
    assert isinstance(miss, GuardFailure)
    assert miss.why == "$ACCEL_TEST_FACTOR differs from the recording"


@pytest.mark.parametrize(
    ("unread", "late", "error"),
    [
        (lambda r: math.sqrt(r), -1.0, ValueError),
        (lambda r: math.log(r) + 1.0, 0.0, ValueError),
        (lambda r: 1.0 / r, 0.0, ZeroDivisionError),
        (lambda r: int(r), math.nan, ValueError),
        (lambda r: int(r), math.inf, OverflowError),
        (lambda r: 7 % int(r * 4.0), 0.1, ZeroDivisionError),
        (lambda r: 1 << int(r * 8.0), -0.5, ValueError),
        (lambda r: math.comb(int(r * 8.0), 2), -0.5, ValueError),
        (lambda r: np.ones(3) / math.sqrt(r), -1.0, ValueError),
    ],
)
def test_an_error_of_python_s_is_raised_though_nothing_reads_the_value(
    unread: Any, late: float, error: type[Exception], foreground: None
) -> None:
    def step(x: Any, rate: float) -> Any:
        unread(rate)
        return np.sin(x) * 2.0

    fast, x = accel.accelerate(step, name="unread"), np.linspace(0.0, 1.0, 50)
    for _ in range(8):
        np.testing.assert_allclose(fast(x, 0.5), step(x, 0.5), rtol=1e-12)
    assert open_ledger("unread").compiled_calls >= 3
    for _ in range(3):
        with pytest.raises(error):
            fast(x, late)
        np.testing.assert_allclose(fast(x, 0.5), step(x, 0.5), rtol=1e-12)
    assert open_ledger("unread").state is State.COMPILED
