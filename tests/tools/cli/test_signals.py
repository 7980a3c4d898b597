"""How a program under `accel run` ends if it gets a signal: as under plain Python, with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import accel
from tests.tools.cli.bench import Bench

WAITS = """import sys, time
try:
    print("ready", flush=True)
    time.sleep(60)
finally:
    print("cleaned", flush=True)
"""
HANDLES = """import signal, sys, time
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
print("ready", flush=True)
time.sleep(60)
"""
COMPILES = """import os, time
import numpy as np
import accel

@accel.accelerate
def work(x):
    for _ in range(60):
        x = np.sin(x) + np.cos(x * 1.01) * np.sqrt(np.abs(x) + 1.0)
    return x

x = np.ones((500, 500))
for i in range(1000):
    x = work(x)
    if i == 4:
        print("ready", flush=True)
"""
PROGRAMS = {"waits.py": WAITS, "handles.py": HANDLES, "compiles.py": COMPILES}

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")


def ended_by(number: int, bench: Bench, *command: str) -> tuple[int, str, str]:
    """Start a program, send the signal once it says that it is ready, and return how it ended."""
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=bench.work,
        env=bench.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)  # until it has reached the line that waits
    process.send_signal(number)
    out, err = process.communicate(timeout=100)
    return process.returncode, out, err


@pytest.fixture
def programs(bench: Bench) -> Path:
    for name, text in PROGRAMS.items():
        (bench.work / name).write_text(text, encoding="utf-8")
    return bench.work


@pytest.mark.parametrize("name", ["waits.py", "handles.py"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_program_as_it_ends_it_under_plain_python(
    bench: Bench, programs: Path, name: str, number: int
) -> None:
    plain = ended_by(number, bench, name)
    assert ended_by(number, bench, "-m", "accel.run", "--quiet", name) == plain


def test_an_interrupt_ends_it_while_programs_compile_and_the_worker_with_it(bench: Bench, programs: Path) -> None:
    code, _, err = ended_by(signal.SIGINT, bench, "-m", "accel.run", "compiles.py")
    assert code == -signal.SIGINT
    lines = err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "KeyboardInterrupt" in lines
    assert str(Path(accel.__file__).parent) not in err.partition("KeyboardInterrupt")[0]
    assert lines[-1].startswith("accel: ")
