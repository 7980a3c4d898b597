"""Share of one processor that a compiling process takes beside the user's next program, once its own has ended.

`python -m benchmarks.share [--seconds S]`. The next program is a process in a session of its own, as in a terminal. It
and the worker are tied to one processor, and both compute without a pause. Processor times count, so that other load on
the machine changes little. Without a lower priority the share would be 50 %, which the worker has while its own program
runs: that has decided that a compile is worth it, and loses as much by it at any priority.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pickle
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import harness

LIMIT = 0.2
"""Maximum share of the worker. Niceness 10 gives 10 %; the rest is room for other load."""

PATIENCE_S = 60.0
"""Maximum seconds until the worker has lowered its priority."""

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
    print(f"the worker took {share:.1%} of one processor beside the next program; limit {LIMIT:.0%}")
    return 0 if share <= LIMIT else 1


def _measure(seconds: float, put: Callable[[float], object]) -> None:
    os.setsid()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        # without a folder nobody would find what the worker finishes
        os.environ |= {"QD_JAX_CACHE_DIR": folder, "QD_JAX_FINISH_S": str(seconds + PATIENCE_S)}
        put(share_of_worker(seconds))


def share_of_worker(seconds: float) -> float:
    """Processor time of a worker that was left alone, of that and this process's, while both are busy for `seconds`."""
    from accel.backend.underway import priority, worker

    its = worker.Worker()
    its.wait_until_ready()
    process, latest = its.process, time.monotonic() + seconds + PATIENCE_S
    its._send(pickle.dumps(Busy(latest)))
    try:
        if not its.leave(()):
            raise RuntimeError("the worker could not be left alone")
        while os.getpriority(os.PRIO_PROCESS, process) < priority.NICENESS:
            if time.monotonic() > latest - seconds:
                raise RuntimeError("the worker did not lower its priority")
        before, end = (processor_s(process), time.process_time()), time.monotonic() + seconds
        while time.monotonic() < end:
            pass
        theirs, ours = processor_s(process) - before[0], time.process_time() - before[1]
    finally:
        os.kill(process, signal.SIGKILL)
    return theirs / (theirs + ours)


def processor_s(process: int) -> float:
    """Processor time of a process, in seconds, as Linux counts it."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    harness.run_command(main)
