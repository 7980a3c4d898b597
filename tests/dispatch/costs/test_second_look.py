"""A second look at functions that were slower: two long calls in a row open it, enough usual ones close it."""

from __future__ import annotations

from accel.dispatch.costs.rest import LONG_CALL_FACTOR, LOOKS_AFTER_LONG_CALL, SMALL_CALL_S
from accel.dispatch.costs.second_look import SELDOM, SecondLook

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
