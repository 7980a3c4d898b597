"""What targets need once they record, imported at one place and in one piece.

Not with this package: a program that records nothing does without. An interrupt halfway through, or a fork in another
thread, would leave modules half imported for ever.
"""

from __future__ import annotations

import importlib
import time

from accel.process import forks, interrupts

_MODULES = (
    "accel.backend.background",
    "accel.dispatch.replay",
    "accel.dispatch.verify",
    "accel.lower",
    "accel.record",
)

loaded = False


def load() -> float:
    """Import it; JAX is not among it. Returns the seconds that it took."""
    global loaded
    if loaded:
        return 0.0
    started = time.perf_counter()
    with interrupts.Deferral(), forks.whole():
        for name in _MODULES:
            importlib.import_module(name)
        importlib.import_module("accel.rules").load()
    loaded = True
    return time.perf_counter() - started
