"""What targets need once they record, imported at one place and in one piece.

Not with this package: a program that records nothing does without. An interrupt halfway through, or a fork in another
thread, would leave modules half imported for ever.
"""

from __future__ import annotations

import time

from accel.process import forks, interrupts

loaded = False


def load() -> float:
    """Import it; JAX is not among it. Returns the seconds that it took."""
    global loaded
    if loaded:
        return 0.0
    started = time.perf_counter()
    with interrupts.Deferral(), forks.whole():
        from accel import rules
        from accel.dispatch import replay, verify  # noqa: F401
        from accel.lower.passes import loops  # noqa: F401

        rules.load()
    loaded = True
    return time.perf_counter() - started
