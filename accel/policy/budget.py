"""The budget: the most that accel may cost a program that may end before it has gained anything.

One law holds for all investments of a process together: recording, importing, loading, comparing, guards, discarded
runs. They never exceed the sum of three parts: a small fixed amount, a share of the program's time, and the time that
accel is measured to have saved. Earlier runs count for the programs that they have left on disk. The program's time is
the time so far, and what is certain to come. A loop over a range or a list says how long it goes on, and so do earlier
runs of the same program. So a program that ends at the worst moment has lost no more than that.

All figures come from the ledger, which counts each cost where it arises.
"""

from __future__ import annotations

from typing import Protocol
from weakref import WeakSet

from accel.platform.ledger import Ledger, current_run
from accel.policy import prices

FIXED_S, SHARE = 0.5, 0.05
"""Seconds that accel may cost any process, and a share of its time without accel on top of them: a run of 10 s that
gains nothing takes 11. The seconds are those of an idle machine."""

IMPORT_S = 0.2
"""Seconds that importing what records and loads takes. Measured: 0.1 where `accel run` has begun it, 0.25 else."""

import_s = IMPORT_S
"""Seconds of that import which are still to come: 0 once it was made."""

TARGET_FIXED_S = 0.02
"""Seconds that one target is always allowed to cost."""

TARGET_SHARE = 2 / 3
"""Share of its own time on NumPy that one target may cost, on top of that: what a program would have saved of it."""

OVERDRAFT = 1.0
"""Loss beyond the budget, as a multiple of it, at which a process is overdrawn."""

for_later_runs = False
"""Whether this process compiles for later runs and not for itself (`accel compile`).

If so, everything that a later run may look for on disk is compiled. No program is given up because it is slow here. A
target that is inlined into another one gets a program of its own as well. A later run calls it directly until the outer
target's program is loaded.
"""


outlooks: WeakSet[Outlook] = WeakSet()
"""Loops that may know how long they go on."""


class Outlook(Protocol):
    """A loop that may know how long it goes on."""

    @property
    def certain_s(self) -> float:
        """Seconds that the calls to come take on NumPy; 0 where nobody knows."""


def covers(ledger: Ledger, estimate_s: float, numpy_s: float) -> bool:
    """Whether both the target's budget and the process's budget cover `estimate_s` more seconds.

    ledger: the target's. numpy_s: seconds of all its calls on NumPy so far, including other targets called inside them.
    """
    own = TARGET_FIXED_S + TARGET_SHARE * numpy_s + ledger.saved_s
    return estimate_s <= own and grants(estimate_s)


def grants(estimate_s: float, certain_s: float = 0.0) -> bool:
    """Whether the process's budget covers `estimate_s` more seconds, and the first time the import of what they need.

    No investment is made without asking this. certain_s: seconds that calls to come are certain to lose without it. An
    investment of no more than that, divided by `prices.CERTAIN`, needs no budget.
    """
    price_s = estimate_s + import_s
    return price_s <= _granted_s() + current_run().saved_s or prices.are_paid(price_s, 0.0, certain_s)


def is_overdrawn() -> bool:
    """Whether this process has lost so much that it should be slow to spend more."""
    return current_run().saved_s < -OVERDRAFT * _granted_s()


def _granted_s() -> float:
    """Return the seconds that accel may cost a process that has gained nothing."""
    run = current_run()
    to_come_s = max((each.certain_s for each in tuple(outlooks)), default=0.0)
    whole_s = max(without_accel_s() + to_come_s, run.expected_s * run.stretch)
    return (FIXED_S + run.expected_gain_s) * run.stretch + SHARE * whole_s


def expected_left_s() -> float:
    """Seconds without accel that are to come if this run takes as long as earlier ones; 0 where there were none."""
    run = current_run()
    return max(0.0, run.expected_s * run.stretch - without_accel_s())


def without_accel_s() -> float:
    """The time that the process has taken without accel: a share of accel's own costs would let them grow."""
    run = current_run()
    return run.wall_s - run.cost_s
