"""Attributes of the program's classes that recorded code assigns: counters and settings that all objects share.

Only what changes no lookup: a value that the class itself holds already gets another value, and neither is a function
or another descriptor. Whatever else is assigned to a class ends the tape.
"""

from __future__ import annotations

import sys
from typing import Any

from accel.process.own_code import is_project_module
from accel.record import inputs
from accel.record.inputs import MISSING
from accel.record.objects.proxy import find_in_class
from accel.record.parts.attributes import AttributeState, PlainOwner
from accel.record.recording import Recording


def may_assign(kind: Any, name: str, value: object) -> bool:
    """Whether `kind.name = value` only puts another value in the place of one. value: the plain one."""
    before = vars(kind).get(name, MISSING)
    if before is MISSING or name.startswith("__") or find_in_class(type(kind), "__setattr__")[0] is not type:
        return False
    if find_in_class(type(kind), name)[0] is not None or any(map(_is_descriptor, (before, value))):
        return False
    return is_project_module(sys.modules.get(kind.__module__))


def _is_descriptor(value: object) -> bool:
    return any(find_in_class(type(value), each)[0] is not None for each in ("__get__", "__set__", "__set_name__"))


def assign(recording: Recording, kind: Any, name: str, value: object) -> None:
    """`kind.name = value`: the class gets the plain value at once."""
    before = vars(kind)[name]
    plain = recording.kept.unwrap_to_store(value)
    recording.journal.add(lambda: type.__setattr__(kind, name, before))
    type.__setattr__(kind, name, plain)
    key = ("class object", id(recording.registry.keep_alive(kind)))
    slot = recording.inputs.find_or_add(key, kind.__name__, inputs.of_constant(kind))
    recording.attributes[(id(kind), name)] = AttributeState(PlainOwner(kind, slot), name, value, True, plain)


def assigned(recording: Recording, kind: Any, name: str, real: Any) -> Any:
    """What `real.name` is as the call has assigned the attribute of `kind`; MISSING if it has not."""
    state = recording.attributes.get((id(kind), name))
    if state is not None:
        if vars(kind).get(name, MISSING) is state.held:
            return state.wrapped
        recording.break_unseen(f"{kind.__name__}.{name} was changed from outside the recorded code")
    return MISSING if recording.active else getattr(real, name)
