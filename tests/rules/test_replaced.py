"""Functions that the program has put in the place of NumPy's before accel looks at NumPy."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import functools
import numpy as np

calls, clip = [], np.clip
np.clip = functools.wraps(clip)(lambda *given: (calls.append(1), clip(*given))[1])
np.fliplr = lambda x: x + 1.0

import accel

cut, flip = accel.accelerate(lambda x: np.clip(x, 0.0, 0.5) + 1.0), accel.accelerate(lambda x: np.fliplr(x) * 2.0)
for _ in range(8):
    cut(np.ones((3, 3)))
    assert flip(np.ones((3, 3)))[0, 0] == 4.0
print(len(calls))
"""


def test_what_stands_in_the_place_of_a_numpy_function_is_the_programs_own() -> None:
    """A row was registered for it: a counter around `np.clip` counted the calls that ran on NumPy alone."""
    command = [sys.executable, "-c", PROGRAM]
    env = os.environ | {"QD_JAX_AOT": "0", "QD_JAX_POLICY": "eager", "QD_JAX_CACHE_DIR": "off"}
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (run.returncode, run.stdout) == (0, "8\n"), run.stderr
    assert "mismatch" not in run.stderr
