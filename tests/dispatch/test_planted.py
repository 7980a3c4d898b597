"""Planted errors: a rule that is wrong is found by comparison, the target is demoted, and the values stay NumPy's."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accel
from accel import dispatch
from accel.backend import compile
from accel.dispatch.comparing import policy
from accel.dispatch.replay import Variant
from accel.ir.views import Broadcast
from accel.platform import config
from accel.platform.ledger import State, current_run, open_ledger
from accel.policy import speed
from accel.record.values.arrays import RecordedArray
from accel.record.values.calls.general import record_bound
from accel.record.values.calls.special import SPECIALS, Recorder
from accel.rules import load
from accel.rules.rule import RULES
from accel.rules.special import Special
from accel.rules.tables import ufuncs

CALLS = 8
MODES = ("auto", "verify")


@pytest.fixture(autouse=True)
def rules(foreground: None) -> None:
    """Every row is there to be made wrong."""
    load()


def field(i: int) -> Any:
    return np.random.default_rng(i).normal(size=(3, 4))


def exponential(x: Any) -> Any:
    return np.exp(x) * 2.0


def diagonal(x: Any) -> Any:
    np.fill_diagonal(x, 7.0)
    return x.sum()


def attribute(state: Any) -> Any:
    state.total = state.total + np.exp(state.x)
    return float(state.total.max())


def smallest(x: Any) -> Any:
    return np.min(x, axis=0)


def copied(x: Any) -> Any:
    return np.copy(x)


def plant(monkeypatch: pytest.MonkeyPatch, function: Any, **changes: Any) -> None:
    monkeypatch.setitem(RULES, function, dataclasses.replace(RULES[function], **changes))


def plant_recorder(monkeypatch: pytest.MonkeyPatch, function: Any, recorder: Recorder) -> None:
    """Let calls of `function` be recorded by `recorder`."""
    kind = type("Planted", (Special,), {})
    monkeypatch.setitem(SPECIALS, kind, recorder)
    plant(monkeypatch, function, recorded=dataclasses.replace(RULES[function].recorded, special=kind()))


def plant_exp(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    """Let the rule of np.exp lower to `change` of what it should be."""
    real = ufuncs.rule_for
    rule = real(np.exp)
    lower: Any = rule.lower
    planted = dataclasses.replace(rule, lower=lambda *operands, loop: change(lower(*operands, loop=loop)))
    monkeypatch.setattr(ufuncs, "rule_for", lambda ufunc: planted if ufunc is np.exp else real(ufunc))


def wrong_element(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_exp(monkeypatch, lambda y: y.at[(1, 2)].multiply(1.0 + 1e-6))


def wrong_tape(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder writes another operation down, and that one is lowered as it should be."""
    plant_recorder(
        monkeypatch,
        np.min,
        lambda recording, rule, bound, result: record_bound(recording, RULES[np.max], bound, result),
    )


def dropped_value(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, np.fill_diagonal, lower=lambda *, a, val, wrap=False: a)


def dropped_write(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_recorder(monkeypatch, np.fill_diagonal, lambda recording, rule, bound, result: result)


def dropped_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    from accel.record.run.outputs import Planner

    monkeypatch.setattr(Planner, "_write", lambda self, state: None)


def wrong_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Variant.run

    def narrow(self: Any, values: Any) -> Any:
        staged: Any = run(self, values)
        staged.made = [array.astype(np.float32) for array in staged.made]
        return staged

    monkeypatch.setattr(Variant, "run", narrow)


def recorded_alias(monkeypatch: pytest.MonkeyPatch) -> None:
    def alias(recording: Any, rule: Any, bound: Any, result: Any) -> Any:
        return RecordedArray(recording, result, bound["a"]._storage, (Broadcast(result.shape),))

    plant_recorder(monkeypatch, np.copy, alias)


def replayed_alias(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Variant.run

    def alias(self: Any, values: Any) -> Any:
        staged: Any = run(self, values)
        staged.made = [values[self.trace.array_slots[0]]]
        return staged

    monkeypatch.setattr(Variant, "run", alias)


Plant = Callable[[pytest.MonkeyPatch], None]
PLANTED: list[tuple[Plant, Callable[..., Any], str]] = [
    (wrong_element, exponential, r"the result\[1, 2\]: NumPy np\.float64\((.+)\), replay np\.float64\((?!\1).+\); "
     r"relative error 1e-06, tolerance 1e-09"),
    (wrong_tape, smallest, r"the result\[\d\]: NumPy np\.float64\((.+)\), replay np\.float64\((?!\1).+\)"),
    (dropped_value, diagonal, r"x\[1, 1\]: NumPy np\.float64\(7\.0\), replay .*; relative error .*, tolerance 1e-09"),
    (dropped_write, diagonal, r"x: was changed in place by NumPy, not by the replay"),
    (dropped_attribute, attribute, r"state\.total: was set by NumPy, not by the replay"),
    (wrong_dtype, exponential, r"the result: NumPy gives float64\[3, 4\], the replay float32\[3, 4\]"),
    (recorded_alias, copied, r"the result: NumPy gives a copy, the replay a view of x"),
    (replayed_alias, copied, r"the result: NumPy gives memory of its own, the replay memory of x"),
]  # fmt: skip
NAMES = [planted.__name__ for planted, _, _ in PLANTED]


def arguments(function: Any, i: int) -> Any:
    return SimpleNamespace(x=field(i), total=np.zeros((3, 4))) if function is attribute else field(i)


def state_of(argument: Any) -> Any:
    return argument.total if isinstance(argument, SimpleNamespace) else argument


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("planted", "function", "message"), PLANTED, ids=NAMES)
def test_a_planted_error_demotes_and_the_program_sees_numpys_values(
    planted: Plant,
    function: Callable[..., Any],
    message: str,
    mode: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    planted(monkeypatch)
    fast = accel.accelerate(function, name="planted", mode=mode)
    with caplog.at_level(logging.WARNING, "accel"):
        for i in range(CALLS):
            mine, theirs = arguments(function, i), arguments(function, i)
            expected, found = function(mine), fast(theirs)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(state_of(theirs), state_of(mine))
            assert np.asarray(found).dtype == np.asarray(expected).dtype
            assert not np.may_share_memory(np.asarray(found), state_of(theirs))
    ledger = open_ledger("planted")
    assert ledger.state is State.DEMOTED
    assert ledger.compiled_calls >= 1
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == 1, "once, loudly"
    lines = warned[0].splitlines()
    assert lines[0] == "accel: planted was taken back to NumPy  [verify.mismatch]"
    assert re.search(message, lines[2]), lines[2]
    if mode == "auto":
        assert ledger.compiled_calls == 1, "at the first replay"
    else:
        assert ledger.compiled_calls > 1, "comparing goes on, to find every difference"


def test_a_lowering_of_the_wrong_dtype_is_found_before_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_exp(monkeypatch, lambda y: y.astype(np.float32))
    fast = accel.accelerate(exponential, name="narrow")
    for i in range(CALLS):
        assert np.array_equal(fast(field(i)), exponential(field(i)))
    assert "lower.mismatch" in {refusal.reason for refusal in open_ledger("narrow").refusals}
    assert open_ledger("narrow").compiled_calls == 0


def test_a_lowering_that_raises_leaves_the_function_on_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(y: Any) -> Any:
        raise ZeroDivisionError("planted")

    plant_exp(monkeypatch, broken)
    fast = accel.accelerate(exponential, name="unlowered")
    for i in range(CALLS):
        assert np.array_equal(fast(field(i)), exponential(field(i)))
    (refusal,) = open_ledger("unlowered").refusals
    assert refusal.reason == "lower.failed"
    assert re.fullmatch(
        r"numpy\.exp at tests/dispatch/test_planted\.py:\d+: ZeroDivisionError: planted", refusal.detail
    )


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("out of memory\nin a pass")], ids=["silent", "long"])
def test_what_the_compiler_raised_is_told(by_xla: None, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """In a line, whether it has a message or a page of it."""

    def broken(*args: Any) -> Any:
        raise error

    monkeypatch.setattr(compile, "_built", broken)
    fast = accel.accelerate(exponential, name="uncompiled")
    for i in range(CALLS):
        assert np.array_equal(fast(field(i)), exponential(field(i)))
    (refusal,) = open_ledger("uncompiled").refusals
    assert (refusal.reason, refusal.detail) == ("compile.failed", f"{type(error).__name__}: {error}".splitlines()[0])


def test_a_program_that_cannot_run_leaves_the_function_on_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, values: Any) -> Any:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(Variant, "run", broken)
    fast = accel.accelerate(exponential, name="broken")
    for i in range(CALLS):
        assert np.array_equal(fast(field(i)), exponential(field(i)))
    (refusal,) = open_ledger("broken").refusals
    assert (refusal.reason, refusal.detail) == ("compile.failed", "RuntimeError: out of memory")
    assert open_ledger("broken").calls == CALLS


def test_an_error_that_comes_late_is_found_by_the_sample_however_little_is_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, count = Variant.run, iter(range(10**6))

    def wrong(self: Any, values: Any) -> Any:
        staged: Any = run(self, values)
        if next(count) > 20:
            staged.made[0] = staged.made[0] + 1e-3
        return staged

    monkeypatch.setattr(Variant, "run", wrong)
    fast = accel.accelerate(exponential, name="late")
    for i in range(policy.COMPARE_AGAIN_FACTOR * 30):
        fast(field(i))
    ledger = open_ledger("late")
    assert ledger.state is State.DEMOTED
    assert ledger.comparisons > policy.FIRST_COMPARED


def test_an_exception_that_only_numpy_raises_is_a_mismatch_and_reaches_the_caller() -> None:
    def work(x: Any) -> Any:
        return np.exp(x)

    fast = accel.accelerate(work, name="raising", mode="verify")
    for i in range(5):
        fast(field(i))

    def failing(x: Any) -> Any:
        raise ValueError("only here")

    fast._self_target.function = failing
    with pytest.raises(ValueError, match=r"^only here$"):
        fast(field(5))
    assert open_ledger("raising").state is State.DEMOTED
    (refusal,) = open_ledger("raising").refusals
    assert refusal.detail == "NumPy raised ValueError: only here; the replay raised nothing"


def test_strict_mode_raises_at_a_demotion_and_ever_after(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_element(monkeypatch)
    fast = accel.accelerate(exponential, name="strictly", mode="strict")
    with pytest.raises(dispatch.Refused, match=r"was taken back to NumPy  \[verify\.mismatch\]"):
        for i in range(CALLS):
            fast(field(i))
    with pytest.raises(dispatch.Refused, match=r"verify\.mismatch"):
        fast(field(0))


# -- near a threshold -------------------------------------------------------------------------------------------------


def step_at_one(x: Any) -> Any:
    return np.where(np.exp(x) > 1.0, 5.0, 0.0)


def nudged(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_exp(monkeypatch, lambda y: y * (1.0 - 1e-12))


def near_one(points: int) -> Any:
    x = np.linspace(-1.0, 1.0, 4000)
    x[:points] = 1e-13
    return x


def test_what_lies_near_a_threshold_is_reported_as_such_and_budgeted(monkeypatch: pytest.MonkeyPatch) -> None:
    nudged(monkeypatch)
    fast = accel.accelerate(step_at_one, name="near", mode="verify")
    for _ in range(6):
        assert np.array_equal(fast(near_one(2)), step_at_one(near_one(2)))
    ledger = open_ledger("near")
    assert ledger.state is State.COMPILED
    ((place, verdict),) = ledger.differences
    assert (place, verdict) == ("the result", "near a threshold")
    found = ledger.differences[place, verdict]
    assert found.worst.points == 2
    assert found.count == ledger.comparisons
    for _ in range(4):
        assert np.array_equal(fast(near_one(900)), step_at_one(near_one(900)))
    assert ledger.state is State.DEMOTED
    assert "points compared so far lay near a threshold, too many" in str(list(ledger.refusals)[-1].detail)
    assert ("the result", "mismatch") in ledger.differences


def test_an_error_away_from_every_threshold_is_none_of_that(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_exp(monkeypatch, lambda y: y * 1.5)
    fast = accel.accelerate(step_at_one, name="far", mode="verify")
    for _ in range(6):
        fast(near_one(2))
    assert open_ledger("far").state is State.DEMOTED


# -- how much time comparisons take ------------------------------------------------------------------------------------


@pytest.mark.parametrize("limited_by", ["gained", "compiled"])
def test_comparisons_stay_within_their_share_by_the_function_and_in_all(limited_by: str) -> None:
    fast = accel.accelerate(exponential, name="budget")
    for i in range(CALLS):
        fast(field(i))
    target, ledger = fast._self_target, open_ledger("budget")
    (path,) = target.paths
    for _ in range(speed.NUMPY_SAMPLES):
        path.speed.numpy_s.add(1.0)
    path.replays, path.compared_at = 50, 40
    target._routing.replaying.comparisons.last_s = 1.0
    run = current_run()
    for own, in_all, expected in ((100.0, 100.0, True), (100.0, 20.0, False), (20.0, 100.0, False)):
        ledger.gained_s = ledger.compiled_total_s = run.gained_s = run.compiled_s = 1e3
        setattr(ledger, "gained_s" if limited_by == "gained" else "compiled_total_s", own)
        setattr(run, f"{limited_by}_s", in_all)
        ledger.costs["comparing"] = run.costs["comparing"] = 1  # second
        assert target._routing.replaying.comparisons.is_due(path, "auto") is expected
    with config.override(check_share=0.5):
        assert target._routing.replaying.comparisons.is_due(path, "auto")
    path.replays = policy.COMPARE_AGAIN_FACTOR * path.compared_at
    assert target._routing.replaying.comparisons.is_due(path, "auto"), "never stopping altogether"
