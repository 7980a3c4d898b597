"""The end of the process: recordings are let go of, and what the program still calls then runs on NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import accel
from accel.platform import ending
from accel.platform.ending import CompiledCode, EndedError

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import atexit, gc

def late():
    from accel.ir.tape import Node
    gc.collect()
    nodes = sum(type(each) is Node for each in gc.get_objects())
    print("late:", fast(x)[1], "nodes:", nodes)

atexit.register(late)  # before accel is imported, so that it runs after what accel does at exit
import numpy as np, accel

@accel.accelerate(name="wave")
def fast(x):
    return np.sin(x) + 1.0

x = np.array([0.0, np.pi / 2])
for _ in range(5):
    fast(x)
paths = fast._self_target.paths
print("paths:", len(paths), "programs:", len(paths.with_program))
"""


def test_recordings_are_let_go_of_at_exit_and_the_program_s_last_calls_run_on_numpy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, "QD_JAX_AOT": "0", "QD_JAX_QUIET": "1", "QD_JAX_CACHE_DIR": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["paths: 1 programs: 1", "late: 2.0 nodes: 0"]


DAEMON = """
import sys, threading, time
import numpy as np, accel

@accel.accelerate
def fast(x):
    return np.sort(x, axis=0)[0].sum() + np.linalg.solve(x[:4, :4] + 9.0 * np.eye(4), x[:4, 0]).sum()

def work():
    x = np.random.default_rng(0).random((60, 60))
    while True:
        fast(x)

threading.Thread(target=work, daemon=True).start()
while "jaxlib" not in sys.modules:  # the program is loaded
    time.sleep(1e-4)
time.sleep(0.3)
print("ended")
"""


def test_daemon_threads_that_compile_and_run_do_not_crash_the_end() -> None:
    settings = {"QD_JAX_AOT": "0", "QD_JAX_QUIET": "1", "QD_JAX_CACHE_DIR": "off"}
    done = subprocess.run(
        [sys.executable, "-c", DAEMON],
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_the_end_waits_for_other_threads_blocks_and_lets_none_begin() -> None:
    blocks, inside, leave, refused = CompiledCode(), threading.Event(), threading.Event(), []

    def work() -> None:
        with blocks, blocks:
            inside.set()
            leave.wait()
        try:
            with blocks:
                raise AssertionError("a block began")
        except EndedError as error:
            refused.append(error)

    thread, end = threading.Thread(target=work), threading.Thread(target=blocks.end)
    thread.start()
    inside.wait()
    end.start()
    assert end.is_alive()
    leave.set()
    thread.join()
    end.join()
    assert len(refused) == 1


def test_the_thread_that_ends_the_process_may_still_begin_blocks() -> None:
    blocks = CompiledCode()
    with blocks:
        blocks.end()
    with blocks:
        pass


@pytest.mark.usefixtures("foreground")
def test_as_the_process_ends_other_threads_run_and_compile_nothing() -> None:
    compiled, new = accel.accelerate(lambda x: x * 2.0 + 1.0), accel.accelerate(lambda x: x * 3.0 + 1.0)
    x, found = np.ones(1000), []
    for _ in range(4):
        compiled(x)
    (path,) = compiled._self_target.paths.with_program
    before = path.variant.launches.count
    assert before

    def work() -> None:
        found.extend((compiled(x), new(x)) for _ in range(6))

    ending.compiled_code.end()
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        ending.compiled_code.forget()
    for twice, thrice in found:
        np.testing.assert_array_equal(twice, x * 2.0 + 1.0)
        np.testing.assert_array_equal(thrice, x * 3.0 + 1.0)
    assert len(found) == 6
    assert path.variant.launches.count == before
    assert not len(new._self_target.paths.with_program)
