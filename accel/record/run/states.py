"""States: what recorded code can reach at a join, as templates that can be compared between recordings.

Those of loops, which are compared within one recording, are others: see accel.record.run.loops.state.
"""

from __future__ import annotations

from collections.abc import Hashable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from accel.ir.tape import Storage
from accel.ir.template import frozen_static
from accel.record.objects.builtins import Builtin
from accel.record.objects.follow import Followed
from accel.record.objects.modules import EnvironProxy, ModuleProxy, Opaque
from accel.record.objects.names.namespaces import SubstitutedGlobals
from accel.record.objects.names.variables import contents_of
from accel.record.objects.objects import ClassProxy, ObjectType
from accel.record.objects.proxy import Proxy
from accel.record.state.changes import Asked, Item
from accel.record.state.inputs import MISSING
from accel.record.state.joins import (
    UNBOUND,
    ConstantKey,
    Entered,
    JoinState,
    Memory,
    NumberSymbol,
    Roots,
    UnknownState,
    View,
)
from accel.record.state.recording import Recording
from accel.record.state.wrapper import StandIn, isinstance_wrapper
from accel.record.values.arrays import RecordedArray, RecordedScalar

DEEPEST = 20
"""Maximum nesting of containers in a state. Guess."""

_PLAIN = frozenset(
    {bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), np.dtype, range}
)


def describe(recording: Recording, roots: Roots) -> JoinState:
    """The state that these lead to. Raises UnknownState."""
    return _Describer(recording).describe(roots)


def reachable(recording: Recording, roots: Roots) -> list[Any]:
    """The recorded values that some roots and written attributes lead to, and the containers on the way."""
    found: list[Any] = []
    waiting = [value for _, value in roots]
    waiting += [state.wrapped for state in recording.attributes.values() if state.written]
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if value is UNBOUND or value is MISSING or kind in _PLAIN or id(value) in seen:
            continue
        seen.add(id(value))
        if kind is dict:
            waiting += [*value.keys(), *value.values()]
        elif kind in (list, set, frozenset) or issubclass(kind, tuple):
            waiting += value
        if not issubclass(kind, tuple):
            found.append(value)
    return found[::-1]


class _Describer:
    """Describes one state."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._memories: list[Memory] = []
        self._of_storage: dict[int, int] = {}
        self._seen: dict[int, int] = {}  # lists and dicts by id: which of them is which
        self._depth = 0

    def describe(self, roots: Roots) -> JoinState:
        """The state that these lead to. Raises UnknownState."""
        if self._recording.changed:
            raise UnknownState  # the program's containers hold other elements by now
        if self._recording.display.shown or self._recording.display.texts.are_made:
            raise UnknownState  # a part of what is shown, or of its text, is made already
        template = [(name, self._form(value)) for name, value in roots]
        template.append(("asked", ConstantKey(tuple(map(_of_cache, self._recording.asked)))))
        written: list[tuple[int, Hashable, Any]] = []
        for state in self._recording.attributes.values():
            owner = state.owner._slot_
            if state.written and owner is not None:
                is_item = isinstance(state.name, Item)
                name = state.name.key if isinstance(state.name, Item) else state.name
                if is_item and state.owner.computed(name) is not None:
                    raise UnknownState  # another call may have written to another item
                form = ConstantKey("deleted") if state.wrapped is MISSING else self._form(state.wrapped)
                written.append((owner, (is_item, state.is_anew, frozen_static(name)), form))
        # what the call has written to is read again under the name of the input
        for storage in self._recording.storages:
            if storage.written:
                self._memory(storage)
        return JoinState(tuple(template), self._memories, written)

    def _form(self, value: Any) -> Any:
        self._depth += 1
        if self._depth > DEEPEST:
            raise UnknownState
        try:
            return self._form_of(value)
        finally:
            self._depth -= 1

    def _form_of(self, value: Any) -> Any:
        """The form of one value: a tuple with a kind first, or a leaf. Raises UnknownState."""
        kind = type(value)
        if value is UNBOUND:
            return UNBOUND
        if isinstance_wrapper(value):
            return self._wrapper(value, kind)
        if kind in _PLAIN or issubclass(kind, (np.generic, np.dtype)):
            return ConstantKey(frozen_static(value))
        if kind in (list, dict):
            return self._container(value)
        if issubclass(kind, tuple):
            return self._tuple(value)
        if kind is slice:
            return "slice", *(self._form(part) for part in (value.start, value.stop, value.step))
        if kind in (type, BuiltinFunctionType):
            return ConstantKey((kind, value))
        if kind is FunctionType:
            return self._function(value)
        raise UnknownState

    def _wrapper(self, value: Any, kind: type) -> Any:
        """The form of a wrapper: a recorded value, an input, or what is the same in all recordings."""
        if issubclass(kind, RecordedScalar):
            return NumberSymbol(value.node())
        if issubclass(kind, RecordedArray):
            return View(self._memory(value._storage), value._chain)
        if issubclass(kind, Followed):
            if isinstance(value._function.__globals__, SubstitutedGlobals):
                raise UnknownState
            return "function", ConstantKey(_Same(value._function)), *(self._form(each) for each in value._bound)
        if issubclass(kind, (ModuleProxy, ClassProxy, Opaque, ObjectType, EnvironProxy, Builtin)):
            return ConstantKey((kind, _Same(value._plain_)))
        if issubclass(kind, Proxy) and value._slot_ is not None:
            return Entered(value._slot_)
        if issubclass(kind, StandIn) and kind.__module__.startswith("accel.record.") and not _is_bound(value._plain_):
            return ConstantKey((kind, _Same(value._plain_)))
        raise UnknownState

    def _memory(self, storage: Storage) -> int:
        at = self._of_storage.get(id(storage))
        if at is None:
            base = storage.base
            layout = base.shape, str(base.dtype), base.strides, base.flags.writeable
            origin = None if storage.origin is None else storage.origin.args[0]
            memory = Memory(storage.number, origin, storage.version, layout, storage.written)
            storage.on_advance.append(memory.advanced)
            at = self._of_storage[id(storage)] = len(self._memories)
            self._memories.append(memory)
        return at

    def _container(self, value: Any) -> Any:
        if id(value) in self._seen:
            return "again", ConstantKey(self._seen[id(value)])
        self._seen[id(value)] = len(self._seen)
        if type(value) is list:
            return "list", *(self._form(part) for part in value)
        return "dict", *(item for key, part in value.items() for item in (self._form(key), self._form(part)))

    def _tuple(self, value: Any) -> Any:
        entered = self._recording.kept.entered_tuple(value)
        if entered is not None:
            return "entered", Entered(entered.slot)
        return "tuple", ConstantKey((type(value),)), *(self._form(part) for part in value)

    def _function(self, value: FunctionType) -> Any:
        """A function that recorded code has made: what it can reach is part of the state."""
        if vars(value) or not isinstance(value.__globals__, SubstitutedGlobals):
            raise UnknownState
        if id(value) in self._seen:  # as one that calls itself
            return "again", ConstantKey(self._seen[id(value)])
        self._seen[id(value)] = len(self._seen)
        found = map(contents_of, value.__closure__ or ())
        cells = [UNBOUND if held is MISSING else self._form(held) for held in found]
        defaults = [self._form(part) for part in value.__defaults__ or ()]
        named = [(name, self._form(part)) for name, part in (value.__kwdefaults__ or {}).items()]
        return "made", ConstantKey(value.__code__), *cells, "defaults", *defaults, *named


class _Same:
    """An object of the program's as a key: equal to the very same object only. Keeps it alive."""

    __slots__ = ("_object",)

    def __init__(self, value: object) -> None:
        self._object = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._object is other._object

    def __hash__(self) -> int:
        return id(self._object)


def _of_cache(asked: Asked) -> Hashable:
    """A key of the question to a cache."""
    return _Same(asked.function), asked.owner, repr((asked.args, asked.kwargs))


def _is_bound(value: object) -> bool:
    """Whether a function belongs to one object (`x.sum`), which may be another in the next call."""
    owner = getattr(value, "__self__", None)
    return owner is not None and not isinstance(owner, (type, type(np), np.ufunc))
