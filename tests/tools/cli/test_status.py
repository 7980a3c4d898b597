"""The status line: on a terminal while programs compile, never in the program's output, and gone when they are done."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from accel.platform import status
from accel.platform.status import ERASE, StatusLine
from tests.tools.cli.bench import Bench

pty = pytest.importorskip("pty", reason="pseudo-terminals as POSIX has them")

PROGRAM = """import sys, time
import numpy as np
import accel
from accel.platform import status

status.DELAY_S, status.TICK_S = 0.0, 0.01  # this compile may take less than what is worth a line

@accel.accelerate
def time_step(x, k):
    for i in range(12):
        x = np.sin(x) + np.cos(x * 1.01) * np.sqrt(np.abs(x) + k)
    return x

x = np.linspace(0.0, 1.0, 60_000)
until = time.perf_counter() + 60.0
for i in range(10_000):
    x = time_step(x, 1.0)
    if i % 5 == 0:
        print(f"step {i}")
    if time.perf_counter() > until or ("No calls" not in accel.summary_line() and i > 20):
        break
print("the end")
"""


class Terminal:
    """A pseudo-terminal, and what was written to it."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.text = ""

    def read(self) -> str:
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(self.ours, 65536):
                self.text += part.decode()
        return self.text


def screen(text: str) -> list[str]:
    """What stays on a terminal's screen of a text with carriage returns and erased lines."""
    lines = [""]
    for part in re.split(r"(\r\n|\r\x1b\[2K)", text):
        if part == "\r\n":
            lines.append("")
        elif part == ERASE:
            lines[-1] = ""
        else:
            lines[-1] += part
    return lines


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    for descriptor in (made.ours, made.theirs):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def test_one_line_while_programs_compile_and_the_programs_output_stays_whole(bench: Bench, terminal: Terminal) -> None:
    (bench.work / "steps.py").write_text(PROGRAM, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "accel.run", "steps.py"],
        cwd=bench.work,
        env=bench.environment({"TERM": "xterm", "COLUMNS": "80"}),
        stdin=terminal.theirs,
        stdout=terminal.theirs,
        stderr=terminal.theirs,
    )
    os.close(terminal.theirs)
    text = terminal.read()
    assert process.wait(100) == 0
    assert "accel: compiling 1 of 1, __main__:time_step" in text
    shown = screen(text)
    assert not any("compiling 1 of 1" in line for line in shown), shown
    assert [line for line in shown if line][:2] == ["step 0", "step 5"]
    assert "the end" in shown
    assert "\x1b" not in "".join(shown)


def test_none_where_standard_error_is_no_terminal(bench: Bench) -> None:
    (bench.work / "steps.py").write_text(PROGRAM, encoding="utf-8")
    done = bench.python("-W", "default", "-m", "accel.run", "steps.py", env={"TERM": "xterm"})
    assert "; 0 of " not in done.err
    assert "compiling 1 of 1" not in done.err + done.out
    assert "\x1b" not in done.err + done.out


# -- the line itself --------------------------------------------------------------------------------------------------


@pytest.fixture
def begin(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Callable[[], StatusLine]:
    """Make a status line whose terminal is standard output and standard error: in the test, as pytest sets these."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(status, "DELAY_S", 0.0)
    monkeypatch.setattr(status, "IDLE_SHARE", 0.0)

    def made() -> StatusLine:
        stream = os.fdopen(os.dup(terminal.theirs), "w", encoding="utf-8")
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        return StatusLine(stream)

    return made


def _finish(line: StatusLine, terminal: Terminal) -> str:
    """Stop the line, and return all that was written."""
    line.stop()
    assert not {"write", "flush"} & vars(sys.stdout).keys()
    sys.stdout.close()
    os.close(terminal.theirs)
    return terminal.read()


def _until_shown(line: StatusLine) -> None:
    patience = time.perf_counter() + 20.0
    while not line.shown and time.perf_counter() < patience:
        time.sleep(0.01)
    assert line.shown


def test_what_the_program_writes_erases_it_first(begin: Callable[[], StatusLine], terminal: Terminal) -> None:
    line = begin()
    line.follow(lambda: "at work")
    _until_shown(line)
    print("hello", flush=True)
    assert screen(_finish(line, terminal)) == ["hello", ""]


def test_it_leaves_an_unfinished_line_alone(begin: Callable[[], StatusLine], terminal: Terminal) -> None:
    line = begin()
    line.follow(lambda: "at work")
    _until_shown(line)
    sys.stderr.write("10 %")
    time.sleep(5 * status.TICK_S)
    assert not line.shown
    sys.stderr.write("20 %\n")
    _until_shown(line)
    assert screen(_finish(line, terminal)) == ["10 %20 %", ""]


def test_a_flush_makes_way_for_a_prompt(begin: Callable[[], StatusLine], terminal: Terminal) -> None:
    line = begin()
    line.follow(lambda: "at work")
    _until_shown(line)
    sys.stderr.flush()  # as `input` does before it writes a prompt
    assert not line.shown
    _finish(line, terminal)


def test_it_ends_with_what_it_shows_and_begins_again(begin: Callable[[], StatusLine], terminal: Terminal) -> None:
    line = begin()
    texts = ["one", None]
    line.follow(lambda: texts[0])
    _until_shown(line)
    texts.pop(0)
    patience = time.perf_counter() + 20.0
    while line._thread is not None and time.perf_counter() < patience:
        time.sleep(0.01)
    assert not line.shown
    line.follow(lambda: "two")
    _until_shown(line)
    assert "one" not in "".join(screen(_finish(line, terminal)))


def test_a_text_that_cannot_be_made_ends_it(begin: Callable[[], StatusLine], terminal: Terminal) -> None:
    line = begin()
    line.follow(lambda: str(1 // 0))
    patience = time.perf_counter() + 20.0
    while line._thread is not None and time.perf_counter() < patience:
        time.sleep(0.01)
    assert _finish(line, terminal) == ""
