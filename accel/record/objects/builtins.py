"""Stand-ins: what recorded code finds under the names of functions and of the builtins that would force a value."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from accel.record.objects.computed import guard_none_before, property_of
from accel.record.objects.containers.container import ContainerProxy
from accel.record.objects.modules import ModuleProxy
from accel.record.objects.names.cells import locals_
from accel.record.objects.names.namespaces import SubstitutedGlobals, programs_own
from accel.record.objects.objects import GENERIC, ObjectProxy, class_attribute, class_proxy, object_method
from accel.record.objects.proxy import one_per_object
from accel.record.objects.sinks.show import print_
from accel.record.state import inputs
from accel.record.state.on_behalf import on_behalf
from accel.record.state.recording import Recording
from accel.record.state.wrapper import StandIn, has_wrapper, unwrap
from accel.record.values.arrays import CompressedArray, RecordedScalar
from accel.record.values.numbers import TYPE_STAND_INS, record_extreme, record_sum


def _type(recording: Recording, *args: object, **kwargs: object) -> Any:
    if len(args) != 1:
        recording.break_("code.unsupported", "makes a class with type()")
        return on_behalf(type, unwrap(args), unwrap(kwargs))  # the class is of the module that calls
    kind = type(unwrap(args[0]))
    return class_proxy(recording, kind) if recording.active else kind


def _extreme(function: Callable[..., Any], recording: Recording, *args: Any, **kwargs: Any) -> Any:
    """max and min: by comparisons, as Python makes them; on the device where all are numbers of one type."""
    # `max(a, b)` of numbers from arrays is one operation on the device. Compared by Python it would be a branch, and so
    # one more path. Numbers of different types stay a branch: the type of the result depends on it.
    values = args[0] if len(args) == 1 and type(args[0]) in (list, tuple) else args
    if (
        recording.active
        and not kwargs
        and len(values) > 1
        and any(issubclass(type(value), RecordedScalar) and not value.node().host for value in values)
        and len({type(unwrap(value)) for value in values}) == 1
    ):
        return record_extreme(recording, function, tuple(values))
    return function(*args, **kwargs)


def _sum(recording: Recording, values: Any, /, start: Any = 0) -> Any:
    """sum: the result of Python's (it compensates sums of floats from 3.12 on), written down as additions."""
    values = list(values)
    # A sum of arrays, or of objects with an __add__ of their own, is Python's loop over their operators.
    scalars = [value for value in (start, *values) if type(unwrap(value)) in (bool, int, float, complex)]
    if not recording.active or len(scalars) != len(values) + 1 or not has_wrapper(values + [start]):
        return sum(values, start)
    result = sum(unwrap(values), unwrap(start))
    return recording.write_down(lambda: record_sum(recording, values, start, result), result)


def _length(recording: Recording, value: Any, /) -> Any:
    """len: a recorded number for containers that grow and for selections."""
    if not recording.active:
        return len(value)
    if issubclass(type(value), ContainerProxy):
        return value.length()
    if issubclass(type(value), CompressedArray):
        return value.count()
    return len(value)


def _ending(function: Callable[..., Any], reason: str, recording: Recording, *args: object, **kwargs: object) -> Any:
    """A builtin with an effect: the tape ends before it."""
    recording.break_(reason, f"{function.__name__}()", touched=True)
    return function(*map(recording.kept.unwrap_to_store, args), **unwrap(kwargs))


def _identity(recording: Recording, value: object) -> int:
    if has_wrapper(value):
        recording.break_("value.forced", "id() of a recorded value")
    return id(recording.kept.unwrap_to_store(value))


def _callable(recording: Recording, value: object, /) -> bool:
    return callable(unwrap(value))


def _import(
    recording: Recording,
    name: str,
    globals: SubstitutedGlobals | None = None,
    locals: object = None,
    fromlist: tuple[Any, ...] | None = (),
    level: int = 0,
) -> Any:
    """`import` inside a function: the module as a proxy."""
    module = builtins.__import__(name, programs_own(globals), None, fromlist, level)
    if not recording.active or not isinstance(module, ModuleType):
        return module
    if sys.modules.get(module.__name__) is module:
        key = ("module", module.__name__)
        if recording.inputs.find(key) is None:
            fetch = inputs.of_namespace(sys.modules, module.__name__)
            recording.inputs.add(key, f"the module {module.__name__}", fetch, inputs.is_same(module))
    return one_per_object(recording, module, ModuleProxy)


def _super(recording: Recording, *args: Any) -> Any:
    if not args:
        # Zero-argument super() looks for `__class__` and the first argument in its caller's frame.
        frame = sys._getframe(2)  # beyond Builtin.__call__
        args = (frame.f_locals["__class__"], frame.f_locals[frame.f_code.co_varnames[0]])
    kind, proxy = unwrap(args[0]), args[1]
    if recording.active and not issubclass(type(proxy), ObjectProxy):
        recording.break_("call.opaque", "super() of a class")
    return SuperProxy(recording, kind, proxy) if recording.active else super(kind, unwrap(proxy))


def _range(recording: Recording, *args: Any) -> Any:
    """range: itself, but to a `for` statement an iterator that shows how far it is."""
    values = range(*args)
    return recording.heads.iterate(values) if recording.active else values


class SuperProxy:
    """`super()` in recorded code: methods of the classes after `kind`."""

    def __init__(self, recording: Recording, kind: type, proxy: ObjectProxy) -> None:
        self._recording_, self._kind, self._proxy = recording, kind, proxy

    def __getattribute__(self, name: str) -> Any:
        """Special methods too: those of this class are not meant."""
        if name in ("_recording_", "_kind", "_proxy"):
            return object.__getattribute__(self, name)
        mro = type(unwrap(self._proxy)).__mro__
        behind = mro[mro.index(self._kind) + 1 :]
        for owner in behind:
            if name in owner.__dict__:
                found = owner.__dict__[name]
                guard_none_before(self._recording_, behind, owner, name)
                # object.__init__ refuses arguments unless the class overrides only one of __new__ and __init__; nobody
                # means it.
                if owner is object and name == "__init__":
                    return lambda *args, **kwargs: None
                if owner is object and name in GENERIC:
                    return lambda *args: object_method(self._recording_, name, (self._proxy, *args), {})
                if isinstance(found, property):
                    return property_of(self._proxy, name, owner, found)
                return class_attribute(self._proxy, name, owner, found)
        return getattr(super(self._kind, unwrap(self._proxy)), name)


_EFFECTS = {
    "input": "effect.print",
    "open": "effect.file",
    "exec": "code.unsupported",
    "eval": "code.unsupported",
    "globals": "code.unsupported",
    "vars": "code.unsupported",
    "compile": "code.unsupported",
    "dir": "code.unsupported",
    "bytearray": "value.forced",
    "memoryview": "value.forced",
}


class Builtin(StandIn):
    """The stand-in for a builtin function, or for `type` or `super`: what the program keeps is the builtin itself."""

    __slots__ = ("_call",)

    def __init__(self, recording: Recording, function: object, call: Callable[..., Any]) -> None:
        self._recording_, self._plain_, self._call = recording, function, call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(unwrap(value), self._plain_)


_CALLS: dict[str, Callable[..., Any]] = {
    **{name: partial(_ending, getattr(builtins, name), reason) for name, reason in _EFFECTS.items()},
    "print": print_,
    "type": _type,
    "max": partial(_extreme, max),
    "min": partial(_extreme, min),
    "sum": _sum,
    "len": _length,
    "callable": _callable,
    "id": _identity,
    "super": _super,
    "range": _range,
    "locals": locals_,
}
"""Builtins that recorded code has stand-ins for; each takes the recording first."""


def make_builtins(recording: Recording) -> dict[str, Any]:
    """The builtins of recorded code."""
    made = dict(vars(builtins))
    made.update({kind.__name__: TYPE_STAND_INS[kind] for kind in (float, int, complex)})
    for name, call in _CALLS.items():
        made[name] = Builtin(recording, getattr(builtins, name), partial(call, recording))
    made["object"] = class_proxy(recording, object)
    made["__import__"] = partial(_import, recording)
    return made


_WITHOUT_EFFECTS = "float int complex max min sum len object range __import__".split()


def plain_builtins() -> dict[str, Any]:
    """Python's own builtins without effects, which recorded code gets once the tape is broken."""
    return {name: getattr(builtins, name) for name in _WITHOUT_EFFECTS}
