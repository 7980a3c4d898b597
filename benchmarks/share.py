"""Share of one processor that a busy compiling process takes beside a busy program.

`python -m benchmarks.share [--seconds S]`. The program is a process in a session of its own, as in a terminal. It and
its worker are tied to one processor, and both compute without a pause. Processor times count, so that other load on the
machine changes little. Without a lower priority the share would be 50 %.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pickle
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import harness

LIMIT = 0.2
"""Maximum share of the worker. Niceness 10 gives 10 %; the rest is room for other load."""

BUSY = "import time\nwhile time.monotonic() < {}: pass"


class Busy:
    """A job that keeps the worker busy until a time on the monotonic clock: unpickling it runs the loop."""

    def __init__(self, until: float) -> None:
        self._until = until

    def __reduce__(self) -> tuple[object, ...]:
        return exec, (BUSY.format(self._until),)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print the share; 1 if it is above the limit."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.share", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--seconds", type=harness.positive_float, default=10.0, help="default: 10")
    options = arguments.parse_args(argv)
    if not Path("/proc/self/stat").exists() or not hasattr(os, "sched_setaffinity"):
        print("processor times of other processes are read from Linux's /proc: not measured here")
        return 0
    context = multiprocessing.get_context("spawn")
    shares = context.SimpleQueue()
    program = context.Process(target=_measure, args=(options.seconds, shares.put))
    program.start()
    program.join()
    if program.exitcode:
        return 1
    share = shares.get()
    print(f"the worker took {share:.1%} of one processor beside a busy program; limit {LIMIT:.0%}")
    return 0 if share <= LIMIT else 1


def _measure(seconds: float, put: Callable[[float], object]) -> None:
    os.setsid()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    put(share_of_worker(seconds))


def share_of_worker(seconds: float) -> float:
    """Processor time of the worker, of that and this process's together, while both are busy for `seconds`."""
    from accel.backend.underway import worker

    its = worker.Worker()
    try:
        its.wait_until_ready()
        end = time.monotonic() + seconds
        its._send(pickle.dumps(Busy(end)))
        before = processor_s(its.process), time.process_time()
        while time.monotonic() < end:
            pass
        theirs, ours = processor_s(its.process) - before[0], time.process_time() - before[1]
    finally:
        its.stop()
    return theirs / (theirs + ours)


def processor_s(process: int) -> float:
    """Processor time of a process, in seconds, as Linux counts it."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    harness.run_command(main)
