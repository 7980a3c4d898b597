"""Following: functions of the program run their own code with substituted globals, defaults and closure."""

from __future__ import annotations

import builtins
from types import BuiltinFunctionType, CellType, FunctionType, MethodType
from typing import Any, NamedTuple

import wrapt

from accel.reasons import Refusal
from accel.record import inputs
from accel.record.effects.percent import with_forms
from accel.record.objects import scan
from accel.record.opaque import opaque_reason
from accel.record.project import is_of_project
from accel.record.recording import Recording, place_text
from accel.record.standin import StandIn
from accel.record.wrapper import unwrap

PHYSICAL = ("__name__", "__package__", "__spec__", "__file__", "__doc__")
"""Globals that CPython reads past a dict's `__missing__`."""


class SubstitutedGlobals(dict[str, Any]):
    """The globals of followed code: names enter when they are read; plain ones once the tape is broken."""

    def __init__(self, recording: Recording, namespace: dict[str, Any]) -> None:
        super().__init__({name: namespace[name] for name in PHYSICAL if name in namespace})
        self["__builtins__"] = recording.builtins
        self.recording = recording
        self.namespace = namespace

    def __missing__(self, name: str) -> Any:
        # Code that was substituted goes on running after the tape broke, and after the call: it then is ordinary code.
        if not self.recording.active:
            return self.namespace[name]
        module = self.namespace.get("__name__", "")
        if name not in self.namespace:  # a builtin's name, or none: a later call must find the same
            self.recording.guard_missing(self.namespace, name, f"{module}.{name}")
            return self._builtin(name)
        return self._enter(self.namespace, name, f"{module}.{name}")

    def _enter(self, namespace: dict[str, Any], name: str, text: str) -> Any:
        key = ("global", id(namespace), name)
        return self.recording.enter(namespace[name], key, text, inputs.of_namespace(namespace, name))

    def _builtin(self, name: str) -> Any:
        """What the program has put among the builtins. KeyError for Python's own: recorded code has stand-ins."""
        found = self.namespace.get("__builtins__", builtins)
        namespace = found if isinstance(found, dict) else vars(found)
        key, known = ("builtin", id(namespace), name), self.recording.inputs
        if name not in namespace or known.find(key) is not None:
            raise KeyError(name)
        if not is_pythons(name, namespace[name]):
            return self._enter(namespace, name, f"builtins.{name}")
        known.add(key, f"builtins.{name}", inputs.of_namespace(namespace, name), inputs.is_same(namespace[name]))
        raise KeyError(name)


_CONSTANTS = (None, True, False, Ellipsis, NotImplemented)


def is_pythons(name: str, value: object) -> bool:
    """Whether what stands under a builtin's name is the builtin."""
    if isinstance(value, BuiltinFunctionType):
        return value.__name__ == name
    if isinstance(value, type):
        return value.__module__ == "builtins" and (value.__name__ == name or value is OSError)
    is_constant = name.startswith("__") or any(value is each for each in _CONSTANTS)
    return is_constant or type(value).__module__ == "_sitebuiltins"


def globals_for(recording: Recording, namespace: dict[str, Any]) -> SubstitutedGlobals:
    """The substituted form of a module's globals: one per recording."""
    made = recording.registry.namespaces.get(id(namespace))
    if made is None:
        made = SubstitutedGlobals(recording, recording.registry.keep_alive(namespace))
        recording.registry.namespaces[id(namespace)] = made
    return made


class Followed(StandIn):
    """A function or method of the program's: calling it runs its own code with substituted globals.

    bound: the object or class of a method. stands_for: what the program has in its place, where that is not just the
    function or a method of it (a wrapper around it, or the very method that an attribute holds).
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
            stop = why_not(recording, function)
            if stop is None:
                return substituted(recording, function)(*args, **kwargs)
            recording.refuse(stop)
            # It runs unrecorded from here on, and what it writes is not journalled.
            recording.touched = True
        return function(
            *map(recording.kept.unwrap_to_store, args),
            **{name: recording.kept.unwrap_to_store(kwargs[name]) for name in kwargs},
        )

    def __getattr__(self, name: str) -> Any:
        recording, function = self._recording_, self._function
        if not recording.active or isinstance(function.__globals__, SubstitutedGlobals):
            return getattr(self._plain_, name)
        if self._bound and name in ("__self__", "__func__"):
            return self._bound[0] if name == "__self__" else Followed(recording, function)
        if not hasattr(function, name):
            recording.guard_missing(vars(function), name, f"{function.__qualname__}.{name}")
        value = getattr(function, name)
        key = ("function attribute", id(recording.registry.keep_alive(function)), name)
        return recording.enter(value, key, f"{function.__qualname__}.{name}", inputs.of_object(function, name))

    def __setattr__(self, name: str, value: object) -> None:
        self._recording_.break_("effect.global", f"{self._function.__qualname__}.{name} is assigned", touched=True)
        setattr(self._plain_, name, self._recording_.kept.unwrap_to_store(value))


def why_not(recording: Recording, function: FunctionType) -> Refusal | None:
    """The refusal that keeps a function from being followed, or None."""
    root = (function.__module__ or "").partition(".")[0]
    is_targets = root == recording.package or function.__globals__.get("__name__") == recording.module
    if not (is_targets or is_of_project(function)):
        name = f"{function.__module__}.{function.__qualname__}"
        return Refusal(opaque_reason(function), recording.writer.where_text(), name)
    found = scan.problem(function.__code__)
    if found is None:
        return None
    reason, detail, line = found
    return Refusal(reason, place_text((function.__code__.co_filename, line)), f"{function.__qualname__} {detail}")


def substituted(recording: Recording, function: FunctionType) -> FunctionType:
    """The function's own code with substituted globals, defaults and closure; guarded to stay that code."""
    made: FunctionType | None = recording.registry.functions.get(function)
    if made is not None:
        return made
    recording.guard_function(function)
    recording.compares_identity |= scan.compares_identity(function.__code__)
    made = FunctionType(
        with_forms(function.__code__),
        globals_for(recording, function.__globals__),
        function.__name__,
        _defaults(recording, function),
        _closure(recording, function),
    )
    made.__kwdefaults__ = _keyword_defaults(recording, function)
    made.__qualname__ = function.__qualname__
    recording.registry.functions[function] = made
    return made


def _defaults(recording: Recording, function: FunctionType) -> tuple[Any, ...] | None:
    values = function.__defaults__
    if values is None:
        return None
    return tuple(
        recording.enter(
            value,
            ("default", id(function), i),
            f"{function.__name__}'s default {i}",
            inputs.of_object(_Peek(function, i), "default"),
        )
        for i, value in enumerate(values)
    )


class _Peek(NamedTuple):
    """Reads a function's default by place."""

    function: FunctionType
    position: int

    @property
    def default(self) -> Any:
        return (self.function.__defaults__ or ())[self.position]


def _keyword_defaults(recording: Recording, function: FunctionType) -> dict[str, Any] | None:
    values = function.__kwdefaults__
    if values is None:
        return None
    return {
        name: recording.enter(
            value,
            ("kwdefault", id(function), name),
            f"{function.__name__}'s default of {name}",
            inputs.of_namespace(values, name),
        )
        for name, value in values.items()
    }


def _closure(recording: Recording, function: FunctionType) -> tuple[CellType, ...] | None:
    if function.__closure__ is None:
        return None
    cells = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
        try:
            value = cell.cell_contents
        # `def f(): ... f()` inside its own definition, or a variable that is assigned later: read when it is needed.
        except ValueError:  # not yet bound
            cells.append(cell)
            continue
        if name == "__class__":  # for zero-argument super()
            cells.append(cell)
            continue
        recording.registry.keep_alive(cell)
        entered = recording.enter(value, ("cell", id(cell)), f"{function.__name__}'s {name}", inputs.of_cell(cell))
        cells.append(CellType(entered))
    return tuple(cells)


def target_function(recording: Recording, value: object) -> Any:
    """The user's own function under a wrapper of ours; its target counts as inlined."""
    # Our own wrappers of hooked functions: the inner call becomes a part of the outer program instead of a target.
    while isinstance(value, wrapt.CallableObjectProxy):
        target = getattr(value, "_self_target", None)
        if target is None:
            break
        recording.inlined.add(target)
        recording.shows_effects &= target.effects
        value = value.__wrapped__
    return value
