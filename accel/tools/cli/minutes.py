"""Progress while the program runs: one line a minute at most."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from accel.platform import background, ledger
from accel.reports.words import in_time, plural, signed_s

INTERVAL_S = 60.0
"""Seconds between two lines."""


def start() -> None:
    """Write the lines in a background thread until the process ends."""
    threading.Thread(target=_work, name="accel-minutes", daemon=True).start()


def _work() -> None:
    process, last = os.getpid(), ""

    def tell() -> None:
        nonlocal last
        told = state()
        if told != last and os.getpid() == process and "numpy" in sys.modules:
            last = told
            # not by sys.stderr, which may be an object of the program's own
            os.write(2, f"accel: after {in_time(ledger.current_run().wall_s)}: {told}\n".encode())

    while True:
        threading.Event().wait(INTERVAL_S)
        with contextlib.suppress(Exception):  # the program goes on without these lines
            background.threads.may(tell)


def state() -> str:
    """Return what is compiled, what is being compiled and since when, and the gain so far where it can be told."""
    compiled = ledger.compiled_targets()
    named = f" ({', '.join(compiled[:2])}{', ...' if len(compiled) > 2 else ''})" if compiled else ""
    parts = [f"{plural(len(compiled), 'function')} compiled{named}"]
    queues = sys.modules.get("accel.backend.underway.queues")  # imported with NumPy, which the program imports first
    now = None if queues is None else queues.progress()
    if now is not None:
        parts.append(now)
    elif compiled and not ledger.current_run().is_busy:
        parts.append(f"{signed_s(ledger.current_run().saved_s)} so far")
    return "; ".join(parts)
