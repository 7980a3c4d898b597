"""Dispatch: what one call of an accelerated function does.

decorator   the wrapper, which asks its target at each call
target      chooses how each call runs: recorded, on NumPy, or replayed; decides what a refusal leads to
call        one call, and whether the program's own function has run for it
preconditions
            the state of the process that keeps every call on NumPy
paths       the recorded paths of a target, and their programs
replay      runs a compiled program: guards, outcomes, commit
budget      what accel may cost the program
rest        calls that go straight to NumPy
speed       whether a program is slower than NumPy
checks      which replays are compared with NumPy, and which differences matter
verify      compares one replay with NumPy's call, and explains the differences
late        modules that are imported when the first call is recorded
"""

from accel.dispatch.decorator import accelerate, accelerated
from accel.dispatch.target import Refused, Target

__all__ = ["Refused", "Target", "accelerate", "accelerated"]
