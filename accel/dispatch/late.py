"""Modules that targets need as soon as they record, imported together.

They are not imported with this package, because a program that records nothing does not need them. Interrupts and forks
wait for the import: either would leave modules half imported for good.
"""

from __future__ import annotations

import importlib
import time

from accel.process import forks, interrupts

_MODULES = (
    "accel.backend.background",
    "accel.dispatch.replay",
    "accel.dispatch.comparing.comparison",
    "accel.loops",
    "accel.lower",
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
    imported = True
    return time.perf_counter() - started
