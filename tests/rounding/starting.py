"""`accel run` for scripts that are too short to be worth compiling: no program is given up for its cost or its speed.

python -m tests.rounding.starting [OPTIONS OF accel run] SCRIPT
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

WAIT_EVERY = 10
"""Steps between two waits."""
LONGEST_WAIT_S = 60.0


def paced(count: int) -> Iterator[int]:
    """Like `range(count)`, but wait now and then until accel, where it is there, has compiled what it has recorded."""
    for number in range(count):
        queues = sys.modules.get("accel.backend.underway.queues")
        deadline = time.monotonic() + LONGEST_WAIT_S
        while number % WAIT_EVERY == 0 and queues and queues.busy() and time.monotonic() < deadline:
            time.sleep(0.01)
        yield number


def main() -> int:
    """Run a script as `accel run` does."""
    from accel.platform import gain
    from accel.policy import account, budget, prices, rest, speed
    from accel.tools.cli import run

    speed.SPEED_SAMPLES, speed.MAX_LOSS_S = 10**9, float("inf")
    budget.FIXED_S = budget.TARGET_FIXED_S = float("inf")
    gain.COMPILE_GAIN_S = gain.ONE_PROCESSOR_GAIN_S = gain.IMPORT_GAIN_S = 0.0
    account.BURST_S, account.RELIABLE_CALL_S, account.LAUNCH_S = float("inf"), 0.0, 0.0
    rest.MAX_REST, rest.SMALL_CALL_S, prices.worker_s = 0, 0.0, 0.0
    return run.main()


if __name__ == "__main__":
    sys.exit(main())
