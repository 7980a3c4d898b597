"""The end of the process: recordings are let go of, and what the program still calls then runs on NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
