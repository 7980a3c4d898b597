"""The budget: the most that accel may cost a program that may end before it has gained anything.

The budget is a small fixed amount, plus a share of the program's run time so far, plus the time that accel is measured
to have saved. Every cost is charged to it: recording, loading, comparing, guards, discarded runs. No recording starts
that the budget does not cover. This is the ski-rental argument. Costs stay in proportion to the time already spent, so
a program that ends at the worst moment has lost no more than that share. Two costs have bounds of their own: examining
calls (accel.dispatch.costs.rest) and comparing (accel.dispatch.comparing.policy).

All figures come from the ledger, which counts each cost where it arises.
"""

from __future__ import annotations

from accel.reports.ledger import Ledger, current_run

FIXED_S = 1.6
"""Seconds that accel may cost any process, including the import of JAX."""

SHARE = 0.04
"""Share of the process's time without accel that accel may cost, on top of FIXED_S."""

TARGET_FIXED_S, TARGET_CALLS = 0.1, 12
"""Cost that one target is always allowed: seconds, plus the time of this many of its calls on NumPy."""

TARGET_SHARE = 0.5
"""Share of its own time on NumPy that one target may cost, on top of that."""

OWN_SHARE = 0.05
"""A target may always cost this share of its own time on NumPy, even if other targets have used up the budget."""

FOUND_SHARE = 0.25
"""OWN_SHARE of a target with a program on disk: the run that compiled it found it worth its cost."""

OVERDRAFT = 1.0
"""Loss beyond the budget, as a multiple of it, at which a process is overdrawn."""

for_later_runs = False
"""Whether this process compiles for later runs and not for itself (`accel compile`).

If so, everything that a later run may look for on disk is compiled. No program is given up because it is slow here. A
target that is inlined into another one gets a program of its own as well. A later run calls it directly until the outer
target's program is loaded.
"""


def covers(ledger: Ledger, estimate_s: float, call_s: float, numpy_s: float, *, found: bool = False) -> bool:
    """Whether both the target's budget and the process's budget cover `estimate_s` more seconds.

    ledger: the target's. call_s: seconds of one of its calls on NumPy. numpy_s: seconds of all its calls on NumPy so
    far, including other targets called inside them. found: whether a program of the target was on disk.
    """
    run = current_run()
    # what a function has taken or gained itself pays for this, whatever other targets have cost
    if estimate_s <= (FOUND_SHARE if found else OWN_SHARE) * numpy_s + ledger.saved_s:
        return True
    own = TARGET_FIXED_S + TARGET_CALLS * call_s + TARGET_SHARE * numpy_s + ledger.saved_s
    return estimate_s <= own and estimate_s <= _granted_s() + run.saved_s


def is_overdrawn() -> bool:
    """Whether this process has lost so much that it should be slow to spend more."""
    return current_run().saved_s < -OVERDRAFT * _granted_s()


def _granted_s() -> float:
    """Return the seconds that accel may cost a process that has gained nothing."""
    return FIXED_S + SHARE * without_accel_s()


def without_accel_s() -> float:
    """The time that the process has taken without accel: a share of accel's own costs would let them grow."""
    run = current_run()
    return run.wall_s - run.cost_s
