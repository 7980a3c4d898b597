"""Attributes of the program's classes that recorded code assigns: counters and settings that all objects share.

Only plain values: neither what is assigned nor what a lookup finds before is a function or another descriptor. Whatever
else is assigned to a class ends the tape. The class may have inherited the attribute, or not had it at all: then it has
one of its own. What is read afterwards, of the class or of one that inherits from it, is what was assigned, as long as
no class in between has the attribute itself, which is guarded.
"""

from __future__ import annotations

import sys
from typing import Any

from accel.process.own_code import is_project_module
from accel.record.objects.proxy import find_in_class
from accel.record.state import inputs
from accel.record.state.attributes import AttributeState, PlainOwner
from accel.record.state.inputs import MISSING
from accel.record.state.recording import Recording


def may_assign(kind: Any, name: str, value: object) -> bool:
    """Whether `kind.name = value` only puts another value in the place of one. value: the plain one."""
    before = find_in_class(kind, name)[1]
    if name.startswith("__") or find_in_class(type(kind), "__setattr__")[0] is not type:
        return False
    if find_in_class(type(kind), name)[0] is not None or any(map(_is_descriptor, (before, value))):
        return False
    return is_project_module(sys.modules.get(kind.__module__))


def _is_descriptor(value: object) -> bool:
    return any(find_in_class(type(value), each)[0] is not None for each in ("__get__", "__set__", "__set_name__"))


def assign(recording: Recording, kind: Any, name: str, value: object) -> None:
    """`kind.name = value`: the class gets the plain value at once."""
    before = vars(kind).get(name, MISSING)
    plain = recording.kept.unwrap_to_store(value)
    recording.journal.add(lambda: _restore(kind, name, before))
    type.__setattr__(kind, name, plain)
    key = ("class object", id(recording.registry.keep_alive(kind)))
    slot = recording.inputs.find_or_add(key, kind.__name__, inputs.of_constant(kind))
    recording.attributes[(id(kind), name)] = AttributeState(PlainOwner(kind, slot), name, value, True, plain)


def _restore(kind: type, name: str, before: object) -> None:
    if before is not MISSING:
        type.__setattr__(kind, name, before)
    elif name in vars(kind):
        type.__delattr__(kind, name)


def assigned(recording: Recording, kind: Any, name: str, real: Any, first: type) -> Any:
    """What `real.name` is as the call has assigned the attribute of `kind`; MISSING if it has not.

    first: the class that the lookup begins at.
    """
    state = recording.attributes.get((id(kind), name))
    if state is not None:
        guard_none_before(recording, first.__mro__, kind, name)
        if vars(kind).get(name, MISSING) is state.held:
            return state.wrapped
        recording.break_unseen(f"{kind.__name__}.{name} was changed from outside the recorded code")
    return MISSING if recording.active else getattr(real, name)


def guard_none_before(recording: Recording, order: tuple[type, ...], owner: type, name: str) -> None:
    """Let replays check that none of the classes that a lookup comes to before `owner` has an attribute of its own."""
    for kind in order[: order.index(owner)]:
        key = ("class lacks", id(recording.registry.keep_alive(kind)), name)
        if recording.active and recording.inputs.find(key) is None:
            fetch, check = inputs.of_constant(kind), inputs.satisfies(_lacks, name)
            recording.inputs.add(key, f"{kind.__name__}.{name}", fetch, check)


def _lacks(kind: type, name: str) -> bool:
    return name not in vars(kind)
