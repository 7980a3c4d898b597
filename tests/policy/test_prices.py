"""Prices: measured seconds per operation, and the law by which investments are made."""

from __future__ import annotations

import pytest

from accel.policy import prices
from accel.policy.prices import Price


def test_a_price_is_a_guess_until_it_is_measured() -> None:
    price = Price(0.001, 0.1)
    assert price.of(100) == pytest.approx(0.2)
    price.note(0.1 + 2000 * 0.004, 2000)
    assert price.of(100) == pytest.approx(0.5)


def test_few_operations_tell_little_of_many() -> None:
    price = Price(0.001)
    price.note(0.5, 10)
    assert price.of(1000) == pytest.approx(1.0 + 0.01 * (50.0 - 1.0))


@pytest.mark.parametrize(("seconds", "operations"), [(0.0, 0), (5.0, 0), (0.01, 5000)])
def test_a_price_is_never_negative_and_an_empty_one_says_nothing(seconds: float, operations: int) -> None:
    price = Price(0.001, 0.1)
    price.note(seconds, operations)
    assert price.of(1000) == pytest.approx(1.1 if not operations else 0.1)


def test_a_recording_that_took_no_longer_than_its_call_has_a_number_of_operations() -> None:
    price = Price(1e-4, 0.01)
    assert price.operations_for(0.11) == pytest.approx(1000)
    assert price.operations_for(0.001) == 0.0
    price.note(-0.5, 5000)
    assert price.operations_for(0.11) == pytest.approx(0.1 / prices.LEAST_S)


@pytest.mark.parametrize(
    ("lost_s", "certain_s", "paid"), [(0.9, 0.0, False), (1.0, 0.0, True), (0.0, 1.4, False), (0.0, 1.5, True)]
)
def test_an_investment_is_made_once_it_has_been_missed_or_surely_will_be(
    lost_s: float, certain_s: float, paid: bool
) -> None:
    assert prices.are_paid(1.0, lost_s, certain_s) is paid


@pytest.mark.parametrize(("alone", "calls_s"), [(1.0, 3.0), (2.0, 1.5)])
def test_a_program_that_takes_turns_with_its_compiler_makes_half_as_many_calls_meanwhile(
    alone: float, calls_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prices, "ALONE", alone)
    monkeypatch.setattr(prices, "worker_s", 1.0)
    assert prices.meanwhile_s(2.0) == calls_s
