"""The worker's priority: the program's own, and a low one once the program has ended."""

from __future__ import annotations

import contextlib
import os

from accel.platform.clocks import time

NICENESS = 10
"""The worker's niceness once the program has ended.

Before, it has the program's own. At this one it had a twentieth of a processor while other programs kept two processors
busy: no program was there then before a run of half a minute had ended. Where it shares the program's only processor, a
compile costs the program as much at any niceness, and should be there soon.
"""

_GROUP = "/proc/self/autogroup"
"""File in which Linux keeps the niceness of a process's session, if it has such groups."""

_WRITES = 5
"""Maximum attempts to write the niceness of the session. Linux accepts one write in 0.1 s from all users but root."""


def give_way() -> None:
    """Let the user's other processes go first, before all threads of this one.

    Linux schedules a session of processes as one group (autogroup), and between groups only their own niceness counts.
    On one processor, a worker in a session of its own took half of it, whatever its process's niceness.
    """
    if hasattr(os, "setpriority"):
        for thread in _threads():
            with contextlib.suppress(OSError):  # it has ended
                # a program that the user has started with a lower priority has a worker with that
                os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
    for _ in range(_WRITES):
        try:
            with open(_GROUP, "r+", encoding="ascii") as group:  # never creates a file
                group.write(str(NICENESS))
            return
        except BlockingIOError:
            time.sleep(0.1)
        except OSError:  # there are no such groups, or /proc is read-only: the niceness of the process remains
            return


def _threads() -> list[int]:
    """On Linux a niceness is a thread's; elsewhere the process's, which 0 stands for."""
    try:
        return [int(each) for each in os.listdir("/proc/self/task")]
    except OSError:
        return [0]
