"""Copies: `copy.copy`, `copy.deepcopy`, `dataclasses.replace`, and the fields of dataclasses.

Python's own functions find out how to copy an object by asking it for methods. Here it is asked of its class, as far as
that has none of its own for it: then a copy is a new object with the same attributes. Anything else is left to Python:
to copy changes nothing, so that it may do it from the start.
"""

from __future__ import annotations

import copy
import copyreg
import dataclasses
import enum
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from accel.ir.tape import SERIAL
from accel.platform import interrupts
from accel.record.objects.containers.container import ContainerProxy
from accel.record.objects.containers.tuples import NamedTupleProxy
from accel.record.objects.kinds import followable_class, is_bare_namedtuple
from accel.record.objects.objects import ObjectProxy, construct, get_attribute, set_attribute
from accel.record.objects.own_attributes import is_slot, own_names
from accel.record.objects.proxy import find_in_class, guard_class
from accel.record.state import inputs
from accel.record.state.opaque import call_opaque
from accel.record.state.recording import Recording, gap_text
from accel.record.state.wrapper import StandIn, unwrap
from accel.record.values.arrays import CompressedArray, RecordedArray, RecordedScalar
from accel.record.values.wrapping import remember
from accel.rules.rule import Unsupported

_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, type, range, type(Ellipsis), np.dtype})
_FUNCTIONS = (FunctionType, BuiltinFunctionType, type, np.ufunc)


class Copying(StandIn):
    """A function of Python's that makes copies."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording, made = self._recording_, None
        if recording.active and len(args) == 1 and not kwargs:
            try:
                made = COPYING[self._plain_](recording, *args)
            except Unsupported as gap:
                recording.break_(gap.reason, gap.detail)
            except Exception as error:  # a fault of ours must never reach the user's handlers
                interrupts.pass_on(error)
                recording.break_("recorder.gap", gap_text(error))
        if recording.active and len(args) == 1 and not kwargs:
            return made
        # Whatever there is of the copy by now is let go: what is plain and what is recorded are mixed in it.
        return call_opaque(recording, self._plain_, args, kwargs)


def shallow(recording: Recording, value: Any) -> Any:
    """copy.copy."""
    kind = type(value)
    if issubclass(kind, ContainerProxy):
        return value.copy()
    if issubclass(kind, ObjectProxy) and not issubclass(kind, NamedTupleProxy):
        return _new_object(recording, value, lambda part: part)
    if _is_atom(value) or kind is tuple or issubclass(kind, NamedTupleProxy):
        return value
    if issubclass(kind, (RecordedArray, CompressedArray)):
        return value.copy()
    if kind in (list, dict, set, deque, defaultdict, OrderedDict, Counter) or is_bare_namedtuple(kind):  # type: ignore[arg-type]
        return copy.copy(value)
    raise Unsupported("call.opaque", f"a copy of a {type(unwrap(value)).__name__}")


def deep(recording: Recording, value: Any) -> Any:
    """copy.deepcopy."""
    return _Deep(recording).copied(value)


class _Deep:
    """One deep copy. What is met again is the copy that there is already."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._made: dict[int, tuple[Any, Any]] = {}

    def copied(self, value: Any) -> Any:
        """The copy of a value; the one that there is already where it was met before."""
        if _is_atom(value):
            return value
        before = self._made.get(id(value))
        if before is not None:
            return before[1]
        kind = type(value)
        if issubclass(kind, (RecordedArray, CompressedArray)):
            return self._note(value, value.copy())
        if issubclass(kind, ContainerProxy) or kind in (list, dict):
            return self._container(value)
        if issubclass(kind, tuple):
            return self._tuple(value)
        if issubclass(kind, ObjectProxy) and not issubclass(kind, NamedTupleProxy):
            return _new_object(self._recording, value, self.copied, lambda made: self._note(value, made))
        raise Unsupported("call.opaque", f"a deep copy of a {type(unwrap(value)).__name__}")

    def _note(self, value: Any, made: Any) -> Any:
        if self._made:  # two names for one object get one copy
            self._recording.code.compares_identity = True
        self._made[id(value)] = value, made
        return made

    def _container(self, value: Any) -> Any:
        """The copy of a list or dict, which may contain itself."""
        kind = type(unwrap(value))
        if kind is list:
            made = self._note(value, [])
            made.extend(map(self.copied, list(value)))
            return made
        if kind is dict:
            items = self._note(value, {})
            for key in list(value):
                if not _is_atom(key):
                    raise Unsupported("call.opaque", "a deep copy of a dict with objects for keys")
                items[key] = self.copied(value[key])
            return items
        raise Unsupported("call.opaque", f"a deep copy of a {kind.__name__}")

    def _tuple(self, value: Any) -> Any:
        parts = [self.copied(part) for part in value]
        if id(value) in self._made:  # a part of it holds it
            return self._made[id(value)][1]
        if is_bare_namedtuple(type(value)):  # type: ignore[arg-type]
            return self._note(value, type(value)(*parts))
        if type(value) is not tuple:
            raise Unsupported("call.opaque", f"a deep copy of a {type(value).__name__}")
        is_same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if is_same else self._note(value, tuple(parts))


def _is_atom(value: Any) -> bool:
    """Whether copies of a value are the value itself."""
    kind = type(value)
    if issubclass(kind, StandIn):
        return isinstance(unwrap(value), _FUNCTIONS)
    return kind in _ATOMS or issubclass(kind, (RecordedScalar, np.generic, enum.Enum, *_FUNCTIONS))


# -- objects ----------------------------------------------------------------------------------------------------------


def _new_object(
    recording: Recording,
    value: ObjectProxy,
    copied: Callable[[Any], Any],
    note: Callable[[Any], Any] = lambda made: made,
) -> Any:
    """A new object of the same class, with `copied(...)` of each attribute. note: is told of it while it is empty."""
    real = unwrap(value)
    kind = type(real)
    _check_copies_plainly(kind)
    names = _guarded_names(recording, value)
    made = note(remember(recording, ObjectProxy(recording, object.__new__(kind), None)))
    recording.made[id(made._plain_)] = next(SERIAL)
    for name in names:
        if not recording.active:
            break
        found = find_in_class(kind, name)[1]
        if hasattr(type(found), "__set__") and not is_slot(found):
            raise Unsupported("call.opaque", f"a copy of a {kind.__name__} whose .{name} is hidden")
        set_attribute(made, name, copied(get_attribute(value, name)), generic=True)
    return made


def _check_copies_plainly(kind: type) -> None:
    """Refuse classes that say themselves how their objects are copied, or that keep what no attribute shows."""
    own = _own_methods(kind)
    is_plain = followable_class(kind) and find_in_class(kind, "__new__")[0] is object
    if own or not is_plain or issubclass(kind, BaseException):
        raise Unsupported(
            "call.opaque", f"a copy of a {kind.__name__}" + (f", which has its own {own[0]}" if own else "")
        )
    has_slots = any(is_slot(found) for each in kind.__mro__ for found in vars(each).values())
    if has_slots and find_in_class(kind, "__setattr__")[0] is not object:
        raise Unsupported("call.opaque", f"a copy of a {kind.__name__}, which has slots and its own __setattr__")


_METHODS = """__copy__ __deepcopy__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __getnewargs__ __getnewargs_ex__
__del__ __getattr__""".split()


def _own_methods(kind: type) -> list[str]:
    """Methods by which a class copies its objects beside those of `object`."""
    found = [name for name in _METHODS if find_in_class(kind, name)[0] not in (None, object)]
    return [*found, "function in copyreg"] if kind in copyreg.dispatch_table else found


def _guarded_names(recording: Recording, value: ObjectProxy) -> list[str]:
    """The names of an object's attributes; a later call must find the same ones, but for those that this one sets."""
    names, slot = own_names(unwrap(value)), value._slot_
    if slot is not None:
        # those that the call has given it are its last, and not there when the next one begins
        before = [name for name in names if (id(unwrap(value)), name) not in recording.new_names]
        recording.inputs.add(
            ("names", slot, tuple(before)),
            f"{recording.inputs.name(slot)}'s attributes",
            inputs.of_slot(slot, own_names),
            inputs.is_equal(before),
        )
    kind = type(unwrap(value))
    key = ("copies", id(recording.registry.keep_alive(kind)))
    if recording.inputs.find(key) is None:
        fetch = inputs.Code("{0}({1})", (_own_methods, kind))
        recording.inputs.add(key, f"how a {kind.__name__} is copied", fetch, inputs.is_equal([]))
    return names


# -- dataclasses ------------------------------------------------------------------------------------------------------


_FIELDS = "__dataclass_fields__"


def fields_of(recording: Recording, value: Any) -> Any:
    """dataclasses.fields: each is an object of Python's, whose attributes are read and guarded as any other's."""
    plain = unwrap(value)
    kind = plain if isinstance(plain, type) else type(plain)
    key = ("fields", id(recording.registry.keep_alive(kind)))
    slot = recording.inputs.find(key)
    if slot is not None:  # each call of it gives another tuple
        return recording.entered[slot][1]
    fetch = inputs.Code("{0}({1})", (dataclasses.fields, kind))
    return recording.enter(dataclasses.fields(kind), key, f"fields({kind.__name__})", fetch)


COPYING: dict[Any, Callable[[Recording, Any], Any]] = {
    copy.copy: shallow,
    copy.deepcopy: deep,
    dataclasses.fields: fields_of,
}
"""Copying functions of Python's library -> how they act on recorded values."""


class Replace(StandIn):
    """dataclasses.replace in recorded code."""

    __slots__ = ()

    def __call__(self, /, *args: Any, **changes: Any) -> Any:
        recording, kind = self._recording_, type(unwrap(args[0])) if args else object
        if not recording.active or len(args) != 1 or not issubclass(type(args[0]), ObjectProxy) or not _is_plain(kind):
            return call_opaque(recording, self._plain_, args, changes)
        guard_class(recording, kind, _FIELDS, getattr(kind, _FIELDS))
        # Those that are given first, the others behind them, as Python passes them on.
        others = [name for name in getattr(kind, _FIELDS) if name not in changes and name in _names(kind)]
        return construct(recording, kind, (), {**changes, **{name: getattr(args[0], name) for name in others}})


def _names(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def _is_plain(kind: type) -> bool:
    """Whether a class is a dataclass all of whose fields `__init__` takes, and keeps."""
    if not dataclasses.is_dataclass(kind):
        return False
    kinds = {repr(field._field_type) for field in getattr(kind, _FIELDS).values()}
    return "_FIELD_INITVAR" not in kinds and all(field.init for field in dataclasses.fields(kind))
