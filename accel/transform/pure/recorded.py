"""Example calls of a function, each made once and undone, merged into one trace of all their paths."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from accel.compiler.loops import rolled
from accel.compiler.merge import ABSENT, MergedTrace, NotMergeable, merged
from accel.dispatch import late
from accel.dispatch.replay import GuardFailure, Matcher
from accel.entry.callables import PlainCall, call_of
from accel.platform import config, interrupts
from accel.platform.reasons import Refusal, Refused
from accel.platform.tracebacks import Again
from accel.record import Raised, Trace, Undone, record
from accel.record.state.inputs import Inputs
from accel.record.state.recording import Recording, Unwound
from accel.rules.rule import Unsupported

Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]
"""Positional and keyword arguments of a call."""


def refused(name: str, reason: str, detail: str = "") -> Refused:
    """Return the error for a function that has no pure form, with its reason."""
    return Refused(Refusal(reason, "", detail).message(name, "has no pure form"))


def plain_call(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> PlainCall:
    """Return the call of a plain function that `function(*args, **kwargs)` makes. Raises TypeError."""
    try:
        call = call_of(function, args, dict(kwargs))
    except TypeError as error:
        raise TypeError(str(error).replace("explain takes", "accel takes")) from None
    inspect.signature(call.function, follow_wrapped=False).bind(*call.args, **call.kwargs)
    seen: list[Any] = []
    given = tuple(_apart(value, seen) for value in call.args)
    return call._replace(args=given, kwargs={name: _apart(value, seen) for name, value in call.kwargs.items()})


def call_by_value(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> PlainCall:
    """Return the result of `plain_call`, with arrays copied so that arguments do not alias the program's arrays.

    So `grad(model.cost)(model.x0)` differentiates by the argument `x` alone, and not by `model.x0` as `cost` reads it.
    """
    call = plain_call(function, args, kwargs)
    given = skipped(function, call, args)
    own = (*call.args[:given], *map(_copied_array, call.args[given:]))
    return call._replace(args=own, kwargs={name: _copied_array(value) for name, value in call.kwargs.items()})


def _copied_array(value: Any) -> Any:
    return value.copy(order="K") if type(value) is np.ndarray else value


def _apart(value: Any, seen: list[Any]) -> Any:
    """Copy an argument. An array that is passed twice becomes two arrays, as it is for JAX."""
    if type(value) is not np.ndarray:
        return value
    if any(np.may_share_memory(value, other) for other in seen):
        value = value.copy()
    seen.append(value)
    return value


@dataclass(slots=True)
class RecordedFunction:
    """Example calls as one trace.

    name: the function's. trace: of all paths. values: of the merged slots, as the first call that reads them found
    them. skipped: number of the first call's arguments that the caller does not pass, such as `self`. same: groups of
    slots that hold one array or object in the first call.
    """

    name: str
    trace: MergedTrace
    values: list[Any]
    skipped: int
    same: list[list[int]]


def recorded_calls(function: Any, calls: Sequence[Arguments]) -> RecordedFunction:
    """Record calls one after the other, each from the program's current state. Raises Refused.

    An exception of a call is raised as by the function itself.
    """
    late.import_now()
    plain = [call_by_value(function, *each) for each in calls]
    name = plain[0].name
    traces: list[Trace] = []
    for each in plain:
        traces.append(_recorded(each, name))
    return assembled(name, traces, plain, skipped(function, plain[0], calls[0][0]))


def skipped(function: object, call: PlainCall, given: Sequence[Any]) -> int:
    """Return how many of a call's arguments its caller does not pass, such as `self`."""
    return len(call.args) - len(given) if isinstance(function, MethodType) or len(call.args) > len(given) else 0


def assembled(name: str, traces: Sequence[Trace], calls: Sequence[PlainCall], skipped: int) -> RecordedFunction:
    """Merge recorded paths into one trace, with the inputs' current values. Raises Refused."""
    each_once = distinct(traces)
    try:
        trace = merged(each_once)
    except NotMergeable as why:
        raise refused(name, "pure.paths", str(why)) from None
    if trace.draws:
        raise refused(name, "effect.random", "a pure function gets its random numbers as an argument")
    matcher = Matcher(trace)
    values: list[Any] = []
    for position, call in enumerate(calls):
        found = trace.inputs.fetch(call.args, call.kwargs)
        matched = matcher.match(call.args, call.kwargs)
        if not isinstance(matched, list):
            raise refused(name, "pure.example", f"example {position + 1}: {matched.why}")
        values = found[0] if not values else [b if a is ABSENT else a for a, b in zip(values, found[0], strict=True)]
        if position == 0:
            _check_guards(name, trace, matcher.guarded(call.args, call.kwargs))
    return RecordedFunction(name, trace, _copied(values), skipped, _same(values))


def _check_guards(name: str, trace: MergedTrace, guarded: tuple[list[Any], int] | GuardFailure) -> None:
    """Check that all paths have the flags, objects, shapes and types of the first example."""
    if isinstance(guarded, GuardFailure) or guarded[1] != trace.inputs.all_paths:
        detail = "an example differs from the first one in a flag, an object, a shape or a type"
        raise refused(name, "pure.example", detail)


def distinct(traces: Sequence[Trace]) -> list[Trace]:
    """Return each path once: several examples may take the same path."""
    found: dict[Any, Trace] = {}
    for trace in traces:
        outcomes = tuple((each.where, each.node.index, repr(each.expected)) for each in trace.tape.outcomes)
        found.setdefault((outcomes, len(trace.tape.nodes), len(trace.inputs.slots)), trace)
    return list(found.values())


def _same(values: list[Any]) -> list[list[int]]:
    """Return groups of slots that hold one array or mutable object."""
    groups: dict[int, list[int]] = {}
    for slot, value in enumerate(values[Inputs.ROOTS :], Inputs.ROOTS):
        if isinstance(value, (np.ndarray, list, dict)) or (
            hasattr(value, "__dict__") and not isinstance(value, _FIXED)
        ):
            groups.setdefault(id(value), []).append(slot)
    return [slots for slots in groups.values() if len(slots) > 1]


_FIXED = (type, ModuleType, FunctionType, np.generic)


def _copied(values: list[Any]) -> list[Any]:
    return [value.copy() if type(value) is np.ndarray else value for value in values]


def recorded_call(call: PlainCall, look: Look | None = None, *, silent: bool = False) -> Trace:
    """Record one more call. Returns its trace. Raises Refused.

    look: called with the trace and the return value before the call is undone. silent: the call shows no text, and ends
    before any other effect.
    """
    return _recorded(call, call.name, look, silent)


Look = Callable[[Trace, Any], None]


def _recorded(call: PlainCall, name: str, look: Look | None = None, silent: bool = False) -> Trace:
    undo: list[Callable[[], None]] = []
    watch = _watch(undo, silent)
    with np.errstate(all="ignore"):
        result = record(call.function, call.args, call.kwargs, max_nodes=config.current().max_nodes, watch=watch)
    if isinstance(result, Raised):
        with Again(result.error) as error:
            raise error
    if isinstance(result, Undone) or result.refusal is not None or result.trace is None:
        refusal = result.refusal
        if refusal is None:
            raise refused(name, "recorder.gap")
        raise Refused(refusal.message(name, "has no pure form"))
    try:
        if look is not None:
            look(result.trace, result.result)
    finally:
        while undo:
            undo.pop()()
    try:
        return rolled(result.trace)
    except Unsupported as gap:
        raise refused(name, gap.reason, gap.detail) from None


def _watch(undo: list[Callable[[], None]], silent: bool) -> Callable[[Recording], None]:
    """Return a callback that keeps the undo actions of a finished call: an example leaves no change behind."""

    def start(recording: Recording) -> None:
        def look() -> None:
            if silent and recording.refusal is not None:
                raise Unwound  # else the call would go on unrecorded, and write files
            try:
                undo[:] = recording.journal.actions
            except Exception as error:
                interrupts.pass_on(error)

        recording.watcher, recording.display.silent = look, silent

    return start
