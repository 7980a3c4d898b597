"""Modules, the environment, and objects that accel does not look into."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any

from accel.platform.own_code import is_project_module
from accel.record.objects.names.namespaces import delete_global, read_global, variable_of, write_global
from accel.record.objects.names.variables import state_of
from accel.record.objects.proxy import OPERATORS, OWN, Proxy, find_in_class, operated
from accel.record.state import inputs
from accel.record.state.opaque import call_opaque
from accel.record.state.recording import Recording
from accel.record.state.wrapper import StandIn, isinstance_wrapper, unwrap
from accel.record.values.arrays import as_static
from accel.record.values.subclasses import as_number, number_of_class
from accel.rules.rule import Unsupported


def _noted(recording: Recording, frame: FrameType, entered: Any) -> Any:
    """A module's attribute, read by a frame: a function that shows text is about to be called there."""
    if getattr(type(entered), "shows_text", False):
        recording.display.texts.note_load(frame)
    return entered


class ModuleProxy(Proxy):
    """A module: its attributes enter as globals do."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in OWN:
            return object.__getattribute__(self, name)
        recording, module = self._recording_, self._plain_
        namespace = vars(module)
        # The same variable as a global name of the module's own functions, which may have written it.
        if recording.active and _is_variable(module, name) and name in namespace:
            return _noted(recording, sys._getframe(1), read_global(recording, namespace, name))
        is_deleted = state_of(recording, variable_of(namespace, name)) is not None
        # `getattr(module, "cupy", None)`: that it is missing decides the path, and an import elsewhere may add it.
        if not hasattr(module, name) and not is_deleted:
            for each in (name, "__getattr__"):
                if each not in vars(module):
                    recording.guard_missing(vars(module), each, f"{module.__name__}.{each}")
        value = getattr(module, name)
        recording.registry.keep_alive(module)
        return _noted(
            recording,
            sys._getframe(1),
            recording.enter(
                value, ("global", id(module), name), f"{module.__name__}.{name}", inputs.of_object(module, name)
            ),
        )

    def __setattr__(self, name: str, value: object) -> None:
        recording, module = self._recording_, self._plain_
        if recording.active and _is_variable(module, name) and is_project_module(module):
            write_global(recording, vars(module), name, value)
            return
        recording.break_("effect.global", f"{module.__name__}.{name} is assigned", touched=True)
        setattr(module, name, recording.kept.unwrap_to_store(value))

    def __delattr__(self, name: str) -> None:
        recording, module = self._recording_, self._plain_
        if recording.active and _is_variable(module, name) and is_project_module(module) and name in vars(module):
            delete_global(recording, vars(module), name)
            return
        recording.break_("effect.global", f"{module.__name__}.{name} is deleted", touched=True)
        delattr(module, name)


def _is_variable(module: Any, name: str) -> bool:
    """Whether an attribute of a module is what its namespace holds, and no more."""
    kind = type(module)
    if kind is not ModuleType and any(find_in_class(kind, each)[0] not in _GENERIC for each in (*_ACCESS, name)):
        return False
    return not name.startswith("__")


_ACCESS = ("__getattribute__", "__setattr__", "__delattr__")
_GENERIC = (None, object, ModuleType)


class EnvironProxy(Proxy):
    """os.environ: reads are guarded by value."""

    __slots__ = ()

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording, os.environ)

    def get(self, name: object, default: object = None) -> Any:
        value = read_environment(self._recording_, name)
        return default if value is None else value

    def __getitem__(self, name: object) -> Any:
        read_environment(self._recording_, name)
        with self._recording_.foreseen():
            return os.environ[unwrap(name)]

    def __contains__(self, name: object) -> bool:
        return read_environment(self._recording_, name) is not None

    def __getattr__(self, name: str) -> Any:
        self._recording_.break_("call.opaque", f"os.environ.{name}", touched=True)
        return getattr(os.environ, name)

    def __setitem__(self, name: object, value: object) -> None:
        self._recording_.break_("effect.global", "os.environ is changed", touched=True)
        os.environ[unwrap(name)] = unwrap(value)

    def __iter__(self) -> Iterator[str]:
        self._recording_.break_("call.opaque", "a loop over os.environ")
        return iter(os.environ)

    def __len__(self) -> int:
        self._recording_.break_("call.opaque", "the size of os.environ")
        return len(os.environ)


def read_environment(recording: Recording, name: Any) -> str | None:
    """An environment variable's value, guarded."""
    name = recording.write_down(lambda: as_static(name), unwrap(name))
    value = os.environ.get(name)
    # One check per variable. Setting one inside the call ends the tape, so that it cannot change in between.
    if recording.active and recording.inputs.find(("env", name)) is None:
        recording.inputs.add_variable(name, value)
    return value


class EnvironmentFunction(StandIn):
    """The stand-in for os.getenv."""

    __slots__ = ()

    def __call__(self, key: Any, default: Any = None) -> Any:
        value = read_environment(self._recording_, key)
        return default if value is None else value


def _is_method(value: object, name: str) -> bool:
    """Whether an attribute is a method of the value's class, found without running any code; and not hidden."""
    kind: Any = type(value)
    # Reading the attribute may run the class's own code, or find what the object has under that name instead.
    if kind.__getattribute__ is not object.__getattribute__ or name in getattr(value, "__dict__", ()):
        return False
    found = find_in_class(kind, name)[1]
    return callable(found) and not hasattr(type(found), "__set__") and not isinstance(found, type)


def _as_numbers(value: Opaque, *others: Any) -> list[Any] | None:
    """An object and the other operands as the numbers that they are to Python's operators; None if they are none."""
    if number_of_class(type(value._plain_)) is None:
        return None
    try:
        return [as_number(each) for each in (value, *others)]
    except Unsupported:
        return None


class Opaque(Proxy):
    """An object that accel does not look into: it gets plain values, and calling it ends the tape."""

    __slots__ = ()

    def as_operand(self) -> Any:
        if not isinstance(self._plain_, (str, bytes, int, float, complex)):
            raise Unsupported("call.opaque", f"a {type(self._plain_).__name__} is given to a NumPy function")
        return self._plain_

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call_opaque(self._recording_, self._plain_, args, kwargs)

    def __getattribute__(self, name: str) -> Any:
        if name in OWN:
            return object.__getattribute__(self, name)
        recording = self._recording_
        # A method is only asked for, and calling it ends the tape; any other attribute's value would go unguarded.
        if recording.active and not _is_method(self._plain_, name):
            recording.break_("object.opaque", f".{name} of a {type(self._plain_).__name__}")
        attribute = getattr(self._plain_, name)
        return Opaque(recording, attribute) if recording.active else attribute

    def __setattr__(self, name: str, value: object) -> None:
        self._recording_.break_("object.opaque", f".{name} of a {type(self._plain_).__name__} is set", touched=True)
        setattr(self._plain_, name, self._recording_.kept.unwrap_to_store(value))

    def __delattr__(self, name: str) -> None:
        self._recording_.break_("object.opaque", f".{name} of a {type(self._plain_).__name__} is deleted", touched=True)
        delattr(self._plain_, name)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(unwrap(value), self._plain_)

    def __bool__(self) -> bool:
        kind = type(self._plain_)
        if (number_of_class(kind) is None and hasattr(kind, "__bool__")) or hasattr(kind, "__len__"):
            self._recording_.break_("call.opaque", f"the truth of a {kind.__name__}")
        return bool(self._plain_)

    def __eq__(self, other: object) -> Any:
        kind, numbers = type(self._plain_), _as_numbers(self, other)
        if numbers is not None:
            return operator.eq(*numbers)
        if find_in_class(kind, "__eq__")[0] is not object:
            self._recording_.break_("call.opaque", f"a comparison of a {kind.__name__}")
        return self._plain_ == unwrap(other)

    def __ne__(self, other: object) -> Any:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._plain_)


def _may_operate(other: object) -> bool:
    """Whether another operand may have an operator that can be followed."""
    return isinstance_wrapper(other) and not issubclass(type(other), Opaque)


def _opaque_special(name: str) -> Callable[..., Any]:
    """A special method of an object that accel does not look into."""

    def method(self: Opaque, *args: object) -> Any:
        kind = type(self._plain_)
        if name in OPERATORS and find_in_class(kind, name)[0] is None and _may_operate(args[0]):
            return NotImplemented
        numbers = _as_numbers(self, *args)
        if numbers is not None:
            return getattr(numbers[0], name)(*numbers[1:])
        self._recording_.break_("call.opaque", f"{kind.__name__}.{name}", touched=True)
        if name in OPERATORS:
            return operated(name, self._plain_, *unwrap(args))
        if name in _BY_PYTHON:  # which may have another way, or the right words where there is none
            return _BY_PYTHON[name](self._plain_, *unwrap(args))
        return getattr(kind, name)(self._plain_, *unwrap(args))

    method.__name__ = name
    return method


_BY_PYTHON: dict[str, Callable[..., Any]] = {
    **{f"__{function.__name__}__": function for function in (len, iter, next, abs, float, int, bytes, reversed)},
    **{
        f"__{name}__": getattr(operator, name)
        for name in "getitem setitem delitem contains neg pos invert index".split()
    },
}
for _name in (*OPERATORS, *_BY_PYTHON, "__enter__", "__exit__"):
    setattr(Opaque, _name, _opaque_special(_name))
