"""A second look at functions that were slower: two long calls in a row open it, enough usual ones close it.

Programs that were slower are tried again after a while.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import accel
from accel.platform.ledger import State, open_ledger
from accel.policy import second_look
from accel.policy.rest import LONG_CALL_FACTOR, LOOKS_AFTER_LONG_CALL, SMALL_CALL_S
from accel.policy.second_look import AGAIN_CALLS, AGAIN_FACTOR, AGAIN_S, SELDOM, SecondLook
from accel.policy.speed import Speed

USUAL_S = 1e-3
LONG_S = 1.01 * LONG_CALL_FACTOR * USUAL_S


def test_two_long_calls_open_it() -> None:
    look = SecondLook(USUAL_S)
    assert [look.opens(spent) for spent in (USUAL_S, LONG_S, LONG_S)] == [False, False, True]
    look = SecondLook(USUAL_S)
    assert [look.opens(spent) for spent in (LONG_S, *[USUAL_S] * (SELDOM - 1), LONG_S)][-2:] == [False, True]


def test_the_machine_may_be_busy_now_and_then() -> None:
    look = SecondLook(USUAL_S)
    assert not any(look.opens(LONG_S if i % (SELDOM + 1) == 0 else USUAL_S) for i in range(1000))


def test_small_calls_are_too_small_for_any_program() -> None:
    look = SecondLook(1e-7)
    assert not any(look.opens(SMALL_CALL_S * LONG_CALL_FACTOR) for _ in range(100))


def test_it_closes_after_a_while() -> None:
    look = SecondLook(USUAL_S)
    for _ in range(2):
        assert any(look.opens(LONG_S) for _ in range(2))
        assert [look.closes() for _ in range(LOOKS_AFTER_LONG_CALL)].index(True) == LOOKS_AFTER_LONG_CALL - 1
        assert look.closes()  # nobody may have listened: a path was still on its way to a program


@pytest.mark.parametrize(("usual_s", "first_s"), [(USUAL_S, AGAIN_S), (1.0, AGAIN_CALLS)])
def test_programs_are_tried_again_ever_more_rarely(usual_s: float, first_s: float) -> None:
    look, now_s = None, 10.0
    for wait_s in (first_s, first_s * AGAIN_FACTOR, first_s * AGAIN_FACTOR**2):
        look = SecondLook(usual_s, now_s, look)
        assert not look.is_time(now_s + 0.99 * wait_s)
        assert look.is_time(now_s + wait_s)


@pytest.mark.usefixtures("foreground")
@pytest.mark.parametrize("busy_for", [1, 2])
def test_a_program_that_was_slower_while_the_machine_was_busy_is_used_later(
    busy_for: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_look, "AGAIN_S", 1e-3)
    monkeypatch.setattr(second_look, "AGAIN_CALLS", 1)
    verdicts = iter(["2 ms compiled, 1 ms on NumPy"] * busy_for)
    monkeypatch.setattr(Speed, "evidence_of_slowness", lambda self: next(verdicts, None))

    def body(x: Any) -> Any:
        return x * 2.0 + np.sin(x)

    fast, x = accel.accelerate(body, name="busy"), np.linspace(0.0, 1.0, 10_000)
    book, states = open_ledger("busy"), []
    for _ in range(2000):
        np.testing.assert_allclose(fast(x), body(x), rtol=1e-14)
        states.append(book.state)
    assert State.DEMOTED in states
    assert states[-1] is State.COMPILED
    assert book.compiled_calls > busy_for
