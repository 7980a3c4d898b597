"""Recording: one ordinary NumPy call, written down while it runs.

run/              one recording from start to end: `record`
recording         the state of one recording
parts/            its parts: tape, journal, registry and others
inputs            slots: how a later call fetches what was read, and what must hold of it
bits              when two values are the same bit by bit
enter             how a plain value from outside becomes a recorded one
wrapper, standin  what stands for the program's values, and for its functions and types
arrays/           recorded arrays and numbers
containers/       lists, deques, dicts and sets from outside
objects/          objects, modules, classes and functions
names/            globals, and variables of enclosing functions
draws/            random numbers
effects/          text that is shown
library/          functions and objects of the standard library's and SciPy's: caches, copies, context managers, splines
loops/            where loops were asked for their conditions
opaque            functions that are not followed, and why
on_behalf         calls whose warnings name the program's line
instructions      CPython's instructions, for all that reads bytecode
pinned            arrays whose elements say which path a call takes
outputs           what the call returned and left, as a plan that a replay carries out
changes, leaves   what such a plan is made of
"""

from accel.record.arrays import operators
from accel.record.run.recorder import record
from accel.record.run.results import Raised, Recorded, Result, Undone
from accel.record.run.trace import Trace

__all__ = ["Raised", "Recorded", "Result", "Trace", "Undone", "record"]

operators.attach()
