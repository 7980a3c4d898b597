"""Aside: threads of accel's own run Python only while arrays are up to date; XLA's compiler is none."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accel.process import status
from accel.process.aside import Aside

PATIENCE_S = 20.0


@pytest.fixture
def aside() -> Aside:
    made = Aside()
    made.is_held = lambda: made.held  # type: ignore[attr-defined]
    made.held = False  # type: ignore[attr-defined]
    return made


def hold(aside: Any, held: bool) -> None:
    aside.held = held


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


def test_a_thread_begins_once_arrays_are_up_to_date(aside: Aside) -> None:
    seen: list[bool] = []

    def work() -> None:
        with aside.python():
            seen.append(aside.is_held())

    hold(aside, True)
    with another(work):
        until(lambda: aside.are_running)
        assert not seen
        hold(aside, False)
    assert seen == [False] and not aside.are_running


def test_the_compiler_is_no_python_but_what_follows_it_is(aside: Aside) -> None:
    compiled, seen = threading.Event(), []

    def work() -> None:
        with aside.python(), contextlib.suppress(ValueError):
            try:
                with aside.compiler():
                    compiled.wait(PATIENCE_S)
                    raise ValueError
            finally:
                seen.append(aside.is_held())

    with another(work):
        until(lambda: not aside.are_running)
        hold(aside, True)
        compiled.set()
        until(lambda: aside.are_running)
        assert not seen
        hold(aside, False)
    assert seen == [False] and not aside.are_running


def test_a_compile_in_the_programs_own_thread_waits_for_nobody(aside: Aside) -> None:
    hold(aside, True)
    with aside.compiler():
        pass
    assert not aside.are_running


def test_what_is_not_worth_waiting_for_is_left_out(aside: Aside) -> None:
    done: list[bool] = []
    hold(aside, True)
    aside.may(lambda: done.append(aside.are_running))
    assert not done
    hold(aside, False)
    aside.may(lambda: done.append(aside.are_running))
    assert done == [True] and not aside.are_running


@pytest.mark.parametrize("way", ["the process ends", "it is forked"])
def test_nobody_waits_for_ever(way: str, aside: Aside) -> None:
    hold(aside, True)
    with another(lambda: aside.python().__enter__()):
        until(lambda: aside.are_running)
        aside.end()
    if way == "it is forked":
        aside.forget()
        assert not aside.are_running


class Terminal:
    """A terminal that notes whether arrays were out of date when something was written."""

    def __init__(self, aside: Aside) -> None:
        self._aside = aside
        self.seen: list[bool] = []

    def write(self, text: str) -> int:
        self.seen.append(self._aside.is_held())
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True


def test_the_status_line_is_drawn_only_while_arrays_are_up_to_date(
    aside: Aside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accel.process.aside.threads", aside)
    monkeypatch.setattr(status, "DELAY_S", 0.0)
    monkeypatch.setattr(status, "TICK_S", 1e-3)
    monkeypatch.setattr(status, "IDLE_SHARE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal(aside)
    line = status.StatusLine(terminal)  # type: ignore[arg-type]
    texts = iter(range(10**9))
    line.follow(lambda: f"{next(texts)}")
    until(lambda: bool(terminal.seen))
    hold(aside, True)
    time.sleep(0.02)  # one look may be under way
    count = len(terminal.seen)
    time.sleep(0.05)
    assert len(terminal.seen) == count
    hold(aside, False)
    until(lambda: len(terminal.seen) > count)
    line.stop()
