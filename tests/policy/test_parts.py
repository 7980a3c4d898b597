"""Parts: when the targets inside a call come first, and when the call itself is recorded."""

from __future__ import annotations

import functools
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accel
from accel.backend.underway import queues
from accel.dispatch import accelerated, numpy_calls
from accel.dispatch.numpy_calls import NumPyCalls
from accel.dispatch.paths.program import Program
from accel.platform import config, gain
from accel.platform.ledger import current_run, open_ledger
from accel.policy import budget, parts, prices
from accel.policy.account import Account
from accel.policy.call import Call
from accel.policy.parts import Parts
from accel.policy.speed import NUMPY_SAMPLES, SPEED_SAMPLES, STRIKES, Speed

CODE: CodeType = compile("x = 1", "loop.py", "exec")


@pytest.fixture
def of_loop(unmeasured: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Parts]:
    """The parts of a loop that no earlier run has compiled. This process is taken to have a program."""
    monkeypatch.setattr(current_run(), "device", "cpu")
    monkeypatch.setattr(prices, "IS_ALONE", False)
    monkeypatch.setattr(prices, "worker_s", 0.0)
    monkeypatch.setattr(prices, "ALONE", 1.0)
    monkeypatch.setattr(parts.recorded, "count", 0)
    monkeypatch.setattr(budget, "import_s", 0.0)
    with config.override(cache_dir=tmp_path, finish_s=0.0):
        yield Parts("loop", CODE)


def call_of(seconds: float, own_s: float) -> Call:
    """A call that took so long, of which its own lines took a part."""
    call = Call(lambda: None, (), {})
    call.seconds, call.own_s = seconds, own_s
    return call


def price_s(made: Parts, recording_s: float = 0.3) -> float:
    """Give recordings of a loop this price. Returns that of recording and compiling it."""
    made.recording_s = lambda: recording_s
    operations = prices.recording.operations_for(recording_s)
    return recording_s + prices.describing.of(operations) + prices.burden_s(prices.compiling.of(operations))


def comes_in_s(recording_s: float = 0.3) -> float:
    """Seconds after which a program of that loop is there."""
    operations = prices.recording.operations_for(recording_s)
    return recording_s + prices.describing.of(operations) + prices.compiling.of(operations)


def note(made: Parts, times: int, missed_s: float, *, seconds: float = 0.1) -> None:
    for _ in range(times):
        made.note(call_of(seconds, 0.0), missed_s)


def test_a_loop_is_recorded_once_its_iterations_have_missed_the_price(of_loop: Parts) -> None:
    price = price_s(of_loop)
    note(of_loop, 9, price / 10)
    assert not of_loop.leave_enough and of_loop.come_first
    note(of_loop, 2, price / 10)
    assert of_loop.leave_enough and not of_loop.come_first


def test_the_start_of_a_worker_is_paid_for_too(of_loop: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gain, "potential_gain", gain.PotentialGain())
    monkeypatch.setattr(gain, "COMPILE_GAIN_S", 5.0)
    price = price_s(of_loop)
    note(of_loop, 10, price / 5)
    assert not of_loop.leave_enough
    gain.potential_gain.add(5.0)
    assert of_loop.leave_enough


def test_a_worker_that_has_still_to_start_delays_the_first_program(
    of_loop: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_loop.calls_left = lambda: 100
    note(of_loop, 10, 0.1)
    needed_s, miss_s = 100 * 0.1 / prices.CERTAIN, of_loop.certain_miss_s(1.0)
    assert not of_loop.end_before(needed_s - 0.1)
    monkeypatch.setattr(prices, "worker_s", 1.0)
    assert of_loop.end_before(needed_s - 0.1) and not of_loop.end_before(needed_s - 1.1)
    assert of_loop.certain_miss_s(1.0) == pytest.approx(miss_s - 1.0)


@pytest.mark.parametrize("alone", [True, False])
def test_nothing_is_compiled_for_later_runs_on_the_only_processor(
    alone: bool, of_loop: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prices, "IS_ALONE", alone)
    with config.override(finish_s=60.0):
        assert of_loop.are_for_later_runs == (not alone)


def test_a_loop_that_says_how_long_it_goes_on_is_recorded_for_what_it_is_certain_to_miss(of_loop: Parts) -> None:
    price = price_s(of_loop)
    left = [10**6]
    of_loop.calls_left = lambda: left[0]
    note(of_loop, parts.FEW - 1, price / 1000)
    assert not of_loop.leave_enough, "whether the first few calls are typical or not"
    note(of_loop, 1, price / 1000)
    assert of_loop.leave_enough
    left[0] = int(0.9 * prices.CERTAIN * 1000)
    assert not of_loop.leave_enough
    note(of_loop, 1, 0.0)
    left[0] = 10**6
    assert not of_loop.leave_enough, "the parts have their programs: there is nothing left to gain"


def test_a_function_has_no_parts() -> None:
    made = Parts("function", None)
    assert not made.come_first
    assert not made.pay
    assert made.pay_for_another(1.0, 10, awaited=False)
    assert made.pay_for_rerecording(1.0, 0)


def test_the_parts_come_first_until_enough_is_missed(of_loop: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    price = price_s(of_loop)
    assert of_loop.come_first
    monkeypatch.setattr(parts.recorded, "count", 1)
    note(of_loop, 1, 2.0 * price)
    assert of_loop.come_first, "what was recorded just now may have a program soon"
    note(of_loop, 1, 0.6 * price)
    assert of_loop.come_first
    note(of_loop, 1, 0.6 * price)
    assert not of_loop.come_first


def test_a_loop_that_ends_before_its_program_can_be_there_is_not_recorded(of_loop: Parts) -> None:
    price, left = price_s(of_loop), [10]
    of_loop.calls_left = lambda: left[0]
    note(of_loop, parts.FEW, 2.0 * price, seconds=0.9 * prices.CERTAIN * comes_in_s() / 10)
    assert of_loop.come_first
    left[0] = 20
    assert not of_loop.come_first


def test_what_a_loop_of_known_length_has_missed_itself_says_nothing_but_an_earlier_one_does(of_loop: Parts) -> None:
    price, left = price_s(of_loop), [1000]
    of_loop.calls_left = lambda: left[0]
    for at in range(10):
        left[0] = 1000 - at
        note(of_loop, 1, 0.0 if at else 2.0 * price)
    assert of_loop.come_first, "there is nothing left to gain"
    left[0] = 1000
    note(of_loop, 1, 0.0)
    assert not of_loop.come_first, "the next loop of this code has begun"


def test_what_earlier_runs_have_missed_pays_for_the_first_program(of_loop: Parts) -> None:
    price = price_s(of_loop)
    note(of_loop, 1, 0.6 * price)
    of_loop.note_end()
    second = Parts("loop", CODE)
    price_s(second)
    note(second, 1, 0.0)
    assert second.come_first
    note(second, 1, 0.6 * price)
    second.note_end()
    third = Parts("loop", CODE)
    price_s(third)
    note(third, 1, 0.0)
    assert not third.come_first and not third.is_known
    third.note_first()
    assert third.missed_before_s(1) == pytest.approx(1.2 * price)


def test_calls_before_a_program_is_there_are_not_certain_to_miss_anything(of_loop: Parts) -> None:
    of_loop.calls_left = lambda: 100
    note(of_loop, parts.FEW - 1, 0.05, seconds=0.1)
    assert of_loop.certain_miss_s(0.0) == 0.0, "too few show how long calls take"
    note(of_loop, 1, 0.05, seconds=0.1)
    assert of_loop.certain_miss_s(0.0) == pytest.approx(5.0)
    assert of_loop.certain_miss_s(4.0) == pytest.approx(3.0)
    assert of_loop.certain_miss_s(20.0) == 0.0


def test_a_loop_of_unknown_length_is_certain_to_miss_a_share_of_what_it_has_missed(of_loop: Parts) -> None:
    note(of_loop, 8, 0.5)
    assert of_loop.certain_miss_s(100.0) == pytest.approx(4.0 / parts.GONE_ON)
    of_loop.note_paid()
    assert of_loop.certain_miss_s(100.0) == 0.0, "it has paid for a recording"
    note(of_loop, 4, 0.5)
    assert of_loop.certain_miss_s(100.0) == pytest.approx(2.0 / parts.GONE_ON)
    of_loop.note_refused(1.0)
    assert of_loop.certain_miss_s(100.0) == 0.0, "it has paid for one that was refused"


def test_of_a_loop_of_unknown_length_the_length_of_earlier_runs_tells(
    of_loop: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = budget.without_accel_s()
    monkeypatch.setattr(budget, "without_accel_s", lambda: now_s)
    monkeypatch.setattr(current_run(), "expected_s", now_s + 101.0)
    for _ in range(parts.FEW):
        now_s += 2.0  # of which each call takes half
        of_loop.note(call_of(1.0, 0.0), 0.5)
    left_s = 101.0 - 2.0 * parts.FEW
    assert of_loop.certain_s == pytest.approx(left_s / 2, rel=0.01)
    assert of_loop.certain_miss_s(0.0) == pytest.approx(left_s / 4, rel=0.01)
    now_s += 200.0  # it takes longer this time
    assert of_loop.certain_s == 0.0
    assert of_loop.certain_miss_s(0.0) == pytest.approx(0.5 * parts.FEW / parts.GONE_ON)


def test_what_was_missed_before_a_recording_pays_by_the_share_of_calls_that_take_its_path(of_loop: Parts) -> None:
    for _ in range(10):
        of_loop.note(call_of(0.1, 0.1), 0.1)
    of_loop.note_first()
    assert of_loop.missed_before_s(0) == 0.0
    of_loop.note_paid()
    for _ in range(4):
        of_loop.note(call_of(0.1, 0.1), 0.1)
    assert of_loop.missed_before_s(1) == pytest.approx(0.25), "a kind of iterations that comes rarely"
    assert of_loop.missed_before_s(4) == of_loop.missed_before_s(9) == pytest.approx(1.0)


def test_they_do_not_come_first_where_they_take_little(of_loop: Parts) -> None:
    price_s(of_loop)
    of_loop.note(call_of(0.01, 0.008), 0.01)
    assert not of_loop.come_first
    of_loop.note(call_of(0.01, 0.001), 0.01)
    assert of_loop.come_first


@pytest.mark.parametrize(("finishes", "missed", "begins"), [(True, 1.2, True), (True, 0.5, False), (False, 1.2, False)])
def test_a_loop_that_ends_too_early_is_begun_for_later_runs(
    of_loop: Parts, finishes: bool, missed: float, begins: bool, tmp_path: Path
) -> None:
    own_s = parts.FREE_KINDS * price_s(of_loop)
    of_loop.calls_left = lambda: 1
    note(of_loop, 10, missed * own_s / 10)
    with config.override(finish_s=60.0 if finishes else 0.0, cache_dir=tmp_path):
        assert of_loop.come_first is not begins


def test_only_what_large_parts_leave_pays_for_recordings(of_loop: Parts) -> None:
    assert not of_loop.pay, "of a loop without parts, the budget does"
    of_loop.note(call_of(0.01, 0.008), 0.01)
    assert not of_loop.pay
    of_loop.note(call_of(0.01, 0.001), 0.01)
    assert of_loop.pay


def test_a_loop_that_an_earlier_run_has_compiled_is_recorded_at_once(of_loop: Parts) -> None:
    of_loop.note_begun()
    other = compile("x = 2; y = 3", "loop.py", "exec")
    for code, sooner in ((CODE, True), (other, False)):
        assert Parts("loop", code).come_first is not sooner


def test_without_any_path_refused_recordings_are_paid_for_before_the_next(of_loop: Parts) -> None:
    assert of_loop.pay_for_a_retry
    of_loop.note_unmatched(100.0)
    of_loop.note_refused(1.0)
    assert not of_loop.pay_for_a_retry, "what was missed before has paid for the refused one"
    of_loop.note_unmatched(0.9)
    assert not of_loop.pay_for_a_retry
    of_loop.note_unmatched(0.2)
    assert of_loop.pay_for_a_retry, "the other rounds may be unlike that one"
    of_loop.note_refused(1.0)
    of_loop.note_unmatched(1.5 * parts.RETRY_SHARE)
    assert not of_loop.pay_for_a_retry, "for all of them"
    of_loop.note_unmatched(0.6 * parts.RETRY_SHARE)
    assert of_loop.pay_for_a_retry
    of_loop.note_begun()
    known = Parts("loop", CODE)
    known.note_refused(0.5)
    known.note_refused(0.5)
    known.note_unmatched(1.1)
    assert known.pay_for_a_retry, "it has had a program"
    function = Parts("function", None)
    function.note_refused(1.0)
    assert function.pay_for_a_retry


def test_calls_that_are_not_examined_count_as_the_last_one_did(of_loop: Parts) -> None:
    """Where none of its programs takes them, most are not: their kind would never be recorded."""
    of_loop.note_kind("rain")
    of_loop.note_unmatched(0.25)
    of_loop.note_rested(3)
    assert of_loop.pay_for_another(1.0, parts.FREE_KINDS, awaited=False)
    of_loop.note_unmatched(0.25)
    of_loop.note_matched(1.0)
    of_loop.note_rested(100)
    assert not of_loop.pay_for_another(1.0, parts.FREE_KINDS, awaited=False), "the last one was of a known kind"


def test_a_new_kind_of_calls_pays_for_its_recording(of_loop: Parts) -> None:
    assert of_loop.pay_for_another(1.0, parts.FREE_KINDS - 1, awaited=False)
    assert not of_loop.pay_for_another(1.0, parts.FREE_KINDS, awaited=False)
    of_loop.note_unmatched(1.5)
    assert not of_loop.pay_for_another(2.0, parts.FREE_KINDS, awaited=False)
    assert of_loop.pay_for_another(1.0, parts.FREE_KINDS, awaited=False)
    assert not of_loop.pay_for_another(1.0, parts.FREE_KINDS, awaited=False)
    assert of_loop.pay_for_another(1.0, 6, awaited=True), "an earlier run's program has it"
    of_loop.note_refused(2.0)
    of_loop.note_unmatched(2.5)
    assert not of_loop.pay_for_another(1.0, 6, awaited=False), "a refused one is paid for first"
    of_loop.note_unmatched(1.0)
    assert of_loop.pay_for_another(1.0, 6, awaited=False)
    of_loop.note_refused(5.0)
    of_loop.note_kind(("model.py", 7))
    of_loop.note_unmatched(1.1)
    of_loop.note_kind(None)
    assert not of_loop.pay_for_another(1.0, 6, awaited=False), "calls of each kind pay for themselves"
    of_loop.note_kind(("model.py", 7))
    assert of_loop.pay_for_another(1.0, 6, awaited=False), "and not for refusals of others"
    assert not of_loop.pay_for_rerecording(1.0, 0)
    of_loop.note_matched(1.5)
    assert of_loop.pay_for_rerecording(1.0, 0)
    assert not of_loop.pay_for_rerecording(1.0, 0)
    of_loop.note_rerecorded(found=False)
    of_loop.note_matched(1.5)
    assert not of_loop.pay_for_rerecording(1.0, 0), "one look in vain doubles the price of the next"
    of_loop.note_matched(1.5)
    assert of_loop.pay_for_rerecording(1.0, 0)


@pytest.mark.parametrize(("compiled_s", "verdict"), [(0.02, "20 ms compiled, 10 ms in parts"), (0.011, None)])
def test_a_program_that_is_much_slower_than_the_parts_is_given_up(
    compiled_s: float, verdict: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accel.policy.speed.APART_S", 0.0)
    speed = Speed()
    for _ in range(NUMPY_SAMPLES):
        speed.numpy_s.add(0.05)
        speed.parts_s.add(0.01)
    verdicts: list[Any] = []
    for _ in range(STRIKES):
        for _ in range(SPEED_SAMPLES):
            speed.note_replays(compiled_s, compiled_s)
        verdicts.append(speed.evidence_of_slowness())
        for _ in range(NUMPY_SAMPLES):
            speed.numpy_s.add(0.05)
    assert verdicts == [None, verdict]


def test_rounds_whose_program_is_late_use_the_programs_of_their_parts(
    books: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outer function's program never comes; the inner one's comes at once."""
    inner = accel.accelerate(lambda x: np.sin(x) * 2.0 + 1.0, name="inner")

    def outer(x: Any) -> Any:
        return inner(x) - 1.0

    fast = accelerated(outer, name="outer", in_parts=outer.__code__)
    # on a busy machine the inner program is no faster than NumPy
    monkeypatch.setattr("accel.policy.speed.SPEED_SAMPLES", 10**9)
    monkeypatch.setattr("accel.policy.speed.MAX_LOSS_S", float("inf"))
    monkeypatch.setattr(prices, "burden_s", lambda compile_s: 0.0)
    monkeypatch.setattr("accel.policy.rest.SMALL_CALL_S", 0.0)
    monkeypatch.setattr("accel.platform.gain.COMPILE_GAIN_S", 0.0)
    monkeypatch.setattr(queues, "compile_in_background", queues.compile_now)
    monkeypatch.setattr(
        Parts, "come_first", property(lambda made: made.used and not open_ledger("inner").compiled_calls)
    )
    monkeypatch.setattr(Program, "is_ready", lambda it: it.name != "outer" and it.pending is not None)
    x = np.linspace(1.0, 2.0, 100_000)  # so long that each call is examined
    with config.override(ahead_of_time=True, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where it is an error, calls stay on NumPy
        for _ in range(60):
            np.testing.assert_allclose(fast(x), np.sin(x) * 2.0, rtol=1e-12)
    assert open_ledger("inner").compiled_calls > 20
    assert open_ledger("outer").compiled_calls == 0
    assert len(fast._self_target.paths) == 1


def test_calls_in_parts_of_which_none_runs_a_program_tell_what_compiling_slows_down(
    books: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls take 1 ms, and 3 ms while something is compiled."""
    busy, clock = [False], [0.0]

    def outer(x: Any) -> Any:
        clock[0] += 0.003 if busy[0] else 0.001
        return np.sin(x)

    call = functools.partial(Call, outer, (np.ones(3),), {})
    fast = accelerated(outer, name="outer", in_parts=outer.__code__)
    state = fast._self_target.state
    program: Any = SimpleNamespace(wait=lambda seconds: None, whole=SimpleNamespace(is_coming=False, speed=Speed()))
    program.whole.note_numpy = lambda seconds, quiet: program.whole.speed.numpy_s.add(seconds) if quiet else None
    monkeypatch.setattr(numpy_calls, "is_quiet", lambda: not busy[0])
    monkeypatch.setattr("accel.policy.call.time", SimpleNamespace(perf_counter=lambda: clock[0], thread_time=lambda: 0))
    numpy = NumPyCalls(state)
    for busy[0], times in ((False, 4), (True, 5)):
        for _ in range(times):
            numpy.without_program(program, call())
    assert current_run().costs["slowdown"] == pytest.approx(5 * 0.002)
    assert current_run().sampled_s == pytest.approx(4 * 0.001), "these say what other programs do"


@pytest.mark.parametrize("pays", [False, True])
def test_a_loop_that_was_refused_is_recorded_again_only_when_rounds_have_paid(
    books: ModuleType, monkeypatch: pytest.MonkeyPatch, pays: bool
) -> None:
    def outer(x: Any) -> Any:
        # an outcome that only a run could tell: later calls are not known for ones that were refused
        return np.sin(x) + time.time() * 0.0 if np.sin(x).sum() > 0.0 else x

    fast = accelerated(outer, name="outer", in_parts=outer.__code__)
    monkeypatch.setattr("accel.policy.rest.SMALL_CALL_S", 0.0)
    monkeypatch.setattr("accel.platform.gain.COMPILE_GAIN_S", 0.0)
    monkeypatch.setattr(Parts, "come_first", False)
    monkeypatch.setattr(Parts, "pay", True)
    monkeypatch.setattr(Parts, "note_unmatched", lambda made, missed_s: None)
    if pays:
        monkeypatch.setattr(Parts, "pay_for_a_retry", True)
    x = np.linspace(1.0, 2.0, 100_000)
    with config.override(ahead_of_time=True, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where it is an error, calls stay on NumPy
        for _ in range(60):
            np.testing.assert_array_equal(fast(x), np.sin(x))
    assert (fast._self_target.recordings.count > 1) is pays
    assert fast._self_target.recordings.count >= 1


@pytest.mark.parametrize("in_parts", [True, False])
def test_calls_that_are_refused_again_and_again_do_not_keep_a_new_kind_from_being_recorded(
    books: ModuleType, monkeypatch: pytest.MonkeyPatch, in_parts: bool
) -> None:
    def outer(x: Any, kind: int) -> Any:
        if kind == 1:
            open(os.devnull, "rb").close()
        return np.cos(x) if kind == 2 else np.sin(x) + kind

    fast = accelerated(outer, name="outer", in_parts=outer.__code__ if in_parts else None)
    target = fast._self_target
    monkeypatch.setattr(target.rest, "allowed", False)
    monkeypatch.setattr(Parts, "come_first", False)
    monkeypatch.setattr(Parts, "pay", True)
    monkeypatch.setattr(budget, "FIXED_S", 1e9)
    monkeypatch.setattr(budget, "TARGET_FIXED_S", 1e9)
    monkeypatch.setattr(Parts, "pay_for_another", lambda *_, **__: True)
    x = np.linspace(1.0, 2.0, 1000)
    with config.override(ahead_of_time=True, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where it is an error, calls stay on NumPy
        for kind in (*[0] * 20, *[1] * 60):
            np.testing.assert_array_equal(fast(x, kind), np.sin(x) + kind)
        assert len(target.paths) == 1
        for _ in range(1 if in_parts else 2):  # the refused recording lets one go by
            fast(x, 2)
    assert len(target.paths) == 2


def test_a_round_whose_recording_was_broken_off_is_recorded_again_once_that_may_take_longer(
    books: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outer(x: Any) -> Any:
        for k in range(300):
            x = x * float(k % 3) + 1.0
        return x

    fast = accelerated(outer, name="outer", in_parts=outer.__code__)
    recordings, longest_s = fast._self_target.recordings, [1e-9]
    monkeypatch.setattr(Parts, "come_first", False)
    monkeypatch.setattr(Parts, "pay", True)
    monkeypatch.setattr(Parts, "pay_for_a_retry", True)
    monkeypatch.setattr(Account, "longest_recording_s", property(lambda _: longest_s[0]))
    x = np.linspace(1.0, 2.0, 1000)

    def play(times: int) -> int:
        for _ in range(times):
            np.testing.assert_array_equal(fast(x), outer(x))
        return recordings.count

    with config.override(ahead_of_time=True, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where it is an error, calls stay on NumPy
        assert play(20) == 2 and recordings.broken_off_s == 1e-9, "one broken-off round says little of the others"
        longest_s[0] *= 2.0
        assert play(20) == 2, "it would be broken off again"
        longest_s[0] *= 2.0
        assert play(20) == 3 and recordings.broken_off_s == 4e-9
        longest_s[0] = 1e9
        assert play(2) == 4 and recordings.broken_off_s == 0.0
    assert len(fast._self_target.paths) == 1


def test_other_programs_that_slow_calls_down_do_not_lengthen_recordings(
    books: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    def record(*args: Any, max_s: float, **kwargs: Any) -> Any:
        limits.append(max_s)
        return plain(*args, max_s=max_s, **kwargs)

    plain = accel.record.record
    monkeypatch.setattr(accel.record, "record", record)
    monkeypatch.setattr(Account, "longest_recording_s", 8.0)
    monkeypatch.setattr(Account, "recording_s", 8.0)
    monkeypatch.setattr(current_run(), "sampled_s", 40.0)
    monkeypatch.setattr(current_run(), "worked_s", 10.0)
    with config.override(ahead_of_time=True, cache_dir=None):
        recordings = accelerated(lambda x: x + 1.0, name="outer")._self_target.recordings
        recordings._made(Call(lambda x: x + 1.0, (np.ones(3),), {}), again=False)
    assert limits == [2.0]


def test_a_recording_far_longer_than_the_usual_is_broken_off_and_the_next_may_take_longer(
    books: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    recordings = accelerated(lambda x: x + 1.0, name="outer")._self_target.recordings
    longest_s = [100.0]
    monkeypatch.setattr(Account, "longest_recording_s", property(lambda _: longest_s[0]))
    monkeypatch.setattr(Account, "recording_s", 0.4)
    assert recordings._longest_s == pytest.approx(3.0 * 0.4)
    recordings.broken_off_s = 1.2
    assert recordings._longest_s == pytest.approx(3.6)
    longest_s[0] = 2.0
    assert recordings._longest_s == 2.0, "never longer than what the function could gain"
