"""Freed memory: when it is kept, and what the calls before and after say of the gain."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from accel.platform import config, freed, tuning
from accel.platform.freed import CALLS, DOUBT, LEAST_S, WIDEST, FreedMemory
from accel.reports import figures

TELLING_S = 2 * LEAST_S / CALLS


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """What malloc was told."""
    found: list[object] = []
    monkeypatch.setattr(tuning, "_keeps_freed", False)
    monkeypatch.setattr(tuning, "_tell_malloc", lambda largest, kept: not found.append((largest, kept)))
    yield found


@pytest.mark.parametrize("tune", [True, False])
def test_the_first_calls_of_a_target_run_without_it_and_the_next_ones_with_it(told: list[object], tune: bool) -> None:
    memory = FreedMemory()
    with config.override(tune=tune):
        for seconds in (9.0, *[4 * TELLING_S] * (CALLS - 2)):
            memory.note("loop", seconds)
            memory.note("a short function", 1e-6)
        assert memory.factor is None and not told and not memory.waits
        memory.note("loop", 5 * TELLING_S)
        assert told == ([(tuning.LARGEST, tuning.KEPT)] if tune else [])
        for seconds in (9.0, *[2 * TELLING_S] * (CALLS - 1)):
            memory.note("loop", seconds)
            memory.note("another loop", 1.0)
    assert memory.factor == ((2.0, 2.0) if tune else None)
    assert memory.likely_factor == (2.0 if tune else 0.0)


@pytest.mark.parametrize(("other", "factor"), [(WIDEST, (1.0, WIDEST)), (2 * WIDEST, None)])
def test_calls_that_differ_give_a_range_and_never_a_loss(
    told: list[object], other: float, factor: tuple[float, float] | None
) -> None:
    memory = FreedMemory()
    for number in range(2 * CALLS):
        memory.note("loop", (1.0, other)[number % 2] * TELLING_S)
    assert memory.factor == factor and told


def test_memory_is_kept_if_calls_are_too_short_to_tell(told: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    memory = FreedMemory()
    clock = [1.0]
    monkeypatch.setattr("accel.platform.clocks.time.process_time", lambda: clock[0])
    memory.note("loop", 1e-6)
    clock[0] += freed.LATEST_S[0] - 0.01
    memory.note("loop", 1e-6)
    assert not told
    clock[0] += 0.02
    memory.note("loop", 1e-6)
    assert told and memory.factor is None


def test_an_earlier_run_tells_the_factor(told: list[object]) -> None:
    memory = FreedMemory()
    assert memory.waits
    memory.begin(3.0)
    assert told and not memory.waits
    assert memory.factor == pytest.approx((3.0 - 2 * DOUBT, 3.0 + 2 * DOUBT)) and memory.likely_factor == 3.0


def test_after_it_was_given_back_it_is_measured_anew(told: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed, "current", FreedMemory())
    freed.current.begin(2.0)
    freed.give_back()
    assert told[1:] == [((tuning.USUAL,), tuning.USUAL)]
    assert freed.current.factor is None and freed.current.waits and not tuning.keeps_freed()


def test_calls_of_several_threads_gain_no_more_than_the_run_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed, "current", FreedMemory())
    freed.current.factor = 1.5, 3.0
    calls = {"numpy_s": 8.0, "compiled_s": 0.0, "gained_s": 0.0}
    assert figures._freed_range([calls], 2.0) == (1.0, 4.0)
    assert figures._freed_range([calls], 10.0) == (4.0, 16.0)
