"""Recording: one ordinary NumPy call, written down while it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any

from accel.ir.tape import Node, Tape
from accel.process import interrupts, tuning
from accel.reasons import Refusal
from accel.record import escapes, inputs, outputs
from accel.record.arrays import operators
from accel.record.arrays.arrays import RecordedValue
from accel.record.enter import enter_value
from accel.record.objects.builtins import make_builtins, plain_builtins
from accel.record.objects.containers import ContainerProxy
from accel.record.objects.follow import Followed, SubstitutedGlobals
from accel.record.objects.objects import ObjectProxy
from accel.record.objects.scan import handles_exceptions
from accel.record.pinned import note_pinned
from accel.record.recording import CURRENT, Recording, Unwound, gap_text, place_text
from accel.record.wrapper import isinstance_wrapper, plain
from accel.rules import load
from accel.rules.rule import Unsupported

operators.attach()


@dataclass(slots=True)
class Trace:
    """A finished recording: tape, inputs, outputs, and the truths about inputs that its path took for granted.

    aliases, same: pairs of slots that hold the same array or object. objects: slots of objects and
    containers, which must stay different ones where the path writes attributes. array_slots, scalar_slots: those of
    arrays and of numbers. inlined: targets that ran inside it. identity: the path compares objects by `is`, so that all
    of them must stay different. pinned: the contents of arrays that are the same in every call that matches, by slot
    (see accel.record.pinned).
    """

    tape: Tape
    inputs: inputs.Inputs
    outputs: outputs.Outputs
    aliases: list[tuple[int, int]]
    same: list[tuple[int, int]]
    objects: list[int]
    array_slots: list[int]
    scalar_slots: list[int]
    inlined: frozenset[Any]
    identity: bool
    pinned: dict[int, Any]


@dataclass(slots=True)
class Recorded:
    """What recording one call gave.

    refusal: why the trace is no program; it then tells only which calls are like it.
    """

    result: Any
    trace: Trace | None
    refusal: Refusal | None


class Rerun(Exception):
    """The recorded call was undone, or never began; the caller runs it plainly.

    refusal: why. trace: up to there, where there is one.
    """

    def __init__(self, refusal: Refusal, trace: Trace | None) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal
        self.trace = trace


class Passed(Exception):
    """The program's own code raised `error`, past an effect that could not be undone. refusal: why its tape broke."""

    def __init__(self, error: BaseException, refusal: Refusal | None) -> None:
        super().__init__(error)
        self.error = error
        self.refusal = refusal


@dataclass(slots=True)
class _Progress:
    """How far the recorded call came. made: its result in a list, first with wrappers. outcome: once there is one."""

    made: list[Any]
    error: BaseException | None = None
    outcome: Recorded | Rerun | Passed | None = None


def record(
    function: FunctionType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    max_nodes: int,
    watch: Callable[[Recording], None] | None = None,
    worth: Callable[[list[Node]], bool] = lambda nodes: True,
) -> Recorded:
    """Run `function(*args, **kwargs)` once, writing it down, while it is `worth` to go on (see Recording).

    watch: is given the recording before the call, and may set its `watcher`.
    Raises Rerun where an exception passed through the recorded code, after undoing what it wrote: the plain call then
    decides everything. Raises Passed where it could not be undone. Any other exception: the call has not begun.
    """
    load()
    root = (function.__module__ or "").partition(".")[0]
    start = function.__code__.co_filename, function.__code__.co_firstlineno
    recording = Recording(root, function.__globals__.get("__name__", ""), max_nodes, start, enter_value, worth)
    recording.builtins = make_builtins(recording)
    if watch is not None:
        watch(recording)
    progress, tracing, outer = _Progress([]), sys.gettrace(), CURRENT.recording
    try:
        with interrupts.Deferral() as deferral:  # halfway through, wrappers would stay in the program's objects
            try:
                progress.outcome = _record(recording, progress, function, args, kwargs, deferral)
            except (Rerun, Passed) as stopped:
                progress.outcome = stopped
    except (Exception, Unwound) as error:
        interrupts.pass_on(error)
        sys.settrace(tracing)
        CURRENT.recording = outer
        fault = error
    if progress.outcome is None:
        return _salvaged(recording, progress, fault)
    outcome, progress.outcome = progress.outcome, None
    try:
        if isinstance(outcome, Recorded):
            return outcome
        raise outcome
    finally:
        del outcome  # an error must not hold itself, and the program's arrays with it


def _record(
    recording: Recording,
    progress: _Progress,
    function: FunctionType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    deferral: interrupts.Deferral,
) -> Recorded:
    with tuning.rare_garbage_collection(), recording, _ExceptionWatch(recording):
        try:
            progress.made.append(_run(recording, function, args, kwargs, deferral))
        except Unwound:
            raise _rerun(recording) from None
        except BaseException as error:
            progress.error = error
            recording.note_exception(error, recording.writer.where())
            if recording.touched or not isinstance(error, Exception):
                _settled(recording, None)
                _settle_exception(error)
                recording.close()
                raise Passed(error, recording.refusal) from None
            raise _rerun(recording) from None
    if recording.raised is not None and not recording.touched:
        raise _rerun(recording)
    return _finish(recording, progress.made)


def _salvaged(recording: Recording, progress: _Progress, fault: BaseException) -> Recorded:
    """What becomes of a call whose recording failed by a fault of ours, outside the program's own code."""
    refusal = Refusal("accel.fault", place_text(recording.start), gap_text(fault))
    recording.refusal = recording.refusal or refusal
    if not recording.touched:
        _undo_all(recording)
        for container in recording.kept.containers:
            recording.kept.settle(container)
        raise Rerun(refusal, None)
    if progress.error is not None:
        raise Passed(progress.error, refusal)
    return Recorded(plain(progress.made[0]), None, refusal)


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
    with deferral.lifted():
        return Followed(recording, function, ())(*entered, **named)


def _rerun(recording: Recording) -> Rerun:
    return _undone(recording, _trace(recording, outputs.Outputs()))


def _undone(recording: Recording, trace: Trace) -> Rerun:
    """Undo what the recorded call wrote; the exception that asks for a plain call."""
    what, place = recording.raised or ("an exception", ("?", 0))
    _put_back(recording)
    refusal = recording.refusal or Refusal("path.exception", place_text(place), what)
    recording.close()
    return Rerun(refusal, trace)


def _put_back(recording: Recording) -> None:
    """Undo what the recorded call wrote, even if a part of us fails meanwhile: the call is about to be made again."""
    try:
        recording.journal.undo()
    except Exception:
        _undo_all(recording)
    for container in recording.kept.containers:
        recording.kept.settle(container)


def _undo_all(recording: Recording) -> None:
    """As `Journal.undo`, which may be what failed."""
    while recording.journal.actions:
        recording.journal.actions.pop()()


def _finish(recording: Recording, made: list[Any]) -> Recorded:
    plan = None
    if recording.active:
        recording.tell_watcher()
        try:
            plan = outputs.Planner(recording).plan(made[0])
        except Unsupported as gap:
            recording.break_(gap.reason, gap.detail)
        except Exception as error:  # a fault of ours must never reach the user
            recording.break_("recorder.gap", gap_text(error))
    trace = _trace(recording, plan or outputs.Outputs())
    result = _settled(recording, made[0])
    made[:] = [result]  # no wrapper is held here any more
    survivors = recording.survivors()
    if (recording.kept.leaked or survivors) and not recording.touched:
        recording.break_("escape.object", "something that holds recorded values leaves the call")
        raise _undone(recording, trace)
    for wrapper in survivors:
        escapes.heal(wrapper)
    recording.close()
    return Recorded(result, trace, recording.refusal)


def _trace(recording: Recording, plan: outputs.Outputs) -> Trace:
    objects = [
        wrapper._slot_
        for wrapper in recording.registry.values.values()
        if issubclass(type(wrapper), (ObjectProxy, ContainerProxy)) and wrapper._slot_ is not None
    ]
    if recording.compares_identity:
        objects += [entered.slot for entered in recording.kept.tuples.values()]
    pinned = note_pinned(recording.writer.tape.outcomes, recording.storages, recording.inputs)
    try:
        recording.inputs.prepare()
    except Exception as error:  # a fault of ours must never reach the user
        recording.refusal = recording.refusal or Refusal("recorder.gap", "", gap_text(error))
    return Trace(
        recording.writer.tape,
        recording.inputs,
        plan,
        recording.aliases,
        recording.same,
        objects,
        [storage.origin.args[0] for storage in recording.storages if storage.origin is not None],
        [node.args[0] for node in recording.writer.tape.nodes if node.is_input and node.host],
        frozenset(recording.inlined),
        recording.compares_identity,
        pinned,
    )


def _settled(recording: Recording, wrapped: Any) -> Any:
    """The result as the program gets it; containers that it keeps are made plain."""
    for container in recording.kept.containers:
        recording.kept.settle(container)
    return recording.kept.settle(wrapped)


def _settle_exception(error: BaseException) -> None:
    """Make plain what an exception carries out of the call."""
    error.args = plain(error.args)
    for name, value in vars(error).items():
        setattr(error, name, plain(value))


def _parameter(function: FunctionType, index: int) -> str:
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return names[index] if index < len(names) else f"argument {index}"


def _recorded_frames() -> Iterator[FrameType]:
    """The frames of recorded code on the stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if type(frame.f_globals) is SubstitutedGlobals:
            yield frame
        frame = frame.f_back


class _ExceptionWatch:
    """Sees every exception that passes through recorded code, handled there or not; and clears up once the tape breaks.

    A gap in the recorder might raise where NumPy would not, and the program's own handler might swallow that; so any
    exception means that the call is undone and run plainly. Once the tape is broken, the variables of recorded frames
    are given plain values, at each frame's next instruction: from there on the program runs as if it had never been
    recorded.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._before: Any = None

    def __enter__(self) -> None:
        self._recording.on_break = self._clear_up
        self._before = sys.gettrace()
        sys.settrace(self._on_call)

    def __exit__(self, *exc: object) -> None:
        sys.settrace(self._before)
        self._recording.on_break = None

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        if type(frame.f_globals) is not SubstitutedGlobals:
            return None
        frame.f_trace_lines = False
        if not self._recording.active:
            self._make_plain(frame)
        return self._on_event

    def _on_event(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        if event == "exception" and not issubclass(arg[0], (StopIteration, GeneratorExit, Unwound)):
            if not self._recording.is_foreseen(arg[1]):
                self._recording.note_exception(arg[1], (frame.f_code.co_filename, frame.f_lineno))
        elif event == "opcode" and not self._recording.active:
            frame.f_trace_opcodes = False
            self._make_plain(frame, proxies=False)
        elif event == "line" and not self._recording.active:
            frame.f_trace_lines = False
            self._make_plain(frame)
        return self._on_event

    def _clear_up(self) -> None:
        """Leave the recorded code, or where that is not possible, let it go on with plain values.

        What holds recorded values half-way through a statement or a loop cannot be made plain. But nobody must catch
        what leaves it, no `finally` run, and nothing have happened that cannot be undone. Otherwise every recorded
        frame on the stack is made plain when it goes on; what it writes then is not journalled.
        """
        frames = list(_recorded_frames())
        if self._recording.can_be_undone and not any(handles_exceptions(frame.f_code) for frame in frames):
            self._recording.raised = (Unwound.__name__, self._recording.writer.where())  # NumPy may swallow it
            raise Unwound
        self._recording.touched = True
        self._recording.builtins.update(plain_builtins())
        for frame in frames:
            frame.f_trace_lines = frame.f_trace_opcodes = True

    def _make_plain(self, frame: FrameType, *, proxies: bool = True) -> None:
        """Give a frame's variables plain values. A trace function may: changes to `f_locals` are written back.

        proxies: whether those of objects and containers are replaced too. They stay until the statement that broke
        the tape is over, since what it computed before may still be stored through them.
        """
        variables = frame.f_locals
        for name, value in list(variables.items()):
            if proxies or not isinstance_wrapper(value) or issubclass(type(value), RecordedValue):
                made = self._recording.kept.settle(value)
                if made is not value:
                    variables[name] = made
