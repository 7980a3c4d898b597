"""Loops of thousands of iterations: recorded as loops of a few, and the same program as those."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from accel.compiler.loops import rolled
from accel.record import Completed, Trace, record
from accel.record.run.loops import trimming
from tests.compiler.loops.runs import loops_of, traces_of
from tests.compiler.merge.runs import Replayed, assert_agrees, assert_same

pytestmark = pytest.mark.usefixtures("foreground")


def decay(x: Any, tol: float) -> Any:
    n = 0
    while np.max(x) > tol:
        x = x * 0.99
        n += 1
    return x, n


def shifted(x: Any, tol: float) -> Any:
    """What a variable holds passes to another one in each iteration, as in the secant method."""
    older, old = x * 2.0, x * 1.5
    while np.max(np.abs(old)) > tol:
        older, old = old, 0.99 * old + 0.0001 * older
    return older, old


def swapped(x: Any, tol: float) -> Any:
    """Two buffers by turns."""
    u, new = x.copy(), np.zeros_like(x)
    while True:
        new[...] = u * 0.98
        new[0] *= 0.999
        u, new = new, u
        if np.max(u) < tol:
            break
    return u, new


def rejected(x: Any, tol: float) -> Any:
    """Two kinds of iterations, in no fixed order; a plain number that the loop computes with."""
    h, steps, t = 0.01, 0, 0.0 * np.sum(x)
    while t < 4.0 - tol:
        if h * np.max(np.abs(x)) < 0.025 * (1.0 + 0.2 * np.sin(9.0 * t)):
            x, t = x * (1.0 - 0.1 * h), t + h
            h = h * 1.3
        else:
            h = h * 0.6
        steps += 1
    return x, t, steps


def in_place(x: Any, tol: float) -> Any:
    """The caller's own array."""
    while np.sum(x) > tol:
        x[1:] *= 0.98
        x[:1] *= 0.97
    return float(x[0])


def nested(x: Any, tol: float) -> Any:
    while np.max(x) > tol:
        y = x.copy()
        while np.max(y) > 0.5 * tol:
            y *= 0.8
        x = x * 0.9 + 1e-6 * y
    return x


def given_up(x: Any, tol: float) -> Any:
    """An inner loop with two ends: an iteration of one of them leaves the tape with that of the other around it."""
    outer = inner = 0
    while np.max(x) > tol:
        outer += 1
        y = x * 1.0
        while np.sum(y) > 0.5 * tol:
            y = y * 0.8
            inner += 1
            if inner > 3000:
                break
        x = x * 0.9
    return x, outer, inner


def until_it_breaks(x: Any, tol: float) -> Any:
    for k in range(100_000):  # noqa: B007
        x = x * 0.99
        if np.max(x) < tol:
            break
    return x, k


FUNCTIONS: list[Callable[..., Any]] = [decay, shifted, swapped, rejected, in_place, nested, given_up, until_it_breaks]


def calls() -> list[tuple[Any, float]]:
    """With about 500 to 800 iterations of the plainest of the functions, and with fewer."""
    return [(np.linspace(1.0, 2.0, 4), 10.0**-k) for k in (2.0, 3.0, 0.1, 2.5)]


def trace_of(function: Callable[..., Any], call: tuple[Any, float]) -> Trace:
    assert isinstance(function, FunctionType)
    recorded = record(function, call, {}, max_nodes=200_000)
    assert isinstance(recorded, Completed) and recorded.refusal is None and recorded.trace is not None
    return recorded.trace


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops over ranges are trimmed as early as others."""
    monkeypatch.setattr(trimming, "LATE", 0)


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_many_rounds_are_recorded_as_few(function: Callable[..., Any]) -> None:
    mine, theirs = calls()[1], calls()[1]
    trace = trace_of(function, mine)
    function(*theirs)
    assert_same(mine, theirs)
    assert len(trace.tape.nodes) < 1500
    assert sum(run.dropped for run in trace.runs) > 300


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_the_program_is_right_for_all_numbers_of_rounds(function: Callable[..., Any]) -> None:
    trace = rolled(trace_of(function, calls()[0]))
    assert loops_of(trace) >= 1
    taken = assert_agrees(function, Replayed(trace), calls())
    assert taken >= 3


def bounded_by(most: int) -> FunctionType:
    def bounded(x: Any, tol: float) -> Any:
        for k in range(most):  # noqa: B007
            x = x * 0.99
            if np.max(x) < tol:
                break
        return x, k

    assert isinstance(bounded, FunctionType)
    return bounded


@pytest.mark.usefixtures("early")
def test_a_range_that_ends_after_rounds_have_left_the_tape_is_refused() -> None:
    bounded = bounded_by(500)
    recorded = record(bounded, (np.ones(3), 1e-9), {}, max_nodes=200_000)
    refusal = recorded.refusal
    assert refusal is not None and refusal.reason == "limit.nodes" and "range" in refusal.detail
    if isinstance(recorded, Completed):
        assert_same(recorded.result, bounded(np.ones(3), 1e-9))


def test_a_short_range_is_recorded_as_it_is() -> None:
    bounded = bounded_by(40)
    (trace,) = traces_of(bounded, [(np.ones(3), 1e-9)])
    is_taken, result = Replayed(trace).run((np.full(3, 2.0), 1e-9))
    assert is_taken
    assert_same(result, bounded(np.full(3, 2.0), 1e-9))


def test_what_a_list_keeps_of_each_round_stays_on_the_tape() -> None:
    def kept(x: Any, tol: float) -> Any:
        history = []
        while np.max(x) > tol:
            x = x * 0.9
            history.append(np.sum(x))
        return history

    (trace,) = traces_of(kept, [(np.ones(3), 0.01)])
    is_taken, result = Replayed(trace).run((np.full(3, 0.99), 0.01))
    assert is_taken
    assert_same(result, kept(np.full(3, 0.99), 0.01))
