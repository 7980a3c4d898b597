"""Substituted globals: what followed code has for the globals of its module."""

from __future__ import annotations

import builtins
import itertools
from types import BuiltinFunctionType
from typing import Any

from accel.record.objects.names.variables import OF_GLOBALS, OuterVariable, state_of, write
from accel.record.state import inputs
from accel.record.state.changes import AttributeState, Item
from accel.record.state.inputs import MISSING
from accel.record.state.recording import Recording

WARNED = "__warningregistry__"
"""What a module has warned of; Python makes it where running code first gives a warning."""

PHYSICAL = ("__name__", "__package__", "__spec__", "__file__", "__doc__", WARNED)
"""Globals that CPython reads past a dict's `__missing__`."""


def programs_own(namespace: Any) -> Any:
    """The program's own globals, where substituted ones stand in their place."""
    return namespace.namespace if isinstance(namespace, SubstitutedGlobals) else namespace


class SubstitutedGlobals(dict[str, Any]):
    """The globals of followed code: names enter when they are read; plain ones once the tape is broken.

    Names that the code stores are entries of this dict for the time of one instruction (see `pass_on`), so that each
    read comes to `__missing__`.
    """

    def __init__(self, recording: Recording, namespace: dict[str, Any]) -> None:
        super().__init__({name: namespace[name] for name in PHYSICAL if name in namespace})
        self["__builtins__"] = recording.builtins
        self.recording = recording
        self.namespace = namespace
        self._entries = len(self)
        self._to_delete: str | None = None

    def __missing__(self, name: str) -> Any:
        # Code that was substituted goes on running after the tape broke, and after the call: it then is ordinary code.
        if not self.recording.active:
            return self.namespace[name]
        return read_global(self.recording, self.namespace, name)

    def pass_on(self) -> bool:
        """Pass on to the module what code has just stored or deleted. Returns whether there was anything."""
        deleted, self._to_delete = self._to_delete, None
        is_deleted = deleted is not None and self.pop(deleted, MISSING) is MISSING
        if deleted is not None and is_deleted:
            delete_global(self.recording, self.namespace, deleted)
        stored = list(itertools.islice(self, self._entries, None)) if len(self) != self._entries else []
        if WARNED in stored:  # not by the code: it stays, so that the next warning finds it
            stored.remove(WARNED)
            self[WARNED] = self.namespace.setdefault(WARNED, self[WARNED])
            self._entries += 1
        for name in stored:
            write_global(self.recording, self.namespace, name, self.pop(name))
        return is_deleted or bool(stored)

    def prepare_deletion(self, name: str) -> None:
        """Let the next instruction, `del name`, find the name, if the module has it."""
        if name in self.namespace:
            self[name] = None
            self._to_delete = name


def variable_of(namespace: dict[str, Any], name: str) -> OuterVariable:
    """A module's variable."""
    module = namespace.get("__name__", "")
    # a function always has the same globals
    fetch = inputs.of_constant(namespace)
    return OuterVariable(namespace, name, f"{module}.{name}", f"{OF_GLOBALS}{module}", fetch)


def read_global(recording: Recording, namespace: dict[str, Any], name: str) -> Any:
    """A global name, entered. Raises KeyError where recorded code has a stand-in of a builtin, or nothing, for it."""
    state = recording.attributes.get((id(namespace), Item(name)))
    if state is not None:
        return _current(recording, namespace, name, state)
    text = f"{namespace.get('__name__', '')}.{name}"
    if name not in namespace:  # a builtin's name, or none: a later call must find the same
        recording.guard_missing(namespace, name, text)
        return _builtin(recording, namespace, name)
    return _enter(recording, namespace, name, text)


def _current(recording: Recording, namespace: dict[str, Any], name: str, state: AttributeState) -> Any:
    """The value that the recorded call has written there. Breaks the tape if something else has replaced it."""
    if namespace.get(name, MISSING) is not state.held:
        recording.break_unseen(f"{variable_of(namespace, name).text} was changed from outside the recorded code")
        return namespace[name]
    return _builtin(recording, namespace, name) if state.wrapped is MISSING else state.wrapped


def _enter(recording: Recording, namespace: dict[str, Any], name: str, text: str) -> Any:
    """A name that a module or the builtins have, as it was before the recorded code wrote it."""
    key = ("global", id(namespace), name)
    if recording.inputs.find(key) is None:
        recording.registry.keep_alive(namespace)
    return recording.enter(namespace[name], key, text, inputs.of_namespace(namespace, name))


def write_global(recording: Recording, namespace: dict[str, Any], name: str, value: object) -> None:
    """`name = value` in a module: the module gets the plain value at once."""
    write(recording, variable_of(namespace, name), value)


def delete_global(recording: Recording, namespace: dict[str, Any], name: str) -> None:
    """`del name` in a module that has the name."""
    variable = variable_of(namespace, name)
    is_written = state_of(recording, variable) is not None
    write(recording, variable, MISSING)
    if not is_written and recording.active:  # later calls must find it too
        owner = recording.attributes[variable.key].owner
        recording.inputs.narrow(owner._slot_, inputs.has_item(name, True))


def _builtin(recording: Recording, namespace: dict[str, Any], name: str) -> Any:
    """The value that the program has put among the builtins. Raises KeyError for Python's own: these have stand-ins."""
    found = namespace.get("__builtins__", builtins)
    surrounding = found if isinstance(found, dict) else vars(found)
    key, known = ("builtin", id(surrounding), name), recording.inputs
    if name not in surrounding or known.find(key) is not None:
        raise KeyError(name)
    if not is_pythons(name, surrounding[name]):
        return _enter(recording, surrounding, name, f"builtins.{name}")
    known.add(key, f"builtins.{name}", inputs.of_namespace(surrounding, name), inputs.is_same(surrounding[name]))
    raise KeyError(name)


_CONSTANTS = (None, True, False, Ellipsis, NotImplemented)


def is_pythons(name: str, value: object) -> bool:
    """Whether a value is the builtin of that name."""
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
