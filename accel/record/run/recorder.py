"""The recorder: runs one call, writes it down, and decides what becomes of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from accel.ir.tape import Node
from accel.platform import interrupts, tuning
from accel.platform.reasons import Refusal
from accel.record.objects.builtins import make_builtins
from accel.record.objects.enter import enter_value
from accel.record.objects.follow import Followed
from accel.record.objects.names.variables import check_unchanged
from accel.record.run import escapes, outputs, states
from accel.record.run.escapes import rebind
from accel.record.run.frames import FrameWatch
from accel.record.run.loops.heads import Heads
from accel.record.run.trace import Completed, Raised, Result, Trace, Undone, trace_of
from accel.record.state import inputs
from accel.record.state.opaque import settings_now
from accel.record.state.recording import CURRENT, Hooks, Recording, Unwound, gap_text, place_text
from accel.record.state.wrapper import unwrap
from accel.record.state.writer import Limits
from accel.record.values.text.markers import marker
from accel.rules import load
from accel.rules.rule import Unsupported

HOOKS = Hooks(enter_value, marker, make_builtins, Heads, FrameWatch, states.held)


@dataclass(slots=True)
class _Progress:
    """Progress of the recorded call. made: its result in a list, first with wrappers. error: raised by its code."""

    made: list[Any]
    error: BaseException | None = None
    result: Result | None = None


def record(
    function: FunctionType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    max_nodes: int,
    watch: Callable[[Recording], None] | None = None,
    worth: Callable[[list[Node]], bool] = lambda nodes: True,
    effects: bool = True,
    max_s: float = math.inf,
    longest: float = math.inf,
) -> Result:
    """Run `function(*args, **kwargs)` once, writing it down.

    watch: is given the recording before the call, and may set its `watcher`. effects: whether replays may show text.
    max_nodes, worth, max_s, longest: see Limits.
    Returns Undone where an exception passed through the recorded code and what it wrote could be put back: the plain
    call then decides everything. Returns Raised where it could not. If this raises, the call has not begun, or a signal
    handler of the program's raised the error.
    """
    load()
    root = (function.__module__ or "").partition(".")[0]
    start = function.__code__.co_filename, function.__code__.co_firstlineno
    limits = Limits(max_nodes, longest, max_s, worth)
    recording = Recording(root, function.__globals__.get("__name__", ""), start, HOOKS, limits, effects)
    if watch is not None:
        watch(recording)
    progress, tracing, outer = _Progress([]), sys.gettrace(), CURRENT.recording
    try:
        with interrupts.Deferral() as deferral:  # halfway through, wrappers would stay in the program's objects
            progress.result = _record(recording, progress, function, args, kwargs, deferral)
    except (Exception, Unwound) as error:
        interrupts.pass_on(error)
        sys.settrace(tracing)
        CURRENT.recording = outer
        fault = error
    try:
        return _salvaged(recording, progress, fault) if progress.result is None else progress.result
    finally:
        progress.error = progress.result = None  # an error must not hold itself, and the program's arrays with it


def _record(
    recording: Recording,
    progress: _Progress,
    function: FunctionType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    deferral: interrupts.Deferral,
) -> Result:
    with tuning.rare_garbage_collection(), recording, recording.frames:
        try:
            progress.made.append(_run(recording, function, args, kwargs, deferral))
            recording.frames.finish()
            check_unchanged(recording)
        except Unwound:
            return _undone(recording, trace_of(recording))
        except BaseException as error:
            progress.error = error
            recording.note_exception(error, recording.writer.where())
            if recording.touched:
                recording.frames.finish()
            # Run again on NumPy, the call raises by itself if the error is the program's. A KeyboardInterrupt would not
            # recur.
            if not recording.touched and isinstance(error, Exception):
                return _undone(recording, trace_of(recording))
            recording.show_waiting()
            recording.kept.unwrap_containers()
            recording.kept.unwrap_in_place(error)
            rebind(recording)
            recording.close()
            return Raised(error, recording.refusal)
    if recording.raised is not None and not recording.touched:
        return _undone(recording, trace_of(recording))
    return _finish(recording, progress.made, deferral)


def _salvaged(recording: Recording, progress: _Progress, fault: BaseException) -> Result:
    """Decide about a call whose recording failed by a fault of accel's, outside the program's own code."""
    refusal = Refusal("accel.fault", place_text(recording.start), gap_text(fault))
    recording.refusal = recording.refusal or refusal
    if not recording.touched:
        _undo_all(recording)
        recording.kept.unwrap_containers()
        return Undone(refusal, None)
    if progress.error is not None:
        return Raised(progress.error, refusal)
    return Completed(unwrap(progress.made[0]), None, refusal)


def _run(
    recording: Recording,
    function: FunctionType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    deferral: interrupts.Deferral,
) -> Any:
    """The call itself, its arguments entered; gives its result with wrappers."""
    recording.guard_call(args, kwargs)
    entered = [
        recording.enter(arg, ("arg", i), _parameter(function, i), inputs.item(0, i)) for i, arg in enumerate(args)
    ]
    named = {name: recording.enter(arg, ("kwarg", name), name, inputs.item(1, name)) for name, arg in kwargs.items()}
    # Ctrl-C inside a long call must not wait for its end.
    with deferral.lifted():
        return Followed(recording, function, ())(*entered, **named)


def _parameter(function: FunctionType, index: int) -> str:
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return names[index] if index < len(names) else f"argument {index}"


def _undone(recording: Recording, trace: Trace) -> Undone:
    """Undo what the recorded call wrote."""
    what, place = recording.raised or ("an exception", ("?", 0))
    _put_back(recording)
    refusal = recording.refusal or Refusal("path.exception", place_text(place), what)
    recording.close()
    return Undone(refusal, trace)


def _put_back(recording: Recording) -> None:
    """Undo what the recorded call wrote, even if a part of us fails meanwhile: the call is about to be made again."""
    try:
        recording.journal.undo()
    except Exception:
        _undo_all(recording)
    recording.kept.unwrap_containers()


def _undo_all(recording: Recording) -> None:
    """As `Journal.undo`, which may be what failed."""
    while recording.journal.actions:
        recording.journal.actions.pop()()


def _finish(recording: Recording, made: list[Any], deferral: interrupts.Deferral) -> Result:
    plan = None
    if recording.active:
        recording.tell_watcher()
        if recording.display.settings not in (None, settings_now()):
            recording.break_("effect.global", "the call leaves other filters of warnings, or another np.errstate")
    if recording.active:
        try:
            plan = outputs.Planner(recording).plan(made[0])
        except Unsupported as gap:
            recording.break_(gap.reason, gap.detail)
        except Exception as error:  # a fault of ours must never reach the user
            recording.break_("recorder.gap", gap_text(error))
    trace = trace_of(recording, plan)
    # whoever holds a function that the call has made would find variables of the recording's
    if recording.code.makes_functions and not recording.active and not recording.touched:
        return _undone(recording, trace)
    recording.kept.unwrap_containers()
    result = recording.kept.unwrap_in_place(made[0])
    made[:] = [result]  # no wrapper is held here any more
    if recording.refusal is not None:
        rebind(recording)
        result = made[0]
    # Whoever still holds a wrapper after all containers were unwrapped got it in a way that was not seen.
    survivors = recording.survivors()
    if (recording.kept.leaked or survivors) and not recording.touched:
        recording.break_("escape.object", "something that holds recorded values leaves the call")
        return _undone(recording, trace)
    for wrapper in survivors:
        escapes.unwrap_everywhere(wrapper)
    if recording.display.waiting:  # last of all that may fail: a call that has shown something cannot be undone
        with deferral.lifted():
            recording.show_waiting()
    recording.close()
    if recording.display.error is not None:
        return Raised(recording.display.error, recording.refusal)
    return Completed(result, trace, recording.refusal)
