"""Dispatch: what one call of an accelerated function does.

decorator   the wrapper, which asks its target at each call
target      a call's way: recorded, on NumPy, or replayed; what a refusal leads to
hindrances  what keeps every call on NumPy at the moment
paths       the ways that calls take, and their programs
speed       whether a program is slower than NumPy
checks      which replays are compared with NumPy, and which differences matter
"""

from accel.dispatch.decorator import accelerate, accelerated
from accel.dispatch.target import Refused, Target

__all__ = ["Refused", "Target", "accelerate", "accelerated"]
