"""Recording: one ordinary NumPy call, written down while it runs.

Four folders, each of which imports only those above it:

state    the parts of one recording: tape, inputs, journal, and what stands for the program's values
values   recorded arrays and numbers: operators, NumPy calls, random numbers, text made of numbers
objects  how everything else that the program has is recorded: objects, containers, variables, libraries, streams
run      one recording from start to end: frames, loops, joins, outputs; `record`
"""

from accel.record.run.recorder import record
from accel.record.run.trace import Completed, Raised, Result, Trace, Undone
from accel.record.values import operators

__all__ = ["Completed", "Raised", "Result", "Trace", "Undone", "record"]

operators.attach()
