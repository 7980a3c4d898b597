"""The budget: what accel may cost a program that may end before anything is gained.

Recordings are paid from a small fixed part, from a share of the time that the program has taken so far, and from what
was measured to be saved; what was charged for anything else (loading, comparing, guards, discarded runs) counts as
spent. This is the ski-rental argument: never pay more than in proportion to what was already spent, and a program that
ends at the worst moment has lost that share. No recording starts that the budget does not cover. Looking at calls is
bounded by rests (accel.dispatch.rest), comparing by its share of what was gained (accel.dispatch.checks).

The numbers are those of the ledger, which counts every cost where it arises.
"""

from __future__ import annotations

from accel.reports.ledger import Ledger, current_run

FIXED_S = 1.6
"""Seconds that accel may cost any process, JAX's import among them."""

SHARE = 0.12
"""What it may cost beyond, as a share of the time that the process has taken without it."""

TARGET_FIXED_S, TARGET_CALLS = 0.1, 12
"""What one target may cost before it has taken any time: seconds, and so many of its calls."""

TARGET_SHARE = 0.5
"""What it may cost beyond, as a share of its own time on NumPy."""

OWN_SHARE = 0.05
"""A target that costs no more than this share of its own time may do so even where others have used up the rest."""

for_later_runs = False
"""Whether this process compiles for later runs and not for itself (`accel compile`).

Then whatever a later run may look for on disk is compiled: nothing is given up for its speed here, and targets that
others will hold have programs of their own, since a later run calls them until the others' programs are loaded.
"""


def covers(ledger: Ledger, estimate_s: float, call_s: float, numpy_s: float) -> bool:
    """Whether a target may cost so many seconds more, by its own account and by that of the process.

    call_s: what one of its calls takes on NumPy. numpy_s: what all of them took, other targets inside them included.
    """
    run = current_run()
    if estimate_s <= OWN_SHARE * numpy_s + ledger.saved_s:
        return True
    own = TARGET_FIXED_S + TARGET_CALLS * call_s + TARGET_SHARE * numpy_s + ledger.saved_s
    return estimate_s <= own and estimate_s <= FIXED_S + SHARE * (run.wall_s - run.cost_s) + run.saved_s
