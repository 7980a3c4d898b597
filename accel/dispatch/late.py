"""Modules that targets need as soon as they record, imported together.

They are not imported with this package, because a program that records nothing does not need them. Interrupts and forks
wait for the import: either would leave modules half imported for good.

The worker takes seconds to start, most of them to import JAX. So it is started before there is anything to compile.
"""

from __future__ import annotations

import contextlib
import importlib
import threading

from accel.backend.disk import cache
from accel.platform import config, forks, interrupts, processors
from accel.platform.clocks import time
from accel.policy import budget

_MODULES = (
    "accel.backend.underway.queues",
    "accel.dispatch.replay",
    "accel.dispatch.comparing.comparison",
    "accel.dispatch.comparing.first_run",
    "accel.dispatch.comparing.nonfinite",
    "accel.dispatch.paths.transfers",
    "accel.compiler.loops",
    "accel.compiler.lower",
    "accel.record",
)

imported = False


def import_now() -> float:
    """Import them, if that was not done before. JAX is not among them. Returns the seconds that it took."""
    global imported
    if imported:
        return 0.0
    started = time.perf_counter()
    with interrupts.Deferral(), forks.delayed():
        for name in _MODULES:
            importlib.import_module(name)
        importlib.import_module("accel.rules").load()
    imported, budget.import_s = True, 0.0
    return time.perf_counter() - started


was_prestarted = False
"""Whether it was decided to start the worker before its first job, or not to."""

is_starting = False
"""Whether the worker is still importing JAX, which slows the program's own calls down."""


def prestart() -> None:
    """Start the worker, in a thread, if programs will have to be compiled and a processor is free for it."""
    global was_prestarted, is_starting
    # with QD_JAX_AOT=0 programs are compiled in the thread that calls
    if was_prestarted or not config.current().ahead_of_time:
        return
    was_prestarted = is_starting = True
    try:
        threading.Thread(target=_start_worker, name="accel-start", daemon=True).start()
    except RuntimeError:  # no more threads: the first job needs one, and reports it
        is_starting = False


def _start_worker() -> None:
    try:
        # where an earlier run has compiled programs, there may be nothing left to compile
        if processors.usable() < 2 or cache.holds_programs():
            return
        with contextlib.suppress(Exception):  # the first job tries again, and reports it
            with forks.delayed():
                supervisor = importlib.import_module("accel.backend.underway.supervisor")
            worker = supervisor.supervisor.current() if supervisor.has_worker() else None
            if worker is not None:
                worker.wait_until_ready()
    finally:
        _note_started()


@forks.in_child
def _note_started() -> None:
    """Also in a forked child: the thread that waits for the worker, and the worker, are the parent's."""
    global is_starting
    is_starting = False
