"""Accounts: what the next recording is expected to take."""

from __future__ import annotations

import pytest

from accel.dispatch.costs import account
from accel.dispatch.costs.account import MUCH_SLOWER, RECORDING_SLOWDOWN, Account


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "recorded", account._Recorded())


def account_of(call_s: float) -> Account:
    made = Account("target")
    made.call_s = call_s
    return made


@pytest.mark.parametrize("slowdown", [MUCH_SLOWER / 4.0, MUCH_SLOWER * 4.0])
def test_where_recordings_take_very_long_the_next_are_expected_to(slowdown: float) -> None:
    first, second = account_of(0.01), account_of(0.02)
    assert first.recording_s == 0.01 * RECORDING_SLOWDOWN
    first.count_recorded(0.01 * slowdown)
    expected = slowdown if slowdown > MUCH_SLOWER else RECORDING_SLOWDOWN
    assert second.recording_s == pytest.approx(0.02 * expected)
    assert first.recording_s == pytest.approx(0.01 * slowdown - 0.01), "of its own, it is known"


def test_a_call_of_which_nobody_knows_the_time_says_nothing() -> None:
    account_of(0.0).count_recorded(1.0)
    assert account_of(0.02).recording_s == 0.02 * RECORDING_SLOWDOWN


def test_a_recording_may_take_what_is_usual_or_what_its_function_has_taken() -> None:
    assert account_of(1e-3).longest_recording_s == account.LONGEST_RECORDING_S
    assert account_of(1.0).longest_recording_s == account.LONGEST_SLOWDOWN
    often = account_of(1e-3)
    often.total_s = 100.0
    assert often.longest_recording_s == 100.0
