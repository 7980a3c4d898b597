"""The budget: what accel may cost a program, by what the program has taken so far and what was saved."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest

import accel
from accel.dispatch.paths import stages
from accel.platform import config, gain, processors
from accel.platform.ledger import Ledger, current_run, open_ledger
from accel.platform.reasons import Refusal
from accel.policy import account, budget, prices
from accel.policy.account import Account


@pytest.fixture
def empty(books: ModuleType, limited: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """The books of a function of a process that has just begun."""
    monkeypatch.setattr(type(current_run()), "wall_s", 10.0)
    monkeypatch.setattr(budget, "import_s", 0.0)
    yield open_ledger("some")


def covers(ledger: Ledger, estimate_s: float, *, numpy_s: float = 0.3) -> bool:
    return budget.covers(ledger, estimate_s, numpy_s)


def test_a_fixed_part_and_a_share_of_the_time_so_far_are_covered(empty: Ledger) -> None:
    whole = budget.FIXED_S + budget.SHARE * 10.0
    assert covers(empty, 0.99 * whole, numpy_s=10.0)
    assert not covers(empty, 1.01 * whole, numpy_s=10.0)


def test_a_target_may_cost_what_its_own_calls_bear_out(empty: Ledger) -> None:
    own = budget.TARGET_FIXED_S + budget.TARGET_SHARE * 0.3
    assert covers(empty, 0.99 * own)
    assert not covers(empty, 1.01 * own)


@pytest.mark.parametrize("cost", ["recording", "loading", "comparing", "guards", "discarded", "slowdown"])
def test_every_cost_counts(empty: Ledger, cost: str) -> None:
    assert covers(empty, 0.1)
    empty.charge(cost, 5.0)
    assert not covers(empty, 0.0)


def test_what_others_have_used_up_is_not_there(empty: Ledger) -> None:
    open_ledger("other").charge("recording", 5.0)
    assert not covers(empty, 0.1)


class Loop:
    certain_s = 90.0


@pytest.mark.parametrize("of", ["this loop", "earlier runs"])
def test_time_that_is_certain_to_come_counts(of: str, empty: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "outlooks", outlooks := WeakSet[Any]())
    whole = budget.FIXED_S + budget.SHARE * 100.0
    assert not budget.grants(0.99 * whole)
    loop = Loop()
    if of == "this loop":
        outlooks.add(loop)
    else:
        monkeypatch.setattr(current_run(), "expected_s", 100.0)
    assert budget.grants(0.99 * whole)
    assert not budget.grants(1.01 * whole)


def test_what_calls_to_come_are_certain_to_lose_pays_without_a_budget(empty: Ledger) -> None:
    whole = budget.FIXED_S + budget.SHARE * 10.0
    assert budget.grants(3.0 * whole, certain_s=3.0 * prices.CERTAIN * whole)
    assert not budget.grants(3.0 * whole, certain_s=2.9 * prices.CERTAIN * whole)
    made = Account("some")
    made.call_s = 10.0
    assert made.covers_recording(paid=True, certain_s=1e9)
    assert not made.covers_recording(certain_s=1e9), "nor have its own calls lost anything"


def test_what_programs_on_disk_are_likely_to_gain_pays_for_loading_them(empty: Ledger) -> None:
    whole = budget.FIXED_S + budget.SHARE * 10.0
    current_run().expected_s, current_run().expected_gain_s = 10.0, 3.0
    assert budget.grants(0.99 * (whole + 3.0))
    assert not budget.grants(1.01 * (whole + 3.0))


def test_what_others_have_used_up_is_not_there_whatever_calls_have_lost(
    empty: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Account("some")
    made.call_s = 1e-5  # whatever the slowdown of earlier recordings, the next is cheap
    made.note_unmatched(100.0)
    assert made.covers_recording(paid=True)
    open_ledger("other").charge("recording", 5.0)
    assert not made.covers_recording(paid=True)


def test_the_first_investment_pays_for_the_import(empty: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = budget.FIXED_S + budget.SHARE * 10.0
    monkeypatch.setattr(budget, "import_s", budget.IMPORT_S)
    assert budget.grants(0.99 * whole - budget.IMPORT_S)
    assert not budget.grants(1.01 * whole - budget.IMPORT_S)


def test_seconds_are_those_of_an_idle_machine(empty: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "SHARE", 0.0)
    assert not budget.grants(1.5 * budget.FIXED_S)
    current_run().fair_s(2.0, 1.0)
    assert budget.grants(1.5 * budget.FIXED_S)
    assert not budget.grants(2.5 * budget.FIXED_S)


def test_what_was_saved_pays(empty: Ledger) -> None:
    empty.charge("recording", 5.0)
    empty.count_compiled(0.001, gained_s=6.0)
    assert covers(empty, 0.9)


def test_a_process_that_has_lost_its_budget_twice_over_is_overdrawn(empty: Ledger) -> None:
    whole = budget.FIXED_S + budget.SHARE * 10.0
    empty.charge("recording", 0.9 * whole)
    assert not budget.is_overdrawn()
    empty.charge("guards", 0.3 * whole)
    assert budget.is_overdrawn()
    empty.count_compiled(0.001, gained_s=0.5 * whole)
    assert not budget.is_overdrawn()


def steps(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x + 1.0 if n % 2 else x * 0.5
    return x


@pytest.mark.parametrize(("affordable", "value"), [("FIXED_S", 1e9), ("for_later_runs", True)])
def test_a_long_path_is_described_once_the_budget_covers_that_and_no_other_is_recorded_before(
    affordable: str, value: Any, books: ModuleType, limited: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prices, "describing", prices.Price(1.0))
    fast: Any = accel.accelerate(steps, name="long")
    kind = fast._self_target
    with config.override(ahead_of_time=True, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        kind.account.total_s = 1.0  # recording it is paid for, describing it is not
        for _ in range(6):
            fast(np.ones(3), 40)
        (only,) = kind.paths
        assert not only.may_start and only.observed == 0 and only.stage is stages.Stage.OBSERVING
        fast(np.ones(3), 41)
        assert list(kind.paths) == [only], "whose program would be compiled with another's"
        assert open_ledger("long").refusals[Refusal("wait.budget")]
        monkeypatch.setattr(budget, affordable, value)
        monkeypatch.setattr(budget, "TARGET_FIXED_S", 1e9)
        fast(np.ones(3), 40)
        assert only.may_start and only.observed >= 1


def test_calls_that_take_no_longer_than_a_launch_have_lost_nothing(books: ModuleType) -> None:
    fast: Any = accel.accelerate(lambda x: x * 2.0, name="short")
    with config.override(ahead_of_time=True, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for _ in range(5):
            fast(np.ones(3))
    (path,) = fast._self_target.paths
    before = path.lost_s
    path.program.wait(1000 * account.LAUNCH_S, 1000)
    assert path.lost_s < before
    path.program.wait(1.0)
    assert path.lost_s > before + 0.5


@pytest.mark.parametrize(("count", "starts"), [(2, True), (1, False)])
def test_where_the_compiler_takes_the_programs_own_processor_calls_must_have_lost_as_much(
    count: int, starts: bool, books: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processors, "usable", lambda: count)
    fast: Any = accel.accelerate(lambda x: x * 2.0, name="shared")
    paths = fast._self_target.paths
    with config.override(ahead_of_time=True, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for _ in range(5):
            fast(np.ones(3))
    (only,) = paths
    price_s = prices.BURDEN * only.compile_s
    only.lost_s, only.program.stage = 0.9 * price_s, stages.Stage.OBSERVING
    assert not paths.is_worth_compiling(only)
    only.lost_s = 1.1 * price_s
    assert paths.is_worth_compiling(only)
    only.lost_s = 0.0
    assert not paths.is_worth_compiling(only, certain_s=0.9 * price_s)
    assert paths.is_worth_compiling(only, certain_s=1.1 * price_s), "calls to come are certain to lose more"
    monkeypatch.setattr(type(paths), "with_program", [only.program])
    paths.add(only.trace, "another kind")
    assert not paths.is_worth_compiling(only, certain_s=1.9 * price_s), "two more kinds are likely to come"
    assert paths.is_worth_compiling(only, certain_s=2.1 * price_s)
    prospects = gain.PotentialGain()
    monkeypatch.setattr(gain, "ONE_PROCESSOR_GAIN_S", 2.0)
    prospects.add(1.0)
    assert prospects.is_worth_starting(on_disk=lambda: False) == starts
    assert prospects.is_worth_starting(on_disk=lambda: True)


@pytest.mark.parametrize("gained_s", [0.0, 5.0])
def test_the_disk_is_looked_at_only_where_that_decides(gained_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gain, "COMPILE_GAIN_S", 0.25)
    monkeypatch.setattr(gain, "ONE_PROCESSOR_GAIN_S", 0.25)
    monkeypatch.setattr(gain, "LOAD_GAIN_S", 0.03)
    asked: list[int] = []
    prospects = gain.PotentialGain()
    prospects.add(gained_s)
    assert prospects.is_worth_starting(on_disk=lambda: bool(asked.append(1))) == bool(gained_s)
    assert not asked


def test_nothing_starts_that_the_budget_does_not_cover(books: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIXED_S", "SHARE"):
        monkeypatch.setattr(budget, name, 0.0)
    fast: Any = accel.accelerate(lambda x: x * 2.0, name="poor")
    with config.override(ahead_of_time=True, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for _ in range(20):
            assert np.array_equal(fast(np.ones(3)), np.full(3, 2.0))
    assert not fast._self_target.paths
    assert {refusal.reason for refusal in open_ledger("poor").refusals} == {"wait.budget"}


def test_who_wants_each_call_compiled_has_no_budget(foreground: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIXED_S", "SHARE"):
        monkeypatch.setattr(budget, name, 0.0)
    fast: Any = accel.accelerate(lambda x: x * 2.0, name="rich")
    for _ in range(8):
        fast(np.ones(3))
    assert open_ledger("rich").compiled_calls > 0


def test_a_first_call_shows_what_numpy_takes(books: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "burden_s", lambda compile_s: 1e9)
    fast: Any = accel.accelerate(lambda x: x * 2.0, name="timed")
    with config.override(ahead_of_time=True, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        fast(np.ones(3))
        assert fast._self_target.account.call_s > 0.0
        assert not fast._self_target.paths
        fast(np.ones(3))
        assert len(fast._self_target.paths) == 1
