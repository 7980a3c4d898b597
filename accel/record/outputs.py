"""Outputs: what a recorded call returned and left behind, as a plan that a replay can carry out."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from accel.ir.tape import Node, Storage
from accel.ir.template import fill
from accel.ir.views import Chain, Index, Reshape, seen_through
from accel.record.arrays.arrays import CompressedArray, RecordedArray, RecordedScalar
from accel.record.arrays.numbers import TypeStandIn
from accel.record.inputs import MISSING
from accel.record.names.namespaces import SubstitutedGlobals
from accel.record.objects.builtins import Builtin
from accel.record.objects.follow import Followed
from accel.record.objects.functions import RuleFunction
from accel.record.objects.proxy import Proxy
from accel.record.recording import AttributeState, Item, Recording
from accel.record.wrapper import has_wrapper, unwrap
from accel.rules.rule import Unsupported


class Leaf:
    """A part of a result or of a written value that a replay makes or finds."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class FromSlot(Leaf):
    """The very object that an input slot holds; `chain` makes a view of it."""

    slot: int
    chain: Chain = ()


@dataclass(frozen=True, slots=True)
class Made(Leaf):
    """New array number `index`; `chain` makes a view of it."""

    index: int
    chain: Chain = ()


@dataclass(frozen=True, slots=True)
class Number(Leaf):
    """A scalar of the given type. index: among the outputs' numbers."""

    index: int
    kind: type


@dataclass(frozen=True, slots=True)
class Literal(Leaf):
    """A value that the path fixes."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Shared(Leaf):
    """A new list, dict or view that is in several places: one object, made once. template: what makes it."""

    template: Any


@dataclass(slots=True)
class Write:
    """`owner.name = value` or `owner[name] = value`, or a deletion. owner: a slot."""

    owner: int
    name: Any
    value: Any
    is_item: bool


@dataclass(slots=True)
class Outputs:
    """The plan: what to compute, what to change, what to return.

    arrays: nodes of new arrays. numbers: nodes of scalars. changed: (slot, node) of input arrays written in place.
    writes: attribute and item writes, in order. result: template with `Leaf`s. state: what of all that is left where
    the next call reads an input: its slot, and the node.
    """

    arrays: list[Node] = field(default_factory=list)
    numbers: list[Node] = field(default_factory=list)
    changed: list[tuple[int, Node]] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    result: Any = None
    state: list[tuple[int, Node]] = field(default_factory=list)

    def nodes(self, template: Any) -> Iterator[Node]:
        """The nodes of a result or of a written value."""
        if isinstance(template, Made):
            yield self.arrays[template.index]
        elif isinstance(template, Number):
            yield self.numbers[template.index]
        elif isinstance(template, Shared):
            yield from self.nodes(template.template)
        elif not isinstance(template, Leaf):
            for part in template.values() if isinstance(template, dict) else template:
                yield from self.nodes(part)


class Planner:
    """Builds the outputs of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._outputs = Outputs()
        self._made: dict[int, int] = {}
        self._new: dict[int, Shared | None] = {}  # by id of the plain object; None while its parts are looked at
        self._uses: dict[Shared, int] = {}

    def plan(self, result: object) -> Outputs:
        """The outputs, for a call that returned `result` (with wrappers). Raises Unsupported."""
        outputs, recording = self._outputs, self._recording
        outputs.result = self._template(result)
        for state in recording.attributes.values():
            # An object that the call made has no slot: it may not leave the call (see `_proxy`), so nobody sees its
            # attributes.
            if state.written and state.owner._slot_ is not None:
                self._write(state)
        for storage in recording.storages:
            if storage.written and storage.origin is not None:
                outputs.changed.append((storage.origin.args[0], storage.version))
        # Arrays written in place are both: what this call changes, and what the next call will read.
        outputs.state.extend(outputs.changed)
        outputs.result = self._in_one_place(outputs.result)
        for write in outputs.writes:
            write.value = self._in_one_place(write.value)
        return outputs

    def _shared(self, value: object, make: Callable[[], Any]) -> Shared:
        """The one leaf of a new object."""
        if id(value) not in self._new:
            # A mark while its parts are looked at, so that a list that contains itself is noticed instead of followed
            # for ever.
            self._new[id(value)] = None
            self._new[id(value)] = Shared(make())
        leaf = self._new[id(value)]
        if leaf is None:
            raise Unsupported("escape.object", "a new list or dict that contains itself leaves the call")
        self._uses[leaf] = self._uses.get(leaf, 0) + 1
        return leaf

    def _in_one_place(self, template: object) -> Any:
        """The template with the leaves of objects that are in one place only replaced by what makes them."""
        return fill(template, self._unshared, Shared)

    def _unshared(self, leaf: Shared) -> Any:
        made = self._in_one_place(leaf.template)
        if self._uses[leaf] == 1:
            return made
        # The leaf is frozen for everybody else; its identity is what says that two places hold the same object.
        object.__setattr__(leaf, "template", made)
        return leaf

    def _write(self, state: AttributeState) -> None:
        owner = state.owner._slot_
        is_item = isinstance(state.name, Item)
        before = self._slot_before(state, is_item=is_item)
        value = Literal(MISSING) if state.wrapped is MISSING else self._template(state.wrapped)
        if is_item and isinstance(value, FromSlot) and not value.chain and value.slot == before:
            return  # an in-place operator stored the array back; an attribute may be another call's class's alone
        # The attribute was read as well as written: the next call's input is this call's output, which may stay on the
        # device.
        if before is not None:
            self._outputs.state.extend((before, node) for node in self._outputs.nodes(value))
        name = state.name.key if isinstance(state.name, Item) else state.name
        self._outputs.writes.append(Write(owner, name, value, is_item))

    def _slot_before(self, state: AttributeState, *, is_item: bool) -> int | None:
        """The slot by which what is written was read before; None if it was not."""
        find, holder = self._recording.inputs.find, state.owner._plain_
        if type(holder) is CellType:
            return find(("cell", id(holder)))
        slot = find(("item" if is_item else "attr", state.owner._slot_, state.name))
        if slot is None and isinstance(state.name, Item):  # of a module
            slot = find(("global", id(holder), state.name.key))
        return slot

    def _template(self, value: Any) -> Any:
        kind = type(value)
        for accepts, handler in _LEAVES:
            if issubclass(kind, accepts):
                return handler(self, value)
        if kind in (list, tuple, dict) or issubclass(kind, tuple):
            return self._container(value)
        if kind in _LITERALS or issubclass(kind, (np.generic, type, enum.Enum)):
            return Literal(value)
        # A new set is mutable and would have to be made anew in each call; a frozenset of constants may be shared.
        if kind is frozenset and not has_wrapper(value):
            return Literal(value)
        raise Unsupported("escape.object", f"a new {kind.__name__} leaves the recorded call")

    def _container(self, value: Any) -> Any:
        entered = self._recording.kept.entered_tuple(value)
        if entered is not None:
            return FromSlot(entered.slot)
        return self._shared(value, lambda: self._parts(value))

    def _parts(self, value: Any) -> Any:
        if type(value) is dict:
            # A plan would hold the object itself as a key, and so keep alive and hand out one that belongs to the
            # recorded call.
            if any(issubclass(type(key), Proxy) and not isinstance(unwrap(key), type) for key in value):
                raise Unsupported("escape.object", "a dict with objects for keys leaves the recorded call")
            return {unwrap(key): self._template(part) for key, part in value.items()}
        parts = [self._template(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)

    def _array(self, value: RecordedArray) -> Leaf:
        storage: Storage = value._storage
        if storage.base is value._plain_:
            return self._of_storage(storage, ())
        # A view that shows all of its base is another object than the base nevertheless: `y = x[...]`, `x.view()`.
        chain = value._chain or (Index((Ellipsis,)),)
        return self._shared(value._plain_, lambda: self._of_storage(storage, chain))

    def _of_storage(self, storage: Storage, chain: Chain) -> Leaf:
        if storage.origin is not None:
            return FromSlot(storage.origin.args[0], chain)
        if not _is_view(storage.base, chain):
            raise Unsupported("escape.object", "a view leaves the call that would be a copy of an array in C order")
        # Two views of one new array leave the call as two views of one array.
        index = self._made.get(id(storage))
        if index is None:
            index = self._made[id(storage)] = len(self._outputs.arrays)
            self._outputs.arrays.append(storage.version)
        return Made(index, chain)

    def _scalar(self, value: RecordedScalar) -> Leaf:
        node = value.node()
        forced = value._recording_.writer.forced(node)
        # The path fixes its value: there is nothing to fetch from the device. The type says 1 from 1.0 and True.
        if forced is not MISSING and type(forced) is type(value._plain_):
            return Literal(value._plain_)
        self._outputs.numbers.append(node)
        return Number(len(self._outputs.numbers) - 1, type(value._plain_))

    def _compressed(self, value: CompressedArray) -> Leaf:
        raise Unsupported("shape.dynamic", "a masked selection leaves the recorded call")

    def _proxy(self, value: Any) -> Leaf:
        if value._slot_ is not None:
            return FromSlot(value._slot_)
        if isinstance(value._plain_, (type, ModuleType)):
            return Literal(value._plain_)
        raise Unsupported("escape.object", f"a new {type(value._plain_).__name__} leaves the recorded call")

    def _followed(self, value: Followed) -> Leaf:
        if value._bound or isinstance(value._function.__globals__, SubstitutedGlobals):
            raise Unsupported("escape.object", "a method or nested function leaves the recorded call")
        return Literal(value._plain_)


def _is_view(array: np.ndarray[Any, Any], chain: Chain) -> bool:
    """Whether a chain gives a view of a new array, which a replay makes in C order, as it did of NumPy's."""
    if not any(isinstance(step, Reshape) for step in chain):
        return True
    base = np.empty(array.shape, array.dtype)
    view = seen_through(base, chain)
    return view.size == 0 or np.may_share_memory(base, view)


def _refuse_function(planner: Planner, value: FunctionType) -> Leaf:
    raise Unsupported("escape.object", f"the function {value.__name__}, made while recording, leaves the call")


_LITERALS = frozenset({type(None), bool, int, float, complex, str, bytes, range, slice, np.dtype, type(Ellipsis)})
_LEAVES: tuple[tuple[Any, Callable[[Planner, Any], Leaf]], ...] = (
    (RecordedArray, Planner._array),
    (RecordedScalar, Planner._scalar),
    (CompressedArray, Planner._compressed),
    (Proxy, Planner._proxy),
    (Followed, Planner._followed),
    ((RuleFunction, TypeStandIn, Builtin), lambda planner, value: Literal(unwrap(value))),
    (FunctionType, _refuse_function),
)
