"""Python's settings while accel works: as they were afterwards, or as the program wants them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from accel import interpreter


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    switch, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(0.005)
    gc.set_threshold(700, 10, 10)
    yield
    sys.setswitchinterval(switch)
    gc.set_threshold(*threshold)


def test_settings_are_as_they_were_afterwards() -> None:
    with pytest.raises(ZeroDivisionError), interpreter.taking_turns(), interpreter.keeping():
        assert sys.getswitchinterval() == pytest.approx(interpreter.SWITCH_S)
        assert gc.get_threshold() == (interpreter.ALLOCATIONS, 10, 10)
        1 / 0  # noqa: B018
    assert sys.getswitchinterval() == 0.005 and gc.get_threshold() == (700, 10, 10)


def test_what_the_program_sets_meanwhile_stays() -> None:
    with interpreter.taking_turns(), interpreter.keeping():
        sys.setswitchinterval(0.25)
        gc.set_threshold(100_000)
    assert sys.getswitchinterval() == 0.25 and gc.get_threshold()[0] == 100_000


def test_what_the_program_set_before_holds() -> None:
    sys.setswitchinterval(1e-5)
    gc.set_threshold(0)
    with interpreter.taking_turns(), interpreter.keeping():
        assert sys.getswitchinterval() == pytest.approx(1e-5) and gc.get_threshold()[0] == 0
    assert sys.getswitchinterval() == pytest.approx(1e-5) and gc.get_threshold()[0] == 0


@pytest.mark.parametrize("first_ends_first", [True, False])
def test_two_at_a_time(first_ends_first: bool) -> None:
    first, second = interpreter.keeping(), interpreter.keeping()
    first.__enter__()
    second.__enter__()
    for each in (first, second) if first_ends_first else (second, first):
        each.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)
