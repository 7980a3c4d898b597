"""Dispatch: what one call of an accelerated function does.

decorator      the wrapper, which asks its target at each call
target         the way in and out of a call: threads, signals, faults
routing        which way a call takes: on NumPy, recorded, or replayed; what a refusal leads to
state          a target's settings and books, which the parts below share
numpy_calls    runs calls on NumPy, as a whole or in parts, and counts them
replaying      runs calls by a path's program; what follows where that cannot answer one
streak         replays in a row that nothing is decided for, and that are counted together
preconditions  the state of the process that keeps every call on NumPy
recordings     whether a call is recorded; records it; which calls were refused
earlier        recordings of earlier runs: taken up from disk at the first calls, kept there
refusals       says why calls stay on NumPy
compiling      when a path gets its program, and what happens until then
paths/         the recorded paths of a target, which of them a call may take, and which get one program
replay/        matches a call against a path's guards, runs the path's program, commits its outputs
comparing/     compares replays with NumPy's calls, and explains the differences
late           modules that are imported when the first call is recorded

The way of a compiled call: decorator, target, routing (is it allowed at all? see preconditions), paths/known (which
path first?), replay/guards (does the path match?), replaying, replay/variant (the run), comparing/policy (is it
compared?), replay/commit (the effects).

Four words for four things: *guards* are checked before a run, *outcomes* after it, *comparisons* are with NumPy, and
*preconditions* are of the process.
"""

from accel.dispatch.decorator import accelerated, get_ready
from accel.dispatch.target import Target
from accel.platform.reasons import Refused

__all__ = ["Refused", "Target", "accelerated", "get_ready"]
