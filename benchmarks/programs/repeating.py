"""What drives a short program until it has taken long enough: its own entry, again and again.

`benchmarks.whole_programs` puts two lines at the end of a copy of the program, which call `repeat`. Nothing here
imports accel. The environment says what is wanted: COUNT rounds, or SECONDS of this process's processor time if COUNT
is 0. What was done is pickled into the file REPORT: seconds of processor time of the process, and of this thread alone,
the number of rounds, and the last round's results.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = 40
"""Steps of one round, as `tests/programs/judge.py` has them."""


def repeat(run: Callable[[int], Any]) -> None:
    """Call `run(STEPS)` as often as the environment says. Processor time: another program's load must not count."""
    count, seconds = int(os.environ["COUNT"]), float(os.environ["SECONDS"])
    done, results, began = 0, None, time.process_time()
    while done < count or (not count and time.process_time() - began < seconds):
        results = run(STEPS)
        done += 1
    Path(os.environ["REPORT"]).write_bytes(pickle.dumps((time.process_time(), time.thread_time(), done, results)))
