"""Replay: what a call of a compiled path does. Fetch the inputs, check the guards, run, check the outcomes, commit.

guards   which paths a call may take: the slots' values, or the guard that failed
host     the scalars that Python computes before the program is launched
variant  the compiled program of a path, or of several: one run, up to outputs that are staged
draws    random numbers that a run takes before it is launched
kept     what a run may leave on the device
build    the program's values of a run's outputs
steps    what stores one change, as calls that run in C
commit   the staged outputs become the call's result and its effects
"""

from accel.dispatch.replay.commit import StagedOutputs
from accel.dispatch.replay.guards import GuardFailure, Matcher
from accel.dispatch.replay.variant import HostError, SideExit, StaleConstants, Variant

__all__ = ["GuardFailure", "HostError", "Matcher", "SideExit", "StagedOutputs", "StaleConstants", "Variant"]
