"""Dispatch: what a call leads to, by mode, by refusal, and by what comparisons find."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import sys
import threading
import time
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accel
from accel import dispatch
from accel.backend.underway import queues
from accel.backend.underway.pending import PendingProgram
from accel.dispatch import compiling, routing
from accel.dispatch.comparing import policy
from accel.dispatch.paths.stages import Stage
from accel.dispatch.replay import SideExit, Variant
from accel.platform import config
from accel.platform.ledger import State, open_ledger
from accel.platform.ledger import reset as reset_ledgers
from accel.policy import prices, second_look, speed
from accel.policy.account import Account
from accel.policy.rest import LOOKS_AFTER_LONG_CALL
from accel.rules.rule import RULES, Rule
from tests.helpers import some

pytestmark = pytest.mark.usefixtures("foreground")


def double(x: Any) -> Any:
    """Doubled."""
    return x * 2.0


def test_calls_are_counted_by_what_answered_them() -> None:
    fast = accel.accelerate(double, name="d")
    for i in range(12):
        assert np.array_equal(fast(some(i)), double(some(i)))
    ledger = open_ledger("d")
    assert ledger.calls == 12
    assert ledger.compiled_calls + ledger.numpy_calls == 12
    assert ledger.compiled_calls >= 6
    assert ledger.state is State.COMPILED
    assert ledger.max_rel_error == 0.0


def test_a_wrapper_looks_like_its_function() -> None:
    fast = accel.accelerate(double)
    assert fast.__name__ == "double"
    assert fast.__doc__ == "Doubled."
    assert fast.__wrapped__ is double


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_static_and_class_methods(kind: Any) -> None:
    def work(*args: Any) -> Any:
        return args[-1] * 2.0

    class Holder:
        method = accel.accelerate(kind(work), name="m")

    for i in range(6):
        assert np.array_equal(Holder.method(some(i)), some(i) * 2)
        assert np.array_equal(Holder().method(some(i)), some(i) * 2)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^accelerate takes a function written in Python, not ufunc$"):
        accel.accelerate(np.sin)


def test_a_long_first_call_does_not_keep_its_inner_targets_on_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = accel.accelerate(double, name="inner")

    def simulate(x: Any, rounds: int) -> Any:
        for _ in range(rounds):
            x = inner(x) / 2.0
        return x

    for seconds, compiles in ((0.0, True), (1e9, False)):
        reset_ledgers()
        monkeypatch.setattr(routing, "LONG_CALL_S", seconds)
        with config.override(ahead_of_time=True):
            outer = accel.accelerate(simulate, name="outer")
            assert np.array_equal(outer(some(1), 60), some(1))
        assert bool(open_ledger("inner").calls) is compiles
        assert open_ledger("outer").numpy_calls == 1


@pytest.mark.parametrize("off", [{"mode": "off"}, {"enabled": False}])
def test_mode_off_passes_every_call_through(off: dict[str, Any]) -> None:
    with config.override(**off):
        fast = accel.accelerate(double, name="off")
        for i in range(6):
            fast(some(i))
    assert open_ledger("off").compiled_calls == 0
    assert {refusal.reason for refusal in open_ledger("off").refusals} == {"mode.off"}


def test_strict_mode_raises_for_a_refusal() -> None:
    def work(x: Any) -> Any:
        return np.trim_zeros(x)

    fast = accel.accelerate(work, name="strict")
    with config.override(mode="strict"), pytest.raises(dispatch.Refused, match=r"shape\.dynamic"):
        fast(some(1))


def test_a_raising_warning_filter_keeps_calls_on_numpy() -> None:
    fast = accel.accelerate(double, name="filters")
    for i in range(6):
        fast(some(i))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast(some(7))
    assert "fp.errstate" in {refusal.reason for refusal in open_ledger("filters").refusals}
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        before = open_ledger("filters").compiled_calls
        fast(some(8))
    assert open_ledger("filters").compiled_calls == before + 1


def test_compiled_calls_warn_of_no_number() -> None:
    """Numbers that Python computes may be NumPy's own, which warn where they overflow."""

    def work(x: Any, a: Any) -> Any:
        b = a * a
        return np.minimum(b, 3.0) * x + (1.0 if b > 1.0 else 2.0)

    fast = accel.accelerate(work, name="loud")
    for _ in range(6):
        fast(np.ones(3), np.float64(2.0))
    compiled = open_ledger("loud").compiled_calls
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        assert fast(np.ones(3), np.float64(1e200)).tolist() == [4.0] * 3
    assert open_ledger("loud").compiled_calls == compiled + 1 and given == []


def test_a_mismatch_demotes_and_numpys_result_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = accel.accelerate(double, name="wrong")
    run = Variant.run

    def wrong(self: Any, values: Any) -> Any:
        staged = run(self, values)
        staged.made[0] = staged.made[0] + 1.0
        return staged

    monkeypatch.setattr(Variant, "run", wrong)
    for i in range(8):
        assert np.array_equal(fast(some(i)), some(i) * 2)
    ledger = open_ledger("wrong")
    assert ledger.state is State.DEMOTED
    assert [refusal.reason for refusal in ledger.refusals] == ["verify.mismatch"]


def test_slower_than_numpy_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SPEED_SAMPLES", 4)
    fast = accel.accelerate(double, name="slow")
    for i in range(2000):  # as many as a busy machine needs
        fast(some(i % 60))
        if open_ledger("slow").refusals:
            break
    assert "speed.slower" in {refusal.reason for refusal in open_ledger("slow").refusals}


def test_larger_arrays_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is slower than NumPy for small arrays need not be so for large ones."""

    def smoothed(x: Any) -> Any:
        for _ in range(20):
            x = (x[2:] + x[:-2]) * 0.5
        return x

    run = Variant.run

    def slow(self: Variant, values: Any) -> Any:
        if any(getattr(value, "shape", None) == (small,) for value in values):
            time.sleep(0.25)
        return run(self, values)

    small, large = 2_000, 2_000_000
    monkeypatch.setattr(second_look, "LONG_CALL_FACTOR", 60.0)  # of 400: a small call may take a millisecond, too
    monkeypatch.setattr(Variant, "run", slow)
    monkeypatch.setattr(speed, "MAX_LOSS_S", 0.5)
    fast = accel.accelerate(smoothed, name="grown")
    ledger = open_ledger("grown")
    for i in range(16):
        fast(np.arange(small) + float(i))
    assert ledger.state is State.DEMOTED
    few = ledger.compiled_calls
    for size, count in ((large, 2), (small, LOOKS_AFTER_LONG_CALL)):
        for i in range(count):
            fast(np.arange(size) + float(i))
        assert ledger.state is (State.NUMPY if size == large else State.DEMOTED)
    for i in range(16):
        x = np.arange(large) + float(i)
        assert np.array_equal(fast(x), smoothed(x))
    assert ledger.state is State.COMPILED and ledger.compiled_calls >= few + 4
    # the small ones stay on NumPy
    for i in range(4):
        fast(np.arange(small) + float(i))
    assert {refusal.reason for refusal in ledger.refusals} == {"speed.slower"}


def test_what_costs_tenths_of_seconds_is_given_up_after_a_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Variant.run

    def slow(self: Variant, values: Any) -> Any:
        time.sleep(0.25)
        return run(self, values)

    monkeypatch.setattr(Variant, "run", slow)
    monkeypatch.setattr(speed, "MAX_LOSS_S", 0.5)
    fast = accel.accelerate(double, name="costly")
    for i in range(16):
        fast(some(i))
    ledger = open_ledger("costly")
    assert ledger.state is State.DEMOTED
    assert 0 < ledger.compiled_calls <= policy.FIRST_COMPARED + 5


def test_variants_are_limited_and_the_report_names_what_multiplies_them() -> None:
    def work(x: Any, n: int) -> Any:
        for _ in range(n):
            x = x * 0.5
        return x

    fast = accel.accelerate(work, name="many")
    with config.override(max_variants=2):
        for i in range(30):
            n = i % 5
            assert np.allclose(fast(some(i), n), some(i) * 0.5**n)
    ledger = open_ledger("many")
    named = [refusal.detail for refusal in ledger.refusals if refusal.reason == "limit.variants"]
    assert named
    assert "line" in named[0]
    assert ledger.compiled_calls > 0


def test_where_each_call_takes_another_path_recordings_end() -> None:
    """Compiling at once has no budget: recordings, and looking at calls, end all the same."""
    made: Any = accel.accelerate(double, name="each")
    with config.override(max_variants=2):
        for n in range(1000):
            assert np.array_equal(made(x := some(1, n)), x * 2.0)
        assert made._self_target.recordings.count < 10, "each waits twice as long as the one before"
        assert made._self_target.state.may_rest
    assert not made._self_target.state.may_rest, "more paths are kept now"


def test_a_line_that_is_asked_again_and_again_is_named() -> None:
    """Each path of a sort has both answers: only their order differs."""

    def ranked(x: Any) -> Any:
        return x * sorted(range(50), key=lambda i: x[i])[0]

    fast = accel.accelerate(ranked, name="ranked")
    for i in range(40):
        x = np.random.default_rng(i).normal(size=50)
        assert np.array_equal(fast(x), ranked(x))
    named = [refusal.detail for refusal in open_ledger("ranked").refusals if refusal.reason == "limit.variants"]
    assert named
    assert named[0].startswith("paths differ at line")


def test_exceptions_are_counted_as_calls() -> None:
    def work(x: Any) -> Any:
        raise ValueError("no")

    fast = accel.accelerate(work, name="raises")
    for i in range(5):
        with pytest.raises(ValueError, match=r"^no$") as caught:
            fast(some(i))
        assert caught.value.__context__ is None
    assert open_ledger("raises").calls == 5


def test_a_wrapper_of_a_module_pickles_by_name() -> None:
    fast = accel.accelerate(double)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(fast)  # the module's `double` is not this wrapper


class Planet:
    def __init__(self) -> None:
        self.t = np.ones(3)
        self.callback = self.step
        self.helper = doubled

    @accel.accelerate
    def step(self, dt: float) -> Any:
        self.t = self.t + dt
        return self.t


doubled = accel.accelerate(double)


def test_copies_and_pickles_of_bound_wrappers_are_those_of_methods() -> None:
    planet = Planet()
    shallow, deep = copy.copy(planet), copy.deepcopy(planet)
    assert deep.helper is shallow.helper is doubled
    assert shallow.callback.__self__ is planet
    assert deep.callback.__self__ is deep
    deep.callback(1.0)
    assert (deep.t[0], planet.t[0]) == (2.0, 1.0)
    assert copy.copy(planet.step)(2.0)[0] == planet.t[0] == 3.0
    planet.helper = planet.callback = None
    assert pickle.loads(pickle.dumps(planet.step))(1.0)[0] == 4.0
    assert planet.t[0] == 3.0


def test_a_call_that_raises_after_an_effect_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    def work(x: Any) -> Any:
        sys.stdout.writelines(["once\n"])
        raise ValueError(float(x.sum()))

    fast = accel.accelerate(work, name="raises")
    for _ in range(20):
        with pytest.raises(ValueError, match="2"):
            fast(np.ones(2))
    assert capsys.readouterr().out == "once\n" * 20
    assert open_ledger("raises").numpy_calls == 20
    assert fast._self_target.recordings.count < 5


def test_a_tracer_keeps_calls_on_numpy_while_it_watches() -> None:
    fast = accel.accelerate(double, name="traced")
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        for i in range(6):
            fast(some(i))
    finally:
        sys.settrace(before)
    if before is not None:
        pytest.skip("the tests themselves are traced")
    assert {refusal.reason for refusal in open_ledger("traced").refusals} == {"environment.traced"}
    for i in range(8):
        fast(some(i))
    assert open_ledger("traced").compiled_calls > 0


def test_a_call_during_another_one_of_the_same_function_stays_on_numpy() -> None:
    entered, leave, first = threading.Event(), threading.Event(), [True]

    def work(x: Any) -> Any:
        if first:
            first.clear()
            entered.set()
            leave.wait(30)
        return x * 2.0

    fast = accel.accelerate(work, name="busy")
    other = threading.Thread(target=lambda: fast(some(0)))
    with config.override(ahead_of_time=True):  # the first call shows NumPy's time
        other.start()
        assert entered.wait(30)
        assert np.array_equal(fast(some(1)), some(1) * 2.0)
        leave.set()
        other.join()
    assert {refusal.reason for refusal in open_ledger("busy").refusals} == {"environment.busy"}
    assert open_ledger("busy").calls == 2


def test_what_changes_behind_the_recordings_back_breaks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SimpleNamespace(k=1.0)

    def meddling(x: Any) -> Any:
        state.k += 1.0
        return x * 2.0

    rule = Rule("meddling", meddling, meddling, operands=("x",), signature=inspect.signature(meddling))
    monkeypatch.setitem(RULES, meddling, rule)

    def work(state: Any, x: Any) -> Any:
        return meddling(x * state.k) + state.k

    fast = accel.accelerate(work, name="behind")
    for i in range(4):
        expected = some(i) * state.k * 2.0 + (state.k + 1.0)
        assert np.array_equal(fast(state, some(i)), expected)
    assert {refusal.reason for refusal in open_ledger("behind").refusals} == {"guard.unstable"}


# -- which path is next -----------------------------------------------------------------------------------------------


def all_runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the runs of programs give from now on."""
    runs: list[Any] = []
    plain_run = Variant.run

    def run(self: Variant, values: list[Any]) -> Any:
        runs.append(plain_run(self, values))
        return runs[-1]

    monkeypatch.setattr(Variant, "run", run)
    return runs


def test_a_periodic_program_costs_few_discarded_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths that only outcomes tell apart: after a few periods, the right one is tried first."""

    def work(x: Any) -> Any:
        return x * 2.0 if x.sum() > 0.0 else x - 1.0

    runs = all_runs(monkeypatch)
    fast = accel.accelerate(work)
    pattern = [1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0]
    for _ in range(8):
        for sign in pattern:
            fast(np.full(3, sign))
    runs.clear()
    for sign in pattern * 4:
        assert np.array_equal(fast(np.full(3, sign)), work(np.full(3, sign)))
    assert not any(isinstance(each, SideExit) for each in runs)


def test_a_program_whose_runs_are_all_discarded_is_tried_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """From call 10 to 109 the keys are equal, whose order only NumPy knows; afterwards the program is found again."""
    runs = all_runs(monkeypatch)
    fast = accel.accelerate(lambda keys: np.argsort(keys), name="ties")
    for i in range(250):
        keys = np.random.default_rng(i).integers(0, 3 if 10 <= i < 110 else 10**9, 50)
        assert np.array_equal(fast(keys), np.argsort(keys))
    assert sum(isinstance(each, SideExit) for each in runs) <= 8
    assert open_ledger("ties").compiled_calls > 100


def test_a_further_path_is_compiled_once_it_is_taken_often_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "compile_in_background", queues.compile_now)
    monkeypatch.setattr(prices, "burden_s", lambda compile_s: 0.0)
    fast = accel.accelerate(lambda x, rare: x * 3.0 if rare else x * 2.0, name="branching")

    def programs() -> int:
        return sum(path.stage is Stage.COMPILED for path in fast._self_target.paths)

    with config.override(ahead_of_time=True):
        for _ in range(8):
            fast(some(1), False)
        assert programs() == 1
        monkeypatch.setattr(prices, "burden_s", lambda compile_s: 1e9)
        for _ in range(8):
            assert np.array_equal(fast(some(1), True), some(1) * 3.0)
        assert programs() == 1
        monkeypatch.setattr(prices, "burden_s", lambda compile_s: 0.0)
        for _ in range(8):
            assert np.array_equal(fast(some(1), True), some(1) * 3.0)
        assert programs() == 2


def test_the_report_says_what_a_function_waits_for_until_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    made = PendingProgram((None, None, ()))  # type: ignore[arg-type]

    def never_ready(*arguments: Any, **options: Any) -> Any:
        return made

    def reasons() -> dict[str, int]:
        (function,) = json.loads(accel.report("json"))["functions"]
        return {each["id"]: each["count"] for each in function["reasons"]}

    fast = accel.accelerate(double, name="patient")
    with monkeypatch.context() as patch, config.override(ahead_of_time=True):
        patch.setattr(queues, "compile_in_background", never_ready)
        patch.setattr(prices, "burden_s", lambda compile_s: 0.0)
        fast(some(0))
        fast(some(1))
        assert reasons() == {"wait.calls": 2}
        for i in range(6):
            fast(some(i))
        assert reasons() == {"wait.compile": 8}
        made.set_exception(ValueError("planted"))
        fast(some(0))
        assert reasons() == {"compile.failed": 1}
    fast = accel.accelerate(double, name="patient")
    for i in range(6):
        fast(some(i))
    assert reasons() == {"compile.failed": 1}


def test_a_call_that_is_always_refused_is_looked_at_ever_more_rarely() -> None:
    def work(x: Any) -> Any:
        sys.stdout.writelines([])
        return x + 1.0

    fast = accel.accelerate(work, name="printing")
    for _ in range(300):
        fast(some(2))
    ledger = open_ledger("printing")
    assert (ledger.calls, ledger.numpy_calls) == (300, 300)
    assert 0 < sum(ledger.refusals.values()) < 60


@pytest.mark.usefixtures("books", "in_background")
@pytest.mark.parametrize("way", ["operations", "branches"])
def test_a_recording_that_takes_long_is_broken_off(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Account, "longest_recording_s", 0.0)

    def work(x: Any) -> Any:
        y = np.sqrt(x)
        for k in range(300):
            if way == "branches":
                y = y * 1.0 if x[k] > 0.5 else y
            else:
                y = y * float(k) + 1.0
        return y

    fast = accel.accelerate(work, name="long")
    with config.override(ahead_of_time=True):  # the budget holds
        for seed in range(8):
            x = np.random.default_rng(seed).random(1000)
            np.testing.assert_array_equal(fast(x), work(x))
    (refusal,) = {each for each in open_ledger("long").refusals if each.reason == "limit.nodes"}
    assert "more than 0.0 s" in refusal.detail


def test_what_differs_from_a_constant_is_noticed_before_anything_is_written() -> None:
    """The contents of constant arrays are compared while the program runs; results are NumPy's all the same."""

    class Model:
        def __init__(self) -> None:
            self.table = np.arange(6.0)
            self.state = np.zeros(6)

        def step(self) -> Any:
            self.state = self.state + np.sin(self.table)
            self.state[0] += 1.0
            return self.state.sum()

    plain, fast = Model(), Model()
    step = accel.accelerate(Model.step, name="constant")
    for i in range(24):
        if i in (10, 15):
            plain.table[3] += 1.0
            fast.table[3] += 1.0
        assert step(fast) == pytest.approx(plain.step(), rel=1e-12)
        np.testing.assert_allclose(fast.state, plain.state, rtol=1e-12)
    assert open_ledger("constant").compiled_calls >= 10


def test_what_changed_on_one_path_is_constant_on_none(foreground: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each path that took the number for constant would have to be compiled again for it."""

    class Model:
        def __init__(self) -> None:
            self.rate = 0.5

        def step(self, x: Any, warm: bool) -> Any:
            return np.sin(x) ** self.rate if warm else np.cos(x) ** self.rate

    model, x = Model(), np.linspace(0.0, 1.0, 50)
    fast: Any = accel.accelerate(Model.step, name="rates")
    with config.override(ahead_of_time=False, cache_dir=None):
        for _ in range(8):
            fast(model, x, True)
        monkeypatch.setattr(compiling, "OBSERVED", 10**9)  # the other path is watched only
        for _ in range(3):
            fast(model, x, False)
        warm, cold = sorted(fast._self_target.paths, key=lambda path: path.stage is Stage.OBSERVING)
        assert (warm.stage, cold.stage) == (Stage.COMPILED, Stage.OBSERVING)
        assert any("rate" in cold.trace.inputs.name(slot) for slot in cold.constants.values)
        model.rate = 0.25
        for given in (True, True, False):
            assert np.allclose(fast(model, x, given), Model.step(model, x, given), rtol=1e-13)
    assert not any("rate" in cold.trace.inputs.name(slot) for slot in cold.constants.values)
    assert any("rate" in cold.trace.inputs.name(slot) for slot in cold.constants.varying)


def test_targets_inside_a_path_that_was_given_up_are_accelerated(foreground: None) -> None:
    inner = accel.accelerate(lambda x: np.sin(x) * 2.0, name="inner")
    outer: Any = accel.accelerate(lambda x: inner(x) + 1.0, name="outer")
    x = np.linspace(0.0, 1.0, 50)
    for _ in range(6):
        outer(x)
    assert open_ledger("outer").compiled_calls > 0 and open_ledger("inner").compiled_calls == 0
    (path,) = outer._self_target.paths
    path.program.give_up()
    for _ in range(8):
        np.testing.assert_allclose(outer(x), np.sin(x) * 2.0 + 1.0, rtol=1e-12)
    assert open_ledger("inner").compiled_calls > 0


def test_an_exception_keeps_its_context() -> None:
    """The one that was being handled when it was raised, and not the one that is where the call was made."""

    def work(x: Any) -> Any:
        sys.stdout.writelines([])  # what follows cannot be undone
        try:
            raise KeyError("first")
        finally:
            raise ValueError(x.sum() > 0.0)

    def chain(function: Any) -> list[str]:
        try:
            raise OSError("outside")
        except OSError:
            with pytest.raises(ValueError, match="True") as caught:
                function(some(0))
        found: list[str] = []
        error: BaseException | None = caught.value
        while error is not None:
            found.append(repr(error))
            error = error.__context__
        return found

    fast, expected = accel.accelerate(work, name="chained"), chain(work)
    assert len(expected) == 3
    for _ in range(6):
        assert chain(fast) == expected
