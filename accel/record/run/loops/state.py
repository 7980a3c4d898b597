"""States: all that recorded code can reach at a position, apart from what the recorded values are.

A program that comes to the same position in the same state again does the same from there on. Only the recorded values
that it computes with may differ. So a state has two parts: its *form*, which two states must have in common, and the
nodes of its recorded values, in the order in which the form comes to them.

What is not followed exactly (an iterator, a generator, an object of C) makes the state unknown.

These states are of one recording, and say whether a loop's iterations repeat. Lists and dicts are told by identity, new
memory and new objects by their number, and a range by how far it has come. States at joins (accel.record.run.states)
are compared between recordings, where all of these differ: there inputs have names, and a list is what it holds. So
nearly every kind of value is described otherwise there, and the two share no walk.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from accel.ir.tape import Node, Storage
from accel.ir.template import form, frozen_static
from accel.record.objects.builtins import Builtin
from accel.record.objects.containers.container import ContainerProxy
from accel.record.objects.follow import Followed
from accel.record.objects.functions import RuleFunction
from accel.record.objects.generators import GeneratorProxy, NewGeneratorProxy
from accel.record.objects.kinds import is_bare_namedtuple
from accel.record.objects.modules import ModuleProxy
from accel.record.objects.names.variables import contents_of
from accel.record.objects.objects import ClassProxy, ObjectProxy, ObjectType
from accel.record.state.inputs import MISSING
from accel.record.state.recording import Recording
from accel.record.values.arrays import RecordedArray, RecordedScalar
from accel.record.values.methods import Method
from accel.record.values.numbers import TypeStandIn

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range, np.dtype, type)
"""Immutable, and told apart by their values."""

_UNBOUND = ("unbound",)


class Unknown(Exception):
    """A value cannot be followed: accel cannot see how the program uses it."""


@dataclass(frozen=True, slots=True)
class LoopState:
    """All that recorded code can reach at a position.

    form: equal for states that differ in nothing but recorded values, counts, and which memory and which new objects
    they are in. nodes: the recorded values. made: the numbers of that memory and of these objects, in the order of the
    form. counts: how many more elements each iterator of a range gives.
    """

    form: Hashable
    nodes: tuple[Node, ...]
    made: tuple[int, ...]
    counts: tuple[int, ...]


class RangeIterator:
    """The iterator of `for i in range(...)`: gives what the range's own does, and tells how much is left.

    coming: once it counts on the device, the recorded form of what it gives next. on_next: is called before each
    element. on_end: is called when it has no more elements.
    """

    __slots__ = ("__weakref__", "_values", "coming", "left", "on_end", "on_next", "step")

    def __init__(self, values: range) -> None:
        self._values = iter(values)
        self.left = len(values)
        self.step = values.step
        self.coming: Any = None
        self.on_next: Callable[[], None] = _nothing
        self.on_end: Callable[[], None] = _nothing

    def __iter__(self) -> RangeIterator:
        return self

    def __next__(self) -> Any:
        self.on_next()
        try:
            value = next(self._values)
        except StopIteration:
            self.on_end()
            raise
        self.left -= 1
        if self.coming is None or not issubclass(type(self.coming), RecordedScalar):
            return value
        if not self.coming._recording_.active:  # what goes on does so with plain numbers
            self.coming = None
            return value
        recorded, self.coming = self.coming, self.coming + self.step
        return recorded


def _nothing() -> None:
    pass


class Held(NamedTuple):
    """The holders of a state in recorded code: a number or a storage for each node, an iterator for each count."""

    values: list[RecordedScalar | Storage]
    ranges: list[RangeIterator]


def state_of(
    recording: Recording, frame: FrameType, live: Iterable[str], iterators: Iterable[RangeIterator | None]
) -> tuple[LoopState, Held]:
    """The state at a frame's present position, and how it is held. Raises Unknown.

    live: the variables that may still be read. iterators: those on the frame's stack; None for one that gives no
    further element before the program is here again.
    """
    walk = _Walk(recording)
    return walk.state(frame, live, iterators), walk.held


class _Walk:
    """One walk through all that is reachable. What it meets again is told by the number that it got at first."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.held = Held([], [])
        self._nodes: list[Node] = []
        self._storages: dict[int, Storage] = {}
        self._counts: list[int] = []
        self._made: list[int] = []
        self._met: dict[int, int] = {}
        self._alive: list[Any] = []
        self._attributes: dict[int, list[tuple[Any, Any]]] = {}
        for (owner, name), state in recording.attributes.items():
            if state.written:
                self._attributes.setdefault(owner, []).append((name, state))

    def state(self, frame: FrameType, live: Iterable[str], iterators: Iterable[RangeIterator | None]) -> LoopState:
        if self._recording.changed:
            raise Unknown("a container of the program's that the call changes")
        variables = frame.f_locals
        code = frame.f_code
        names = [*sorted(live), *code.co_cellvars, *code.co_freevars]
        # a random number drawn in each iteration is another one in each, and what each shows is shown as often; and a
        # cache counts how often it is asked
        parts: list[Hashable] = [
            len(each) for each in (self._recording.draws, self._recording.display.shown, self._recording.asked)
        ]
        parts += [self._variable(variables, name) for name in names]
        parts += [None if each is None else self._walk(each) for each in iterators]
        parts += [(owner, *self._attributes_of(owner)) for owner in self._attributes if self._is_outside(owner)]
        for storage in self._recording.storages:
            if storage.written:
                parts.append(("written", self._storage(storage)))
        # an array may be met at several places: its contents come last, once
        self._nodes += [storage.version for storage in self._storages.values()]
        self.held.values.extend(self._storages.values())
        return LoopState(tuple(parts), tuple(self._nodes), tuple(self._made), tuple(self._counts))

    def _variable(self, variables: Any, name: str) -> Hashable:
        return self._walk(variables[name]) if name in variables else _UNBOUND

    def _is_outside(self, owner: int) -> bool:
        """Whether an object, by its id, came from outside: the program can reach it in ways that are not looked at."""
        return self._attributes[owner][0][1].owner._slot_ is not None

    def _attributes_of(self, owner: int) -> tuple[Hashable, ...]:
        """Attributes of an object that the recorded call has set, as keys."""
        found = []
        for name, state in self._attributes.get(owner, ()):
            held = frozen_static(MISSING) if state.wrapped is MISSING else self._walk(state.wrapped)
            found.append((frozen_static(name), held))
        return tuple(found)

    def _walk(self, value: Any) -> Hashable:
        kind = type(value)
        if kind in PLAIN or issubclass(kind, (np.generic, type, enum.Enum)):
            return ("plain", frozen_static(value))
        walk = _EXACT.get(_bare(kind)) or next((walk for accepts, walk in _WALKS if issubclass(kind, accepts)), None)
        if walk is None:
            raise Unknown(kind.__name__)
        return walk(self, value)

    def _parts(self, value: Any, parts: Callable[[], Iterable[Any]], *about: Hashable) -> Hashable:
        """An object with parts, which is looked into where it is met first."""
        if id(value) in self._met:
            return ("again", self._met[id(value)])
        self._met[id(value)] = len(self._met)
        self._alive.append(value)  # so that its id stays its own
        found: list[Any] = [type(value), *about]
        found += [self._walk(part) for part in parts()]
        return tuple(found)

    # -- recorded values ----------------------------------------------------------------------------------------------

    def _scalar(self, value: RecordedScalar) -> Hashable:
        self._nodes.append(value.node())
        self.held.values.append(value)
        return ("scalar", type(value._plain_))

    def _array(self, value: RecordedArray) -> Hashable:
        plain, storage = value._plain_, value._storage
        about = self._storage(storage), _chain_form(value._chain), plain is storage.base
        # results may depend on the layout: whether `reshape` gives a view, for instance
        return ("array", plain.shape, str(plain.dtype), plain.strides, plain.flags.writeable, about)

    def _storage(self, storage: Storage) -> Hashable:
        """The memory of an array. That of an input is no other one: it is reached in ways that are not looked at."""
        if storage.number not in self._storages:
            self._storages[storage.number] = storage
            if storage.origin is None:
                self._made.append(storage.number)
        place = list(self._storages).index(storage.number)
        return place if storage.origin is None else (place, storage.number)

    # -- containers and objects ---------------------------------------------------------------------------------------

    def _tuple(self, value: Any) -> Hashable:
        return self._parts(value, lambda: value)

    def _list(self, value: Any) -> Hashable:
        # its identity too: what else holds it is not looked at
        return self._parts(value, lambda: value, id(value), len(value))

    def _dict(self, value: Any) -> Hashable:
        if not all(type(key) in PLAIN for key in value):
            raise Unknown("a dict with objects for keys")
        return self._parts(value, value.values, id(value), tuple(map(frozen_static, value)))

    def _set(self, value: Any) -> Hashable:
        if not all(type(key) in PLAIN for key in value):
            raise Unknown("a set of objects")
        return self._parts(value, tuple, id(value) if type(value) is set else 0, frozenset(map(frozen_static, value)))

    def _slice(self, value: slice) -> Hashable:
        return (slice, *[self._walk(part) for part in (value.start, value.stop, value.step)])

    def _object(self, value: ObjectProxy) -> Hashable:
        if value._slot_ is not None:
            return ("object", value._slot_)
        real = value._plain_
        if id(real) in self._met:
            return ("again", self._met[id(real)])
        self._met[id(real)] = len(self._met)
        number = self._recording.made.get(id(real))
        self._made.append(-1 if number is None else number)
        return ("new object", type(real), id(real) if number is None else 0, self._attributes_of(id(real)))

    def _container(self, value: ContainerProxy) -> Hashable:
        if value._slot_ is None:
            raise Unknown("a container of unknown origin")
        return ("container", value._slot_)

    def _generator(self, value: GeneratorProxy) -> Hashable:
        """A generator: only draws change it, and their number is a part of the state."""
        slot = value._drawn_ if issubclass(type(value), NewGeneratorProxy) else value._slot_
        if slot is None:
            raise Unknown("a generator of unknown origin")
        return ("generator", slot)

    def _stand_in(self, value: Any) -> Hashable:
        return (type(value), frozen_static(value._plain_))

    def _followed(self, value: Followed) -> Hashable:
        bound = tuple([self._walk(part) for part in value._bound])
        function = value._function
        own = () if self._recording.registry.functions.get(function) is not None else self._function(function)
        return ("function", frozen_static(function), bound, own)

    def _method(self, value: Method) -> Hashable:
        return ("method", value._name, self._walk(value._value))

    def _function(self, value: FunctionType) -> Hashable:
        """A function that recorded code has made, with what it sees of the calls around."""
        if getattr(value.__globals__, "recording", None) is not self._recording:
            return ()  # one of the program's: what it sees enters, and cannot be changed while it is recorded
        cells = [held for held in map(contents_of, value.__closure__ or ()) if held is not MISSING]
        defaults = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *vars(value).values()]
        about = frozen_static(value.__code__), len(cells), tuple(value.__kwdefaults__ or ()), tuple(vars(value))
        return self._parts(value, lambda: [*cells, *defaults], *about)

    def _range(self, value: RangeIterator) -> Hashable:
        self._counts.append(value.left)
        self.held.ranges.append(value)
        return ("range", value.step, None if value.coming is None else self._walk(value.coming))


def _bare(kind: type) -> type:
    """`tuple` for a namedtuple as collections makes them."""
    return tuple if issubclass(kind, tuple) and is_bare_namedtuple(kind) else kind


def _chain_form(chain: Any) -> Hashable:
    found: Hashable = form(chain, lambda node: node.index, Node)
    return found


_EXACT: dict[type, Callable[[_Walk, Any], Hashable]] = {
    tuple: _Walk._tuple,
    list: _Walk._list,
    dict: _Walk._dict,
    set: _Walk._set,
    frozenset: _Walk._set,
    slice: _Walk._slice,
}
"""Walks of Python's own types, by exact type: a subclass may do more."""

_WALKS: tuple[tuple[Any, Callable[[_Walk, Any], Hashable]], ...] = (
    (RecordedScalar, _Walk._scalar),
    (RecordedArray, _Walk._array),
    (ObjectProxy, _Walk._object),
    (ContainerProxy, _Walk._container),
    (GeneratorProxy, _Walk._generator),
    ((RuleFunction, TypeStandIn, Builtin, ClassProxy, ObjectType, ModuleProxy), _Walk._stand_in),
    (Followed, _Walk._followed),
    (Method, _Walk._method),
    (FunctionType, _Walk._function),
    (RangeIterator, _Walk._range),
)
