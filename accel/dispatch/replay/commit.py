"""Commit: a run's outputs, staged so far, become the call's result and its effects on the caller's objects."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from accel.backend import resident
from accel.compiler.lower.written import Written
from accel.dispatch.replay.build import Builder
from accel.dispatch.replay.kept import Unfetched, may_stay, steps_left_behind
from accel.dispatch.replay.steps import Step, steps_of
from accel.ir.vast import is_vast
from accel.platform import interrupts
from accel.record import Trace
from accel.record.state.shown import Ready, Unshowable

if TYPE_CHECKING:
    from accel.dispatch.replay.draws import Drawn


@dataclass(slots=True)
class StagedOutputs:
    """Outputs of one run of a program. The caller sees none of them before they are committed.

    trace: of the path that the call takes. values: of its slots. made: new arrays. changed: new contents of the arrays
    that the call changes in place, or of views of them. numbers: the trace's numbers, in order. given: the arrays that
    the program took. finite: new arrays and contents that are known to have no NaN and no infinity. drawn: the
    generators that it has drawn from. unfetched: the arrays that are still on the device alone.
    """

    trace: Trace
    values: Sequence[Any]
    made: list[Any]
    changed: list[Any]
    numbers: list[Any]
    given: list[Any]
    finite: Sequence[Any] = ()
    drawn: Drawn | None = None
    unfetched: Unfetched | None = None

    def complete(self, before: Sequence[Any], *, vast: bool) -> None:
        """Fill in the whole contents of changed arrays.

        before: the values of the slots before the call. vast: whether to do so for vast arrays, too.
        """
        for position, (slot, _) in enumerate(self.trace.outputs.changed):
            contents = self.changed[position]
            if isinstance(contents, Written) and (vast or not is_vast(before[slot])):
                self.changed[position] = contents.of(before[slot])

    def fetch(self, why: str) -> None:
        """Fetch all arrays of this run to the host, and all that were left on the device before. why: for the
        report."""
        resident.current.bring_up_to_date(why)
        if self.unfetched is not None:
            unfetched, self.unfetched = self.unfetched, None
            self.changed = resident.filled(self.made, unfetched.made, unfetched.changed)
            for fetched in unfetched.fetched:
                fetched()


class PendingCall(Protocol):
    """A call that waits for its result.

    done: the result is final, all is stored, and the call must not run again. raised: what the program is to get.
    """

    result: Any
    done: bool
    raised: BaseException | None


def commit(staged: StagedOutputs, call: PendingCall | None = None) -> Any:
    """Store the outputs in the caller's arrays and objects, and return the call's result.

    call: marked as done as soon as everything is stored. All values are built before the first is stored: what fails
    while building has changed nothing, and NumPy can still answer the call. If an interrupt arrives while storing,
    what is left is stored before it is raised, so that no call is left half done.

    What the call shows is shown last, once. What a stream raises then is the program's, and the call is done.
    Raises Unshowable, before anything is stored, if NumPy has to show it.
    """
    values, outputs, build = staged.values, staged.trace.outputs, Builder(staged)
    if (staged.unfetched is not None or resident.current.is_held) and not may_stay(staged):
        staged.fetch("what it stores or shows might run code of the program's")
    arrays = _steps_of_arrays(staged)
    steps: list[Step] = []
    for change in outputs.writes:
        steps += steps_of(change, values[change.owner], build)
    steps += [asked.step(None if asked.owner is None else values[asked.owner]) for asked in outputs.asked]
    result = build(outputs.result)
    build.finish()
    effects = ready_effects(staged) if outputs.shown else ()
    done: list[None] = []
    stored = [*arrays, *steps]
    try:
        if staged.unfetched is not None and not leave_behind(stored, done):
            staged.fetch("a signal arrived")
            stored = [*_steps_of_arrays(staged), *steps]
        store(stored, done)
    except BaseException:
        with interrupts.Deferral():
            store(stored, done)  # an error that was not an interrupt occurs again here
            if staged.unfetched is not None:
                resident.current.bring_up_to_date()
        raise
    if staged.unfetched is not None and not resident.current.is_open:
        resident.current.bring_up_to_date()  # a signal has come meanwhile, whose handler has run
    if call is not None:
        call.result, call.done = result, True
    try:  # here and not in a function, so that no fault of accel's comes between the two
        for effect in effects:
            effect.make()
    except BaseException as error:
        if call is not None:
            call.raised = error
        raise
    return result


def _steps_of_arrays(staged: StagedOutputs) -> list[Step]:
    """Return the steps that write the caller's arrays, or that mark them as device-resident."""
    if staged.unfetched is not None:
        return steps_left_behind(staged, staged.unfetched)
    steps: list[Step] = []
    for (slot, _), contents in zip(staged.trace.outputs.changed, staged.changed, strict=True):
        array = staged.values[slot]
        steps += contents.steps(array) if isinstance(contents, Written) else [partial(np.copyto, array, contents)]
    return steps


def ready_effects(staged: StagedOutputs) -> list[Ready]:
    """Return the effects that the call shows, with their text. Raises Unshowable."""
    build = Builder(staged)
    try:
        return [effect.ready(staged.values, build) for effect in staged.trace.outputs.shown]
    except Exception as error:  # `"%d" % nan`: NumPy's call says it in its own way
        interrupts.pass_on(error)
        raise error if isinstance(error, Unshowable) else Unshowable(f"{type(error).__name__}: {error}") from error


def store(steps: Sequence[Step], done: list[Any]) -> None:
    """Take the steps that are not done yet. done: gets an entry for each.

    All of this is one call into C code, as most steps are. Python runs signal handlers between instructions only, so
    never between a step and its entry. An element that is appended is never appended twice.
    """
    done.extend(map(operator.call, steps[len(done) :]))


def leave_behind(steps: Sequence[Step], done: list[Any]) -> bool:
    """Take steps of which some leave arrays on the device. Returns False if a signal handler has run since they were
    made.

    Nothing is done then: the handler of the next signal would not be told which arrays are behind.
    """
    taken = map(operator.call, steps)
    if not resident.current.is_open:
        return False
    done.extend(taken)  # Python runs no handler between the look at `is_open` and this, nor in between
    return True
