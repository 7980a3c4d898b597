"""Bodies of lifted loops: one function of the same code in each call of the function around it, over its new variables.

So a body is guarded by its code, and its cells are fetched from the body of the present call.
"""

from __future__ import annotations

from types import FunctionType

from accel.process.bodies import is_body
from accel.record.state import inputs
from accel.record.state.inputs import Check, Fetch
from accel.record.state.recording import Recording


def enter_body(recording: Recording, function: FunctionType, slot: int) -> Check:
    """Note that a body comes in through this slot. Returns the check that tells it from other functions."""
    recording.inputs.note(("function", id(recording.registry.keep_alive(function))), slot)
    return inputs.runs_code(function.__code__)


def fetch_of_cell(recording: Recording, function: FunctionType, place: int) -> Fetch:
    """How a later call finds the cell at a place of a function's closure."""
    slot = recording.inputs.find(("function", id(function))) if is_body(function) else None
    if slot is not None:
        return inputs.of_closure(slot, place)
    # the function may have a name that a later run finds it by, a cell has none
    return inputs.of_cell(function, place)
