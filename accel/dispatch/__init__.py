"""Dispatch: what one call of an accelerated function does.

decorator      the wrapper, which asks its target at each call
target         chooses how each call runs: on NumPy, recorded, or replayed; decides what a refusal leads to
call           one call, and whether the program's own function has run for it
preconditions  the state of the process that keeps every call on NumPy
known          all recorded paths of a target, and which of them a call may take
paths          one recorded path, on its way from recording to compiled program
attempts       recordings that led to no program, and when the next one is made
compiling      when a path gets its program, and what happens until then
replay         runs a compiled program: guards, outcomes, commit
checks         which replays are compared with NumPy, and which differences matter
verify         compares one replay with NumPy's call, and explains the differences
costs/         what helping costs and may cost: account, budget, rest, speed
late           modules that are imported when the first call is recorded

The way of a compiled call: decorator, rest, target, preconditions, known, replay (the guards, then the run), checks (is
it compared?), replay (the commit), target (which counts it).
"""

from accel.dispatch.decorator import accelerate, accelerated
from accel.dispatch.target import Refused, Target

__all__ = ["Refused", "Target", "accelerate", "accelerated"]
