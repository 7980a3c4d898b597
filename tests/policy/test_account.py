"""Accounts: what the next recording is expected to take, and when calls without a program have lost as much."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import accel
from accel.platform import config
from accel.platform.ledger import current_run
from accel.policy import account, budget, prices
from accel.policy.account import EXPECTED_GAIN_SHARE, GUESSED_IN_S, GUESSED_OPERATIONS, Account
from accel.policy.call import Call


def account_of(call_s: float) -> Account:
    made = Account("target")
    made.call_s, made.numpy_calls = call_s, account.FIRST_CALLS
    made.first_s = call_s
    return made


GUESSED_RATE = GUESSED_OPERATIONS / GUESSED_IN_S


def test_other_recordings_tell_how_many_operations_there_are_in_a_second() -> None:
    first, second, long = account_of(0.001), account_of(0.01), account_of(100.0)
    assert first.recording_s == prices.recording.of(0.001 * GUESSED_RATE)
    before = second.recording_s
    first.count_recorded(0.001 + prices.recording.of(1_000))
    assert second.recording_s == pytest.approx(
        prices.recording.of(0.01 * (GUESSED_OPERATIONS + 1_000) / (GUESSED_IN_S + 0.001))
    )
    assert second.recording_s > before
    assert first.recording_s == pytest.approx(prices.recording.of(1_000)), "of its own, it is known"
    assert long.recording_s == account.LONGEST_RECORDING_S, "its arrays are large: after that it is broken off"


def test_a_short_recording_does_not_make_long_ones_look_dear() -> None:
    """Most of its time is the same whatever is recorded."""
    long, before = account_of(0.005), account_of(0.005).recording_s
    account_of(0.0001).count_recorded(0.0001 + prices.recording.of(10))
    assert long.recording_s == pytest.approx(before, rel=0.05)


def test_a_call_of_which_nobody_knows_the_time_says_nothing() -> None:
    before = account_of(0.02).recording_s
    account_of(0.0).count_recorded(1.0)
    assert account_of(0.02).recording_s == before


def test_a_recording_may_take_what_its_function_could_gain(books: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(current_run()), "wall_s", 1000.0)
    assert account_of(0.0).longest_recording_s == account.LONGEST_RECORDING_S
    assert account_of(2.0).longest_recording_s == 2.0 + account.LONGEST_RECORDING_S, "it is a call, too"
    often = account_of(0.0)
    often.total_s = 100.0
    assert often.longest_recording_s == account.LONGEST_RECORDING_S + 100.0 * account.GAIN_SHARE


def test_those_that_ended_at_a_limit_take_no_more_than_a_share_of_the_run(
    books: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(current_run()), "wall_s", 10.0)
    monkeypatch.setattr(account.recorded, "in_vain_s", 0.0)
    most = account.RUN_FIXED_S + account.RUN_SHARE * 10.0
    often = account_of(0.5)
    often.total_s = 100.0
    assert often.longest_recording_s == pytest.approx(0.5 + most)
    account_of(0.2).note_in_vain(1.2)
    assert often.longest_recording_s == pytest.approx(0.5 + most - 1.0)
    often.note_in_vain(100.0)
    assert often.longest_recording_s == pytest.approx(0.5 + account.LONGEST_RECORDING_S)


@pytest.mark.parametrize(("inner", "length", "long"), [(40, None, False), (2000, None, True), (40, 9000, True)])
def test_a_call_with_many_calls_inside_is_not_recorded(
    books: ModuleType, monkeypatch: pytest.MonkeyPatch, inner: int, length: int | None, long: bool
) -> None:
    outer, inside = Account("outer"), books.open_ledger("inside")
    if length is not None:
        account.recorded.lengths["inside"] = length
    books.open_ledger("earlier").calls = 1_000_000
    for calls in (0, inner, inner):
        inside.calls += calls
        call = Call(lambda: None, (), {})
        call.seconds = 0.001
        outer.count_numpy(call, quiet=True)
    assert outer.is_too_long == long
    outer.total_s = 1e4  # as many seconds to come are worth a long one
    monkeypatch.setattr(type(current_run()), "wall_s", 1e4)
    assert not outer.is_too_long


@pytest.fixture
def poor(books: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Account:
    """Of a target whose recordings take 0.1 s, in a process whose budget is used up but for what calls have lost."""
    monkeypatch.setattr(budget, "covers", lambda *args, **kwargs: False)
    monkeypatch.setattr(budget, "grants", lambda *_: True)
    monkeypatch.setattr(budget, "is_overdrawn", lambda: False)
    monkeypatch.setattr(prices, "recording", prices.Price(0.1 / GUESSED_OPERATIONS))
    return account_of(GUESSED_IN_S)


def needed_s(made: Account) -> float:
    """How much calls have to lose before the next recording."""
    lost_s = 0.0
    while not made.covers_recording():
        made.note_unmatched(0.01)
        lost_s += 0.01 * EXPECTED_GAIN_SHARE
    return lost_s


def test_a_recording_is_made_once_calls_have_lost_as_much(poor: Account) -> None:
    assert needed_s(poor) == pytest.approx(0.1, abs=0.01)


def test_one_that_brings_nothing_makes_the_next_dearer(poor: Account) -> None:
    for price_s in (0.1, 0.15, 0.225):
        assert needed_s(poor) == pytest.approx(price_s, abs=0.01)
        poor.charge_undone(0.1)
    poor.ledger.count_compiled(0.001, gained_s=1e-6)
    needed_s(poor)
    poor.charge_undone(0.1)
    assert needed_s(poor) == pytest.approx(0.1, abs=0.01), "the last one did"


def test_an_overdrawn_budget_makes_it_dearer_but_not_impossible(poor: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "is_overdrawn", lambda: True)
    assert needed_s(poor) == pytest.approx(0.1 * account.OVERDRAWN_FACTOR, abs=0.01)


@pytest.mark.parametrize("calls", [1, account.SHOWN_CALLS])
def test_a_few_calls_do_not_show_what_programs_gain(poor: Account, calls: int) -> None:
    for _ in range(calls):  # NumPy's time was not known
        poor.ledger.count_compiled(0.01, gained_s=0.0)
    poor.note_unmatched(1.0)
    assert poor.covers_recording() == (calls < account.SHOWN_CALLS)


def test_after_a_long_recording_no_other_is_made_for_as_long(poor: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever targets they are of, and whether the call was recorded to its end or not."""
    now, other = [100.0], account_of(0.01)
    monkeypatch.setattr(account.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(account, "BURST_S", 0.05)
    for end in (poor.count_recorded, poor.charge_undone):
        end(0.04)
        assert not other.pauses
        end(0.2)
        assert other.pauses
        now[0] += 0.19
        assert other.pauses
        now[0] += 0.02
        assert not other.pauses


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # where it is an error, all calls stay on NumPy
def test_calls_that_come_meanwhile_stay_on_numpy(books: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    fast: Any = accel.accelerate(lambda x: np.sin(x) + 1.0, name="due")
    x = np.linspace(0.0, 1.0, 1000)
    with config.override(ahead_of_time=True, cache_dir=None):
        for pauses in (True, False):
            monkeypatch.setattr(Account, "pauses", pauses)
            for _ in range(5):
                np.testing.assert_array_equal(fast(x), np.sin(x) + 1.0)
            assert bool(fast._self_target.recordings.count) is not pauses
