"""Commit: a run's outputs, staged so far, become the call's result and its effects on the caller's objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from accel.ir.template import fill
from accel.ir.views import seen_through
from accel.process import interrupts
from accel.record import Trace
from accel.record.inputs import MISSING
from accel.record.outputs import FromSlot, Leaf, Literal, Made, Number, Shared, Write

if TYPE_CHECKING:
    from accel.dispatch.replay.draws import Drawn


@dataclass(slots=True)
class StagedOutputs:
    """What one run of a program has given. The caller sees nothing of it before it is committed.

    trace: of the path that the call takes. values: of its slots. made: new arrays. changed: new contents of the arrays
    that the call changes in place. numbers: the trace's numbers, in order. given: the arrays that the program took.
    shared: objects that occur several times in the outputs, as far as they are built. drawn: the generators that it has
    drawn from.
    """

    trace: Trace
    values: Sequence[Any]
    made: list[Any]
    changed: list[Any]
    numbers: list[Any]
    given: list[Any]
    shared: dict[Shared, Any] = field(default_factory=dict)
    drawn: Drawn | None = None


class PendingCall(Protocol):
    """A call that waits for its result. done: the result is final and all effects have been made."""

    result: Any
    done: bool


def commit(staged: StagedOutputs, call: PendingCall | None = None) -> Any:
    """Store the outputs in the caller's arrays and objects, and return the call's result.

    call: marked as done as soon as everything is stored. All values are built before the first is stored: what fails
    while building has changed nothing, and NumPy can still answer the call. If an interrupt arrives while storing,
    everything is stored again before it is raised, so that no call is left half done.
    """
    values, outputs = staged.values, staged.trace.outputs
    copies = [(values[slot], array) for (slot, _), array in zip(outputs.changed, staged.changed, strict=True)]
    writes = [(values[write.owner], write, _build(staged, write.value)) for write in outputs.writes]
    result = _build(staged, outputs.result)
    try:
        _store(copies, writes)
    except BaseException:
        with interrupts.Deferral():
            _store(copies, writes)  # an error that was not an interrupt occurs again here
        raise
    if call is not None:
        call.result, call.done = result, True
    return result


def _build(staged: StagedOutputs, template: object) -> Any:
    """Fill the leaves of a result, or of a value to be stored, from the staged outputs."""
    return fill(template, lambda leaf: _build_leaf(staged, leaf), Leaf)


def _build_leaf(staged: StagedOutputs, leaf: Any) -> Any:
    kind = type(leaf)
    if kind is Made:
        return seen_through(staged.made[leaf.index], leaf.chain)
    if kind is FromSlot:
        return seen_through(staged.values[leaf.slot], leaf.chain)
    if kind is Number:
        return as_scalar(staged.numbers[leaf.index], leaf.kind)
    if kind is Shared:
        if leaf not in staged.shared:
            # once: in `return (a, a)` both must be the same object
            staged.shared[leaf] = _build(staged, leaf.template)
        return staged.shared[leaf]
    assert kind is Literal
    return leaf.value


def as_scalar(value: object, kind: type) -> Any:
    """The number, converted to the type that NumPy or Python gave it in the recording."""
    return value if type(value) is kind else kind(value)


def _store(copies: list[tuple[Any, Any]], writes: list[tuple[Any, Write, Any]]) -> None:
    """Store array contents, attributes and items. To do it twice does no harm (see `commit`)."""
    for target, array in copies:
        np.copyto(target, array)
    for owner, write, value in writes:
        if value is MISSING and write.is_item:
            owner.pop(write.name, None)
        elif value is MISSING:
            try:
                object.__delattr__(owner, write.name)
            except AttributeError:  # the call itself created it; or it was deleted before an interrupt
                pass
        elif write.is_item:
            owner[write.name] = value
        else:
            object.__setattr__(owner, write.name, value)  # the class's own __setattr__ may do more, or refuse
