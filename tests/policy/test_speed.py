"""Speed: what a call would have taken without accel is never judged by calls that accel has slowed down."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from statistics import median_low
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.dispatch import late
from accel.dispatch.comparing import policy
from accel.dispatch.compiling import is_quiet
from accel.dispatch.numpy_calls import NumPyCalls
from accel.dispatch.paths.stages import Stage
from accel.platform.ledger import RunLedger, open_ledger
from accel.policy.speed import (
    CALLS_IN_A_ROW,
    LOSS_S,
    MAX_LOSS_S,
    MIN_SAMPLES,
    MORE_SAMPLES,
    NO_LOSS_S,
    NUMPY_SAMPLES,
    PAUSE_SHARE,
    ROW_SHARE,
    SPEED_SAMPLES,
    Speed,
)

SECONDS = st.floats(1e-5, 1.0)


@pytest.fixture(autouse=True)
def calm_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other programs stretch time."""
    monkeypatch.setattr(RunLedger, "stretch", 1.0)


def speed_of(quiet: list[float], disturbed: list[float]) -> Speed:
    speed = Speed()
    for seconds in quiet:
        speed.numpy_s.add(seconds)
    for seconds in disturbed:
        speed.note_disturbed(seconds)
    return speed


def test_nothing_is_gained_where_numpy_was_never_timed() -> None:
    speed = speed_of([], [])
    assert (speed.usual_s, speed.count_replay(0.5), speed.more_slowdown_s()) == (None, (0.0, 0.0, 1), 0.0)


def test_the_usual_time_is_the_lower_of_both_quartiles() -> None:
    # comparisons run with empty caches: the calls before them were faster, though something was compiled
    assert speed_of([0.011, 0.010, 0.012], [0.009, 0.030, 0.008]).usual_s == 0.008
    assert speed_of([0.006], [0.009, 0.030, 0.008]).usual_s == 0.006
    assert speed_of([], [0.009]).count_replay(0.001) == (pytest.approx(0.008), 0.0, 1)


def test_samples_correct_what_earlier_calls_were_said_to_have_gained() -> None:
    speed = speed_of([0.016, 0.015, 0.017], [])
    calls = round(CALLS_IN_A_ROW * 0.015 / 0.005 / ROW_SHARE) + 1
    first = [speed.count_replay(0.005) for _ in range(calls)]
    assert sum(gained_s for gained_s, _, _ in first) == pytest.approx(calls * 0.010)
    assert speed.wanted == CALLS_IN_A_ROW
    for seconds in (0.020, 0.011, 0.012, 0.013):  # the first one is no sample
        speed.note_wanted(seconds)
    sums = [*first, speed.count_replay(0.005)]
    assert sum(gained_s for gained_s, _, _ in sums) == pytest.approx((calls + 1) * 0.006)
    assert sum(spread_s for _, spread_s, _ in sums) == pytest.approx((calls + 1) * 0.001)
    speed.begin_anew()
    assert speed.count_replay(0.005)[0] == 0.0, "with other arrays, the earlier calls' gain stands"


def test_calls_in_a_row_are_added_to_those_of_earlier_rows() -> None:
    speed = speed_of([0.016, 0.015, 0.017], [])
    for row in ((0.020, 0.011, 0.012, 0.013), (0.020, 0.009, 0.014, 0.014)):
        speed.wanted = CALLS_IN_A_ROW
        for seconds in row:
            speed.note_wanted(seconds)
    assert sorted(speed.numpy_s) == [0.009, 0.011, 0.012, 0.013, 0.014, 0.014]
    assert speed.spread_s == pytest.approx(0.002)


def test_a_comparison_tells_how_slow_the_calls_before_were() -> None:
    speed = speed_of([], [0.020] * 10)
    assert speed.more_slowdown_s() == 0.0
    speed.numpy_s.add(0.010)
    assert speed.more_slowdown_s() == pytest.approx(0.100)
    assert speed.more_slowdown_s() == 0.0
    speed.numpy_s.clear()  # as when a program is judged anew
    speed.numpy_s.add(0.015)
    assert speed.more_slowdown_s() == pytest.approx(-0.050)


@given(st.lists(SECONDS, min_size=1, max_size=32), st.lists(SECONDS, min_size=1, max_size=32))
def test_what_numpy_would_have_taken_is_no_more_than_its_median(quiet: list[float], disturbed: list[float]) -> None:
    speed = speed_of(quiet, disturbed)
    assert speed.usual_s is not None
    assert speed.usual_s <= min(median_low(quiet), median_low(disturbed))
    assert speed.more_slowdown_s() == pytest.approx(max(0.0, sum(disturbed) - len(disturbed) * speed.usual_s))


@pytest.fixture
def at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge again at once."""
    monkeypatch.setattr("accel.policy.speed.APART_S", 0.0)


def judged(compiled: Iterable[float], in_a_row: float = 1e-4) -> tuple[int, str | None]:
    """After how many compiled calls a program is given up, and the figures, where NumPy takes 0.1 ms when compared."""
    speed = Speed()
    for number, seconds in enumerate(compiled):
        while len(speed.numpy_s) < NUMPY_SAMPLES:
            speed.note_compared(1e-4)
        while speed.wanted:
            speed.note_wanted(in_a_row)
        speed.note_replays(seconds, seconds)
        if figures := speed.evidence_of_slowness():
            return number + 1, figures
    return 0, None


@pytest.mark.usefixtures("at_any_time")
def test_slow_first_calls_of_a_small_function_decide_nothing() -> None:
    assert judged([*[2e-4] * 7, *[8e-5] * 200]) == (0, None)
    assert judged([5e-4] * 200) == (NO_LOSS_S // 4e-4 + 1, "0.5 ms compiled, 0.1 ms on NumPy")
    judgements = math.ceil(LOSS_S / 2e-5 / MORE_SAMPLES)
    assert judged([1.2e-4] * 600) == (judgements * MORE_SAMPLES, "0.12 ms compiled, 0.1 ms on NumPy")


def test_a_moment_in_which_others_use_the_processor_is_one_judgement() -> None:
    assert judged([1.2e-4] * 600) == (0, None)  # all of them at once


def test_what_is_as_fast_as_numpy_is_compared_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    # as inside a round of a loop, where calls are never wanted on NumPy: comparisons supply NumPy's times
    now, compared, speed = [0.0], 0, Speed()
    monkeypatch.setattr("accel.policy.speed.time.perf_counter", lambda: now[0])
    for number in range(20_000):
        while not speed.knows_numpy:
            speed.note_compared(1e-3)
            compared += 1
        seconds = 1.01e-3 if number // 50 % 2 else 0.99e-3
        now[0] += seconds
        speed.note_replays(seconds, seconds)
        assert speed.evidence_of_slowness() is None
    assert compared <= 60  # of 20 s: 3 after 0.03, 0.06, 0.12, ... s and at last every 3 s, of some two in a row


@pytest.mark.usefixtures("at_any_time")
def test_numpy_s_calls_in_a_row_are_what_a_small_function_is_judged_by() -> None:
    # as where comparisons find the caches full of other things
    assert judged([6e-5] * 200, in_a_row=2e-5) == (2 * MORE_SAMPLES, "0.06 ms compiled, 0.02 ms on NumPy")
    assert judged([6e-5] * 200, in_a_row=8e-5) == (0, None)


def test_so_is_what_is_not_plainly_faster() -> None:
    def wanted(compiled: float) -> int:
        speed = speed_of([0.016] * NUMPY_SAMPLES, [])
        for _ in range(MORE_SAMPLES):
            speed.note_replays(compiled, compiled)
            assert speed.evidence_of_slowness() is None
        return speed.wanted

    assert wanted(0.012) == CALLS_IN_A_ROW
    assert wanted(0.004) == 0


def test_comparisons_supply_what_is_missing_of_calls_in_a_row() -> None:
    speed = speed_of([], [])
    speed.wanted = CALLS_IN_A_ROW
    speed.note_wanted(1e-3)  # and the others do not come
    for _ in range(NUMPY_SAMPLES):
        assert not speed.knows_numpy
        speed.note_compared(1e-3)
    assert speed.knows_numpy


def test_what_costs_more_is_given_up_by_few_calls() -> None:
    assert judged([0.1] * 200) == (SPEED_SAMPLES // 2, "100 ms compiled, 0.1 ms on NumPy")
    assert judged([0.6] * 200) == (MIN_SAMPLES, "600 ms compiled, 0.1 ms on NumPy")


@pytest.mark.usefixtures("at_any_time")
def test_other_programs_stretch_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunLedger, "stretch", 3.0)  # NumPy alone takes 0.033 ms
    # in `judged`, NumPy's times are stretched
    assert judged([5e-5] * 400)[1] == "0.15 ms compiled, 0.1 ms on NumPy"
    assert judged([3e-5] * 400) == (0, None)
    assert judged([1.1e-3] * 400)[1] == "1.1 ms compiled, 0.1 ms on NumPy"  # others have interrupted these


@pytest.mark.usefixtures("at_any_time")
def test_all_calls_of_a_streak_are_what_a_program_has_lost() -> None:
    speed = speed_of([1e-4] * NUMPY_SAMPLES, [])
    verdicts = []
    for _ in range(3 * SPEED_SAMPLES):
        speed.note_replays(30 * 1.2e-4, 1.2e-4, 30)
        verdicts.append(speed.evidence_of_slowness())
        while speed.wanted:
            speed.note_wanted(1e-4)
    assert verdicts.index("0.12 ms compiled, 0.1 ms on NumPy") == 3 * SPEED_SAMPLES - 1  # LOSS_S


def test_a_row_on_a_busy_machine_does_not_stand_where_the_sums_say_that_the_program_loses() -> None:
    speed = speed_of([1e-4], [1e-4])
    speed.wanted = CALLS_IN_A_ROW
    for _ in range(CALLS_IN_A_ROW):
        speed.note_wanted(5e-4)
    for _ in range(MORE_SAMPLES):
        speed.count_replay(2e-4)
        speed.note_replays(2e-4, 2e-4)
    assert speed.evidence_of_slowness() is None
    assert speed.wanted == CALLS_IN_A_ROW


def judged_while_busy(compiled: float, on_numpy: list[float], calls: int) -> str | None:
    speed = speed_of([], on_numpy)
    for _ in range(calls):
        speed.note_replays(compiled, compiled, quiet=False)
    return speed.evidence_while_busy()


def test_what_is_far_slower_is_given_up_while_other_programs_are_compiled() -> None:
    assert judged_while_busy(0.2, [0.001, 0.002], MIN_SAMPLES) == "200 ms compiled, 2 ms on NumPy"
    assert judged_while_busy(0.2, [0.001, 0.002], MIN_SAMPLES - 1) is None
    assert judged_while_busy(0.2, [0.001, 0.021], MIN_SAMPLES) is None  # compiling may slow calls down so much
    assert judged_while_busy(0.01, [1e-4], MIN_SAMPLES) is None  # it has cost little so far
    assert judged_while_busy(0.2, [], MIN_SAMPLES) is None


@pytest.mark.usefixtures("foreground")
def test_a_program_that_is_far_slower_does_not_wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    @accel.accelerate
    def body(x: Any) -> Any:
        return x * 2.0 + np.sin(x)

    calls = iter(range(100))
    for _ in range(8):
        body(np.full(8, next(calls)))
    target = body._self_target  # type: ignore[attr-defined]
    (path,) = target.paths
    path.speed.note_disturbed(1e-9)
    path.speed.numpy_s.clear()
    for module in ("replaying", "comparing.policy"):
        monkeypatch.setattr(f"accel.dispatch.{module}.is_quiet", lambda: False)
    monkeypatch.setattr("accel.policy.speed.MAX_LOSS_S", 0.0)
    for _ in range(8):
        body(np.full(8, next(calls)))
    assert path.stage is Stage.GIVEN_UP


def test_what_is_slower_while_other_programs_are_compiled_pauses_until_it_is_seen_to_be_faster() -> None:
    def pauses(compiled: float, on_numpy: list[float], calls: int = MIN_SAMPLES) -> bool:
        speed = speed_of([], on_numpy)
        speed.note_replays(compiled / 2, compiled / 2, quiet=False)  # the fastest counts
        for _ in range(calls - 1):
            speed.note_replays(compiled, compiled, quiet=False)
        assert speed.evidence_while_busy() is None
        return speed.pauses

    assert pauses(0.08, [0.016, 0.020, 0.120])  # one of NumPy's was held up
    assert not pauses(0.08, [0.016, 0.020, 0.120], MIN_SAMPLES - 1)
    assert not pauses(0.08, [0.028])
    assert not pauses(PAUSE_SHARE * MAX_LOSS_S / MIN_SAMPLES, [1e-3])
    short, lost = (4e-4, [1e-4]), PAUSE_SHARE * MAX_LOSS_S / 3e-4
    assert (pauses(*short, int(0.9 * lost)), pauses(*short, int(1.1 * lost))) == (False, True)
    speed = speed_of([0.004] * NUMPY_SAMPLES, [0.004])
    for _ in range(MIN_SAMPLES):
        speed.note_replays(0.03, 0.03, quiet=False)
    assert (speed.evidence_while_busy(), speed.pauses) == (None, True)
    for _ in range(MORE_SAMPLES):
        speed.note_replays(0.003, 0.003)
    assert (speed.evidence_of_slowness(), speed.pauses) == (None, False)


@pytest.mark.usefixtures("foreground")
def test_calls_that_pause_run_on_numpy_while_something_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    @accel.accelerate
    def body(x: Any) -> Any:
        return x * 2.0 + np.sin(x)

    def compiled(calls: int) -> int:
        before = open_ledger(target.name).compiled_calls
        for number in range(calls):
            x = np.full(8, number)
            assert np.array_equal(body(x), x * 2.0 + np.sin(x))
        return open_ledger(target.name).compiled_calls - before

    for number in range(8):
        body(np.full(8, number))
    target = body._self_target  # type: ignore[attr-defined]
    (path,) = target.paths
    path.speed.numpy_s.clear()
    path.speed.note_disturbed(1e-9)
    monkeypatch.setattr("accel.policy.speed.MAX_LOSS_S", 0.0)
    monkeypatch.setattr("accel.policy.speed.FAR_SLOWER", math.inf)  # it would be given up
    for module in ("replaying", "comparing.policy", "routing"):
        monkeypatch.setattr(f"accel.dispatch.{module}.is_quiet", lambda: False)
    assert compiled(8) == MIN_SAMPLES
    monkeypatch.setattr("accel.dispatch.routing.is_quiet", lambda: True)
    assert compiled(8) == 8
    assert path.stage is Stage.COMPILED


@pytest.mark.usefixtures("foreground")
def test_a_few_calls_in_a_row_run_on_numpy_once_to_be_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel.policy.speed.SPEED_SAMPLES", SPEED_SAMPLES)
    # compiled calls are faster
    monkeypatch.setattr(Speed, "note_compared", lambda self, seconds: self.numpy_s.add(1.0))

    @accel.accelerate
    def body(x: Any) -> Any:
        return x * 2.0 + np.sin(x)

    on_numpy, results = [], []
    for number in range(64):
        before = open_ledger(body._self_target.name).compiled_calls  # type: ignore[attr-defined]
        results.append(body(np.full(8, number)))
        if open_ledger(body._self_target.name).compiled_calls == before:  # type: ignore[attr-defined]
            on_numpy.append(number)
    late_ones = [number for number in on_numpy if number > MORE_SAMPLES][:CALLS_IN_A_ROW]
    assert late_ones == list(range(late_ones[0], late_ones[0] + CALLS_IN_A_ROW))
    assert all(np.array_equal(found, np.full(8, n) * 2.0 + np.sin(np.full(8, n))) for n, found in enumerate(results))


def test_calls_are_no_samples_while_the_worker_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = threading.Event()
    start, before = late._start_worker, set(threading.enumerate())
    monkeypatch.setattr(late, "_start_worker", lambda: (ready.wait(60.0), start()))
    monkeypatch.setattr(late.cache, "holds_programs", lambda: True)
    monkeypatch.setattr(late, "was_prestarted", False)
    assert is_quiet()
    late.prestart()
    assert not is_quiet()
    ready.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(60.0)
    assert is_quiet()


@pytest.mark.usefixtures("foreground")
def test_a_comparison_during_a_compile_is_better_than_no_time_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "is_quiet", lambda: False)
    # as where the program comes from disk: no call of its path has run on NumPy by itself
    monkeypatch.setattr(NumPyCalls, "_note_sample", lambda *args, **kwargs: None)

    @accel.accelerate
    def body(x: Any) -> Any:
        return x * 2.0 + np.sin(x)

    for _ in range(8):
        body(np.linspace(0.0, 1.0, 1000))
    (path,) = body._self_target.paths  # type: ignore[attr-defined]
    assert path.replays and not len(path.speed.numpy_s)
    assert path.speed.usual_s is not None
