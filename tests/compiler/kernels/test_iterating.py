"""Loops of kernels whose iterations find their memory once: NumPy's bits, whatever the state is made of."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel.compiler.kernels import nested
from accel.compiler.kernels.iterating import LoopRun
from accel.platform import config
from tests.compiler.kernels.merging import all_in_kernels
from tests.compiler.kernels.test_segments import built

pytest.importorskip("llvmlite")

X = np.linspace(-1.0, 2.0, 35).reshape(7, 5)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[LoopRun]:
    """The loops that find their memory once."""
    found: list[LoopRun] = []

    def noted(*given: Any, **rest: Any) -> LoopRun:
        found.append(LoopRun(*given, **rest))
        return found[-1]

    monkeypatch.setattr(nested, "LoopRun", noted)
    return found


def results(function: Callable[..., Any], *given: Any) -> list[Any]:
    """A program's results, which two runs give, and which leave its arguments and the first results as they were."""
    with all_in_kernels(threads=1):
        program = built(function, *given)
    before = [np.array(each) for each in given]
    first, _ = program(given, [], {})
    kept = [np.array(each) for each in first]
    again, _ = program(given, [], {})
    for one, other, copy in zip(first, again, kept, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, copy)
        one[...] = 1
        np.testing.assert_array_equal(other, copy)
    for one, other in zip(given, before, strict=True):
        np.testing.assert_array_equal(one, other)
    return again


def test_tables_are_made_for_each_place_of_the_state_and_no_more(made: list[LoopRun]) -> None:
    from jax import lax

    def turned(x: Any) -> Any:
        # three arrays change places, so that a state comes back to its place after a few iterations
        return list(lax.fori_loop(0, 50, lambda n, s: (s[1] + 1.0, s[2], s[0] * 0.5), (x, x + 1.0, x * 2.0)))

    found, state = results(turned, X), (X, X + 1.0, X * 2.0)
    for _ in range(50):
        state = state[1] + 1.0, state[2], state[0] * 0.5
    for mine, theirs in zip(found, state, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert len(made) == 2 and all(len(each._tables) < 12 for each in made)


def test_rows_come_one_by_one_and_results_are_collected(made: list[LoopRun]) -> None:
    from jax import lax

    def summed(rows: Any, start: Any) -> Any:
        last, all_of_them = lax.scan(lambda s, row: (s * 0.5 + row, (s - row, row * 2.0)), start, rows)
        back, others = lax.scan(lambda s, row: (s + row, s), start, rows, reverse=True)
        return [last, *all_of_them, back, others]

    last, differences, doubled, back, others = results(summed, X, X[0])
    assert len(made) == 4
    state = X[0]
    for number, row in enumerate(X):
        np.testing.assert_array_equal(differences[number], state - row)
        state = state * 0.5 + row
    np.testing.assert_array_equal(last, state)
    np.testing.assert_array_equal(doubled, X * 2.0)
    state = X[0]
    for number in reversed(range(len(X))):
        np.testing.assert_array_equal(others[number], state)
        state = state + X[number]
    np.testing.assert_array_equal(back, state)


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_stay_in_the_state_for_some_iterations(made: list[LoopRun], reverse: bool) -> None:
    """Rows that come, and rows that an iteration computes: both are read two iterations later."""
    from jax import lax

    def recurrence(rows: Any) -> Any:
        def step(s: Any, row: Any) -> Any:
            last, before, given, given_before = s
            new = row * 0.5 + last * 0.25 - before * 0.125 + given - given_before * 3.0
            return (new, last, row, given), new

        start = rows[0] * 0.0, rows[0] + 1.0, rows[0] - 1.0, rows[0] * 2.0
        state, all_of_them = lax.scan(step, start, rows, reverse=reverse)
        return [*state, all_of_them]

    rows = np.random.default_rng(0).normal(size=(300, 5))
    *state, found = results(recurrence, rows)
    assert len(made) == 2
    last, before, given, given_before = rows[0] * 0.0, rows[0] + 1.0, rows[0] - 1.0, rows[0] * 2.0
    for number in range(300)[:: -1 if reverse else 1]:
        row = rows[number]
        new = row * 0.5 + last * 0.25 - before * 0.125 + given - given_before * 3.0
        last, before, given, given_before = new, last, row, given
        np.testing.assert_array_equal(found[number], new)
    for mine, theirs in zip(state, (last, before, given, given_before), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 255, 256, 257, 600])
def test_results_are_collected_once_or_twice_or_are_none_of_a_kernels(rounds: int) -> None:
    from jax import lax

    def several(rows: Any, held: Any) -> Any:
        def step(s: Any, row: Any) -> Any:
            new = s[1] + row
            return (new, s[0] * 0.5), (new, new, row, held, s[0], row.sum())

        state, collected = lax.scan(step, (held, held * 2.0), rows)
        return [*state, *collected]

    rows, held = np.random.default_rng(1).normal(size=(rounds, 3)), np.arange(3.0)
    one, other, *collected = results(several, rows, held)
    first, second = held, held * 2.0
    for number, row in enumerate(rows):
        expected = second + row, second + row, row, held, first, row.sum()
        for mine, theirs in zip(collected, expected, strict=True):
            np.testing.assert_array_equal(mine[number], theirs)
        first, second = second + row, first * 0.5
    np.testing.assert_array_equal(one, first)
    np.testing.assert_array_equal(other, second)


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 4, 5, 255, 256, 257, 1000, 1001])
def test_few_iterations_and_a_state_that_stays(rounds: int) -> None:
    from jax import lax

    def few(x: Any) -> Any:
        held = np.full((7, 5), 3.0)
        return list(lax.fori_loop(0, rounds, lambda n, s: (s[1], s[1], held, s[3] + n), (x, x * 2.0, x, 0)))

    first, second, third, count = results(few, X)
    np.testing.assert_array_equal(first, X * 2.0 if rounds else X)
    np.testing.assert_array_equal(second, X * 2.0)
    np.testing.assert_array_equal(third, np.full((7, 5), 3.0) if rounds else X)
    assert count == sum(range(rounds))


@pytest.mark.parametrize("limit", [-5.0, 1.0, 1e3])
def test_a_loop_goes_on_until_its_condition_fails(limit: float, made: list[LoopRun]) -> None:
    from jax import lax

    def doubled(x: Any, limit: Any) -> Any:
        return list(lax.while_loop(lambda s: s[0].max() < limit, lambda s: (s[0] * 2.0, s[1] + 1), (x, 0)))

    found, count = results(doubled, X, np.array(limit))
    expected, times = X, 0
    while expected.max() < limit:
        expected, times = expected * 2.0, times + 1
    np.testing.assert_array_equal(found, expected)
    assert count == times and len(made) == (2 if times else 0)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 127, 256, 257, 1000])
def test_iterations_in_machine_code_end_where_the_condition_fails(count: int) -> None:
    from jax import lax
    from jax import numpy as jnp

    def turned(x: Any, count: Any) -> Any:
        # several kernels, with a product of matrices between two loops
        first = lax.while_loop(lambda s: s[2] < count, lambda s: (s[1] * 0.5, s[0] + 1.0, s[2] + 1), (x, x * 2.0, 0))
        second = lax.fori_loop(0, 300, lambda n, s: (jnp.roll(s[0], 1, 1) - s[1], s[0] * 0.25), first[:2])
        return [*first, *second]

    found = results(turned, X, np.array(count))
    one, other = X, X * 2.0
    for _ in range(count):
        one, other = other * 0.5, one + 1.0
    expected = [one, other, np.array(count)]
    for _ in range(300):
        one, other = np.roll(one, 1, 1) - other, one * 0.25
    for mine, theirs in zip(found, [*expected, one, other], strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no timer")
def test_a_signal_ends_a_long_loop() -> None:
    from jax import lax

    class Rung(Exception):
        pass

    def ring(number: int, frame: Any) -> None:
        raise Rung

    with all_in_kernels(threads=1):
        program = built(lambda x: [lax.while_loop(lambda s: s[0, 0] < 1e9, lambda s: s * 0.5, x)], X)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Rung):
            program([X], [], {})  # it would go on for ever
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_threads_run_one_loop_at_once() -> None:
    from jax import lax

    with all_in_kernels(threads=1):
        program = built(lambda x: [lax.fori_loop(0, 300, lambda n, s: s * 0.999 + n, x)], X)
    expected, wrong = {}, []
    for factor in range(4):
        state = X * factor
        for number in range(300):
            state = state * 0.999 + number
        expected[factor] = state

    def run(factor: int) -> None:
        for _ in range(20):
            if not np.array_equal(program([X * factor], [], {})[0][0], expected[factor]):
                wrong.append(factor)

    threads = [threading.Thread(target=run, args=(factor,)) for factor in expected]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_parts_of_large_arrays_are_written_in_place(made: list[LoopRun]) -> None:
    from jax import lax

    def halved(x: Any) -> Any:
        def step(n: Any, s: Any) -> Any:
            return lax.dynamic_update_slice(s, lax.dynamic_slice(s, (0, n), (300, 100)) * 0.5, (0, n))

        return [lax.fori_loop(0, 300, step, x)]

    x = np.random.default_rng(0).normal(size=(300, 400))
    with config.override(threads=1):
        (found,) = results(halved, x)
    expected = x.copy()
    for n in range(300):
        expected[:, n : n + 100] *= 0.5
    np.testing.assert_array_equal(found, expected)
    assert made


def test_several_threads_find_their_memory_anew(made: list[LoopRun]) -> None:
    from jax import lax

    with all_in_kernels(threads=3):
        program = built(lambda x: [lax.fori_loop(0, 3, lambda n, s: s + 1.0, x)], np.ones((90, 90)))
        np.testing.assert_array_equal(program([np.ones((90, 90))], [], {})[0][0], np.full((90, 90), 4.0))
    assert not made
