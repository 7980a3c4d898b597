"""Python's settings while accel works: as they were afterwards, or as the program wants them."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from accel.platform import tuning


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    switch, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(0.005)
    gc.set_threshold(700, 10, 10)
    yield
    sys.setswitchinterval(switch)
    gc.set_threshold(*threshold)


def test_settings_are_as_they_were_afterwards() -> None:
    with pytest.raises(ZeroDivisionError), tuning.short_switch_interval(), tuning.rare_garbage_collection():
        assert sys.getswitchinterval() == pytest.approx(tuning.SWITCH_S)
        assert gc.get_threshold() == (tuning.ALLOCATIONS, 10, 10)
        1 / 0  # noqa: B018
    assert sys.getswitchinterval() == 0.005 and gc.get_threshold() == (700, 10, 10)


def test_what_the_program_sets_meanwhile_stays() -> None:
    with tuning.short_switch_interval(), tuning.rare_garbage_collection():
        sys.setswitchinterval(0.25)
        gc.set_threshold(100_000)
    assert sys.getswitchinterval() == 0.25 and gc.get_threshold()[0] == 100_000


def test_what_the_program_set_before_holds() -> None:
    sys.setswitchinterval(1e-5)
    gc.set_threshold(0)
    with tuning.short_switch_interval(), tuning.rare_garbage_collection():
        assert sys.getswitchinterval() == pytest.approx(1e-5) and gc.get_threshold()[0] == 0
    assert sys.getswitchinterval() == pytest.approx(1e-5) and gc.get_threshold()[0] == 0


@pytest.mark.parametrize("first_ends_first", [True, False])
@pytest.mark.parametrize("held", [tuning.rare_garbage_collection, tuning.short_switch_interval])
def test_two_at_a_time(held: Any, first_ends_first: bool) -> None:
    """Ours until the second one ends, whichever that is; another value that the program sets meanwhile stays."""

    def settings() -> Any:
        return gc.get_threshold(), sys.getswitchinterval()

    usual = settings()
    for change in (False, True):
        first, second = held(), held()
        first.__enter__()
        ours = settings()
        assert ours != usual
        second.__enter__()
        assert settings() == ours
        order = (first, second) if first_ends_first else (second, first)
        order[0].__exit__(None, None, None)
        assert settings() == ours
        if change:
            gc.set_threshold(123, 4, 5)
            sys.setswitchinterval(0.75)
        order[1].__exit__(None, None, None)
        assert settings() == (((123, 4, 5), 0.75) if change else usual)


def test_many_threads_leave_everything_as_it_was() -> None:
    begin = threading.Barrier(8)

    def work() -> None:
        begin.wait()
        for _ in range(300):
            with tuning.rare_garbage_collection(), tuning.short_switch_interval():
                assert gc.get_threshold()[0] == tuning.ALLOCATIONS

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.getswitchinterval() == 0.005 and gc.get_threshold() == (700, 10, 10)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork:")
def test_a_forked_child_has_the_programs_settings() -> None:
    """Those that another thread wanted otherwise, which is not there."""
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        with tuning.rare_garbage_collection(), tuning.short_switch_interval():
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait(30)
    process = os.fork()
    if process == 0:
        os._exit(sys.getswitchinterval() != 0.005 or gc.get_threshold() != (700, 10, 10))
    leave.set()
    thread.join()
    assert os.waitpid(process, 0)[1] == 0
