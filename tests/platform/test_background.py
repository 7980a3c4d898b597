"""BackgroundThreads: threads of accel's own run Python only while arrays are up to date; XLA's compiler is none."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accel.platform.background import BackgroundThreads

PATIENCE_S = 20.0


@pytest.fixture
def background() -> BackgroundThreads:
    made = BackgroundThreads()
    made.is_held = lambda: made.held  # type: ignore[attr-defined]
    made.held = False  # type: ignore[attr-defined]
    return made


def hold(background: Any, held: bool) -> None:
    background.held = held


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(1e-3)


@contextlib.contextmanager
def another(work: Callable[[], object]) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield thread
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_a_thread_begins_once_arrays_are_up_to_date(background: BackgroundThreads) -> None:
    seen: list[bool] = []

    def work() -> None:
        with background.python():
            seen.append(background.is_held())

    hold(background, True)
    with another(work):
        until(lambda: background.are_running)
        assert not seen
        hold(background, False)
    assert seen == [False] and not background.are_running


def test_the_compiler_is_no_python_but_what_follows_it_is(background: BackgroundThreads) -> None:
    compiled, seen = threading.Event(), []

    def work() -> None:
        with background.python(), contextlib.suppress(ValueError):
            try:
                with background.compiler():
                    compiled.wait(PATIENCE_S)
                    raise ValueError
            finally:
                seen.append(background.is_held())

    with another(work):
        until(lambda: not background.are_running)
        hold(background, True)
        compiled.set()
        until(lambda: background.are_running)
        assert not seen
        hold(background, False)
    assert seen == [False] and not background.are_running


def test_a_compile_in_the_programs_own_thread_waits_for_nobody(background: BackgroundThreads) -> None:
    hold(background, True)
    with background.compiler():
        pass
    assert not background.are_running


def test_what_is_not_worth_waiting_for_is_left_out(background: BackgroundThreads) -> None:
    done: list[bool] = []
    hold(background, True)
    background.may(lambda: done.append(background.are_running))
    assert not done
    hold(background, False)
    background.may(lambda: done.append(background.are_running))
    assert done == [True] and not background.are_running


@pytest.mark.parametrize("way", ["the process ends", "it is forked"])
def test_nobody_waits_for_ever(way: str, background: BackgroundThreads) -> None:
    hold(background, True)
    with another(lambda: background.python().__enter__()):
        until(lambda: background.are_running)
        background.end()
    if way == "it is forked":
        background.forget()
        assert not background.are_running
