"""Freed memory: when it is kept, and what the calls before and after say of the gain."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from accel.platform import config, freed, tuning
from accel.platform.freed import CALLS, DOUBT, ENOUGH_S, TELLING_S, FreedMemory
from accel.policy.call import Call
from accel.reports import figures

CALL_S = 1.1 * ENOUGH_S / (CALLS - 1)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """What malloc was told."""
    found: list[object] = []
    monkeypatch.setattr(tuning, "_keeps_freed", False)
    monkeypatch.setattr(tuning, "_tell_malloc", lambda largest, kept: not found.append((largest, kept)))
    yield found


def _range(factor: float) -> tuple[float, float]:
    return pytest.approx((1 + (1 - DOUBT) * (factor - 1), 1 + (1 + DOUBT) * (factor - 1)))


@pytest.mark.parametrize("tune", [True, False])
def test_the_first_calls_run_without_it_and_the_next_ones_with_it(told: list[object], tune: bool) -> None:
    """Half of the first calls' time is in the kernel, a fifth of the next ones', and their work differs."""
    memory = FreedMemory()
    with config.override(tune=tune):
        for number in range(CALLS):
            assert memory.factor is None and not told and memory.waits == (number == 0)
            memory.note("loop", (1 + number) * CALL_S, (1 + number) * CALL_S / 2)
            memory.note("a short function", 0.0, 0.0)
        assert told == ([(tuning.LARGEST, tuning.KEPT)] if tune else [])
        for number in range(CALLS):
            assert memory.factor is None
            memory.note("another loop", 9.0 if number == 0 else CALL_S, 9.0 if number == 0 else CALL_S / 5)
    assert memory.factor == (_range(2.0 / 1.25) if tune else None)
    assert memory.targets == (frozenset({"loop", "a short function"}) if tune else None)


@pytest.mark.parametrize(("before", "after"), [(0.0, 0.0), (0.01, 0.2)])
def test_it_is_never_a_loss(told: list[object], before: float, after: float) -> None:
    memory = FreedMemory()
    for number in range(2 * CALLS):
        memory.note("loop", CALL_S, (before if number < CALLS else after) * CALL_S)
    assert memory.factor == (1.0, 1.0) and told


@pytest.mark.parametrize("calls", [CALLS, CALLS - 1])
def test_a_compile_that_keeps_memory_ends_the_first_calls(told: list[object], calls: int) -> None:
    memory = FreedMemory()
    for _ in range(calls):
        memory.note("loop", TELLING_S / 4, TELLING_S / 8)
    tuning.keep_freed()
    for _ in range(CALLS + 1):
        memory.note("loop", TELLING_S / 4, 0.0)
    assert memory.factor == (_range(2.0) if calls == CALLS else None)
    assert not memory.waits and memory.system_s() == 0.0


def test_memory_is_kept_if_calls_are_too_short_to_tell(told: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    memory = FreedMemory()
    clock = [1.0]
    monkeypatch.setattr("accel.platform.clocks.time.process_time", lambda: clock[0])
    memory.note("loop", 1e-6, 0.0)
    clock[0] += freed.LATEST_S[0] - 0.01
    memory.note("loop", 1e-6, 0.0)
    assert not told
    clock[0] += 0.02
    memory.note("loop", 1e-6, 0.0)
    assert told and memory.factor is None


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not count by thread")
def test_a_call_knows_its_time_in_the_kernel_while_that_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed, "current", FreedMemory())
    cleared = Call(np.ones, (10**8,), {})
    cleared.run(fair=True)
    assert 0.0 < cleared.system_s < 2 * cleared.worked_s
    freed.current.begin()
    later = Call(np.ones, (10**8,), {})
    later.run(fair=True)
    assert later.system_s == 0.0


def test_an_earlier_run_tells_the_factor(told: list[object]) -> None:
    memory = FreedMemory()
    assert memory.waits
    memory.begin(3.0)
    assert told and not memory.waits
    assert memory.factor == _range(3.0) and memory.targets is None


def test_after_it_was_given_back_it_is_measured_anew(told: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed, "current", FreedMemory())
    freed.current.begin(2.0)
    freed.give_back()
    assert told[1:] == [((tuning.USUAL,), tuning.USUAL)]
    assert freed.current.factor is None and freed.current.waits and not tuning.keeps_freed()


def test_calls_of_several_threads_gain_no_more_than_the_run_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed, "current", FreedMemory())
    freed.current.factor = 1.5, 3.0
    calls = {"target": "loop", "numpy_s": 8.0, "compiled_s": 0.0, "gained_s": 0.0}
    assert figures._freed_range([calls], 2.0) == (1.0, 4.0)
    assert figures._freed_range([calls], 10.0) == (4.0, 16.0)


def test_calls_of_which_none_was_measured_may_have_gained_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed, "current", FreedMemory())
    freed.current.factor, freed.current.targets = (1.5, 3.0), frozenset({"loop"})
    calls = [{"target": name, "numpy_s": 8.0, "compiled_s": 0.0, "gained_s": 0.0} for name in ("loop", "another")]
    assert figures._freed_range(calls, 100.0) == (4.0, 32.0)
