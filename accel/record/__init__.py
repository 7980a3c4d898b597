"""Recording: one ordinary NumPy call, written down while it runs."""

from accel.record.arrays import operators
from accel.record.run.recorder import record
from accel.record.run.results import Raised, Recorded, Result, Undone
from accel.record.run.trace import Trace

__all__ = ["Raised", "Recorded", "Result", "Trace", "Undone", "record"]

operators.attach()
