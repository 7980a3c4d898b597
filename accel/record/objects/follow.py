"""Following: functions of the program run their own code with substituted globals, defaults and closure."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any

import wrapt

from accel.platform.bodies import as_written
from accel.platform.own_code import is_of_project
from accel.platform.reasons import Refusal
from accel.platform.spelling import function_name
from accel.record.objects import scan
from accel.record.objects.names.cells import closure_for
from accel.record.objects.names.namespaces import SubstitutedGlobals, globals_for
from accel.record.objects.names.steps import makes_functions, makes_writers
from accel.record.objects.proxy import one_per_object
from accel.record.objects.scan import KNOWS_CLASS, reads_class, with_class_reads
from accel.record.state import inputs
from accel.record.state.on_behalf import on_behalf
from accel.record.state.opaque import opaque_reason
from accel.record.state.recording import Recording, place_text
from accel.record.state.wrapper import StandIn, unwrap
from accel.record.values.text.markers import with_forms


class Followed(StandIn):
    """A function or method of the program's: calling it runs its own code with substituted globals.

    bound: the object or class of a method. stands_for: the program's object, where that is not the function or a plain
    method of it, but a wrapper around it, or the very method that an attribute holds.
    """

    __slots__ = ("_bound", "_function", "_slot_")

    def __init__(
        self, recording: Recording, function: FunctionType, bound: tuple[Any, ...] = (), stands_for: object = None
    ) -> None:
        if stands_for is None:
            stands_for = MethodType(function, unwrap(bound[0])) if bound else function
        own = {"_recording_": recording, "_plain_": stands_for, "_function": function, "_bound": bound, "_slot_": None}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording, function = self._recording_, self._function
        args = (*self._bound, *args)
        # A nested function that recorded code made: it has substituted globals already.
        if isinstance(function.__globals__, SubstitutedGlobals):
            return function(*args, **kwargs)
        if recording.active:
            known = WRAPPERS.get(function.__code__) or _known_late(function)
            if known is not None:
                return known(recording, function, args, kwargs)
            stop = why_not(recording, function, args, as_generator=scan.is_iterated(sys._getframe(1)))
            if stop is None:
                return substituted(recording, function)(*args, **kwargs)
            recording.refuse(stop)
            # It runs unrecorded from here on, and what it writes is not journalled.
            recording.touched = True
        held = {name: recording.kept.unwrap_to_store(kwargs[name]) for name in kwargs}
        # `namedtuple` and the like name the module that calls them
        return on_behalf(function, tuple(map(recording.kept.unwrap_to_store, args)), held)

    def __getattr__(self, name: str) -> Any:
        recording, function = self._recording_, self._function
        if not recording.active or isinstance(function.__globals__, SubstitutedGlobals):
            return getattr(self._plain_, name)
        if self._bound and name in ("__self__", "__func__"):
            return self._bound[0] if name == "__self__" else followed_once(recording, function, function)
        if not hasattr(function, name):
            recording.guard_missing(vars(function), name, f"{function.__qualname__}.{name}")
        value = getattr(function, name)
        key = ("function attribute", id(recording.registry.keep_alive(function)), name)
        return recording.enter(value, key, f"{function.__qualname__}.{name}", inputs.of_object(function, name))

    def __setattr__(self, name: str, value: object) -> None:
        self._recording_.break_("effect.global", f"{self._function.__qualname__}.{name} is assigned", touched=True)
        setattr(self._plain_, name, self._recording_.kept.unwrap_to_store(value))


def followed_once(recording: Recording, function: FunctionType, plain: Any) -> Any:
    """The stand-in of a function that is not bound: one, wherever the program finds it. plain: what that finds."""
    return one_per_object(recording, plain, lambda recording, plain: Followed(recording, function, (), plain))


WRAPPERS: dict[CodeType, Callable[[Recording, FunctionType, tuple[Any, ...], dict[str, Any]], Any]] = {}
"""Library functions that modules above know, by their code -> a function that makes the call."""

LATE: dict[str, Callable[[], None]] = {}
"""By library: adds its functions to `WRAPPERS` once the program has imported it."""


def _known_late(function: FunctionType) -> Any:
    if LATE and (function.__module__ or "").startswith("scipy."):
        for module in tuple(LATE):
            if module in sys.modules:
                add = LATE.pop(module, None)
                if add is not None:
                    add()
    return WRAPPERS.get(function.__code__)


def why_not(
    recording: Recording, function: FunctionType, args: tuple[Any, ...] = (), *, as_generator: bool = False
) -> Refusal | None:
    """The refusal that keeps a function from being followed, or None.

    args: what it is called with, by position. as_generator: it may be one.
    """
    root = (function.__module__ or "").partition(".")[0]
    is_targets = root == recording.package or function.__globals__.get("__name__") == recording.module
    if not (is_targets or is_of_project(function) or is_followed_in_library(function)):
        name = function_name(function.__module__, function.__qualname__)
        return Refusal(opaque_reason(function), recording.writer.where_text(), name)
    code = as_written(function.__code__)
    found = scan.problem(code, as_generator) or _unseen_later(recording, code) or _class_of_others(code, args)
    if found is None:
        return None
    reason, detail, line = found
    place = code.co_filename, line
    return Refusal(reason, place_text(place), f"{function.__qualname__} {detail}", (place,))


def is_followed_in_library(function: FunctionType) -> bool:
    """Whether it is of Python's own classes that only call back what they are given."""
    owner = function.__qualname__.partition(".")[0]
    return owner in _FOLLOWED.get(function.__module__ or "", ())


_FOLLOWED = {"contextlib": frozenset({"nullcontext", "closing", "suppress", "AbstractContextManager"})}
"""Classes of Python's library that are followed as the program's own are, by module."""


def _class_of_others(code: CodeType, args: tuple[Any, ...]) -> tuple[str, str, int] | None:
    """A read of the first argument's `__class__`, where that is none of which the class is known by that name."""
    if not reads_class(code) or (args and getattr(type(args[0]), KNOWS_CLASS, False)):
        return None
    return "code.unsupported", "uses __class__", code.co_firstlineno


def _unseen_later(recording: Recording, code: CodeType) -> tuple[str, str, int] | None:
    """Nested functions that write variables outside, in a call that may have to be finished without recording.

    A thread might go on with such a function after the call, when nobody sees its writes any more. Where nothing
    handles exceptions, the call is undone instead.
    """
    makes = recording.code.makes_writers or makes_writers(code)
    handles = recording.code.handles_exceptions or scan.handles_exceptions(code)
    if makes and handles:
        what = "a nested function writes variables outside, in a call that handles exceptions"
        return "effect.global", f"cannot be followed: {what}", code.co_firstlineno
    return None


def substituted(recording: Recording, function: FunctionType) -> FunctionType:
    """The function's own code with substituted globals, defaults and closure; guarded to stay that code."""
    made: FunctionType | None = recording.registry.functions.get(function)
    if made is not None:
        return made
    recording.guard_function(function)
    # lifted loops would hide from the recording that the iterations of a loop by data do the same
    code = as_written(function.__code__)
    recorded = with_forms(with_class_reads(code))
    recording.frames.follow(recorded)
    recording.code.makes_writers |= makes_writers(code)
    recording.code.makes_functions |= makes_functions(code)
    recording.code.handles_exceptions |= scan.handles_exceptions(code)
    recording.code.compares_identity |= scan.compares_identity(code)
    made = FunctionType(
        recorded,
        globals_for(recording, function.__globals__),
        function.__name__,
        _defaults(recording, function),
        closure_for(recording, function),
    )
    made.__kwdefaults__ = _keyword_defaults(recording, function)
    made.__qualname__ = function.__qualname__
    recording.registry.functions[function] = made
    return made


def _defaults(recording: Recording, function: FunctionType) -> tuple[Any, ...] | None:
    """The defaults of positional parameters, entered."""
    values = function.__defaults__
    if values is None:
        return None
    return tuple(
        recording.enter(
            value,
            ("default", id(function), i),
            f"{function.__name__}'s default {i}",
            inputs.of_default(function, i),
        )
        for i, value in enumerate(values)
    )


def _keyword_defaults(recording: Recording, function: FunctionType) -> dict[str, Any] | None:
    """The defaults of keyword-only parameters, entered."""
    values = function.__kwdefaults__
    if values is None:
        return None
    return {
        name: recording.enter(
            value,
            ("kwdefault", id(function), name),
            f"{function.__name__}'s default of {name}",
            inputs.of_keyword_default(function, name),
        )
        for name, value in values.items()
    }


def target_function(recording: Recording, value: object) -> Any:
    """Unwrap accel's own wrappers around a function of the program's; their targets count as inlined."""
    # The inner call becomes a part of the outer program instead of a target.
    while isinstance(value, wrapt.CallableObjectProxy):
        target = getattr(value, "_self_target", None)
        if target is None:
            break
        recording.inlined.add(target)
        recording.display.allowed &= target.effects
        value = value.__wrapped__
    return value
