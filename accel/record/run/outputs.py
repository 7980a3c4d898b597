"""Outputs: what a recorded call returned and left behind, as a plan that a replay can carry out."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from accel.ir.tape import Node, Storage
from accel.ir.template import fill
from accel.ir.views import At, Chain, Index, Placed, Reshape, seen_through
from accel.platform import config
from accel.record.objects.builtins import Builtin
from accel.record.objects.containers.container import is_simple_key
from accel.record.objects.containers.tuples import NamedTupleProxy
from accel.record.objects.follow import Followed
from accel.record.objects.functions import RuleFunction
from accel.record.objects.names.namespaces import SubstitutedGlobals
from accel.record.objects.objects import ObjectProxy
from accel.record.objects.own_attributes import own_attribute, own_names
from accel.record.objects.proxy import Proxy
from accel.record.state.changes import Asked, AttributeState, Change, Emptied, Ends, Item, Write
from accel.record.state.inputs import MISSING
from accel.record.state.leaves import (
    COMPOSITE,
    FixedValue,
    FromSlot,
    Leaf,
    NewArray,
    NewContainer,
    NewObject,
    NewSet,
    Number,
    SharedLeaf,
    all_leaves,
)
from accel.record.state.recording import Recording
from accel.record.state.shown import Effect, Seen
from accel.record.state.storages import is_in_c_order
from accel.record.state.wrapper import DICTS, LISTS, has_wrapper, unwrap
from accel.record.values.arrays import CompressedArray, RecordedArray, RecordedScalar
from accel.record.values.numbers import TypeStandIn
from accel.record.values.settling import settle
from accel.rules.rule import Unsupported


@dataclass(slots=True)
class Outputs:
    """The plan: what to compute, what to change, what to return.

    arrays: nodes of new arrays. numbers: nodes of scalars. changed: (slot, node) of input arrays written in place.
    writes: what is done to objects and containers, in order. result: template with `Leaf`s. state: what of all that is
    left where the next call reads an input: its slot, and the node. shown: what is shown once all that is done, in
    order. asked: the results that it takes from caches.
    """

    arrays: list[Node] = field(default_factory=list)
    numbers: list[Node] = field(default_factory=list)
    changed: list[tuple[int, Node]] = field(default_factory=list)
    writes: list[Change] = field(default_factory=list)
    result: Any = None
    state: list[tuple[int, Node]] = field(default_factory=list)
    shown: list[Effect] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    def nodes(self, template: Any) -> Iterator[Node]:
        """The nodes of a result or of a written value."""
        for leaf in all_leaves(template):
            if isinstance(leaf, NewArray):
                yield self.arrays[leaf.index]
            elif isinstance(leaf, Number):
                yield self.numbers[leaf.index]


MOST_NESTED = 50
"""Maximum nesting of a result: replays build it by recursion, and may have little of Python's stack left. Guess."""


class Planner:
    """Builds the outputs of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._outputs = Outputs()
        self._made: dict[int, int] = {}
        self._new: dict[int, SharedLeaf] = {}  # by id of the plain object
        self._uses: dict[SharedLeaf, int] = {}
        self._unfinished: set[SharedLeaf] = set()
        self._depth = 0
        self._circular = False  # something new contains itself

    def plan(self, result: object) -> Outputs:
        """The outputs, for a call that returned `result` (with wrappers). Raises Unsupported."""
        outputs, recording = self._outputs, self._recording
        outputs.result = self._template(result)
        changes = [container.change(self._template) for container in recording.changed.values()]
        outputs.writes += [change for change in changes if isinstance(change, Emptied)]
        for state in recording.attributes.values():
            # An object that the call made has no slot: what it holds is known where it leaves the call (see `_object`).
            if state.written and state.owner._slot_ is not None:
                self._write(state)
        # What single items get is told by their former indices.
        for change in changes:
            if not (change is None or isinstance(change, Emptied)):
                outputs.writes.append(change)
                self._note_read_next(change)
        for storage in recording.storages:
            if storage.written and storage.origin is not None:
                outputs.changed.append((storage.origin.args[0], storage.version))
        # Arrays written in place are both: what this call changes, and what the next call will read.
        outputs.state.extend(outputs.changed)
        outputs.result = self._in_one_place(outputs.result)
        for write in outputs.writes:
            write.replace_values(self._in_one_place)
        outputs.shown = [effect.with_leaves(self._seen) for effect in recording.display.shown]
        outputs.asked = list(recording.asked)
        return outputs

    def _seen(self, seen: Seen) -> Leaf:
        """The leaf of a value that was shown: its node is what it was then."""
        if seen.kind is np.ndarray:
            self._outputs.arrays.append(seen.node)
            return NewArray(len(self._outputs.arrays) - 1)
        self._outputs.numbers.append(seen.node)
        return Number(len(self._outputs.numbers) - 1, seen.kind)

    def _shared(self, value: object, make: Callable[[], Any]) -> SharedLeaf:
        """The one leaf of a new object."""
        leaf = self._new.get(id(value))
        if leaf is None:
            # It is there while its parts are looked at: they may contain it.
            leaf = self._new[id(value)] = SharedLeaf(None)
            self._unfinished.add(leaf)
            _set_template(leaf, make())
            self._unfinished.discard(leaf)
        self._circular |= leaf in self._unfinished
        self._uses[leaf] = self._uses.get(leaf, 0) + 1
        return leaf

    def _in_one_place(self, template: object) -> Any:
        """The template with the leaves of objects that are in one place only replaced by what makes them."""
        # What contains itself is made in two steps, for which each part has to be a leaf.
        return template if self._circular else fill(template, self._unshared, (SharedLeaf, *COMPOSITE))

    def _unshared(self, leaf: SharedLeaf | NewObject | NewContainer) -> Any:
        if not isinstance(leaf, SharedLeaf):
            return leaf.with_parts(self._in_one_place(leaf.parts))
        made = self._in_one_place(leaf.template)
        if self._uses[leaf] == 1:
            return made
        _set_template(leaf, made)
        return leaf

    def _write(self, state: AttributeState) -> None:
        owner = state.owner._slot_
        is_item = isinstance(state.name, Item)
        before = self._slot_before(state, is_item=is_item)
        value = FixedValue(MISSING) if state.wrapped is MISSING else self._template(state.wrapped)
        if is_item and isinstance(value, FromSlot) and not value.chain and value.slot == before:
            return  # an in-place operator stored the array back; an attribute may be another call's class's alone
        # The attribute was read as well as written: the next call's input is this call's output, which may stay on the
        # device.
        if before is not None:
            self._outputs.state.extend(self._carried(before, value))
        name: Any = state.name
        if isinstance(name, Item):
            node = state.owner.computed(name.key)
            name = name.key if node is None else self._number(node, type(name.key))
        self._outputs.writes.append(Write(owner, name, value, is_item, state.is_anew))

    def _note_read_next(self, change: Change) -> None:
        """Note new elements at the places of elements that this call has read: the next call reads them."""
        if isinstance(change, Ends):
            for index, value in change.read_next():
                before = self._recording.inputs.find(("item", change.owner, Item(index)))
                if before is not None:
                    self._outputs.state.extend(self._carried(before, value))

    def _carried(self, slot: int, template: Any) -> Iterator[tuple[int, Node]]:
        """Slots and nodes that the next call reads of a value stored where this call read `slot`."""
        inner = template.template if isinstance(template, SharedLeaf) else template
        if not isinstance(inner, NewObject):
            yield from ((slot, node) for node in self._outputs.nodes(inner))
            return
        for name, part in inner.parts.items():
            read = self._recording.inputs.find(("attr", slot, name))
            if read is not None:
                yield from self._carried(read, part)

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
        if self._depth >= MOST_NESTED:
            raise Unsupported("escape.object", f"what leaves the call is nested more than {MOST_NESTED} levels deep")
        self._depth += 1
        try:
            return self._template_of(value)
        finally:
            self._depth -= 1

    def _template_of(self, value: Any) -> Any:
        kind = type(value)
        for accepts, handler in _LEAVES:
            if issubclass(kind, accepts):
                return handler(self, value)
        if kind in (*LISTS, tuple, *DICTS) or issubclass(kind, tuple):
            return self._container(value)
        if kind in _LITERALS or issubclass(kind, (np.generic, np.dtype, type, enum.Enum)):
            return FixedValue(value)
        # A frozenset of constants may be one for all calls; a set is made anew in each.
        if kind is frozenset and not has_wrapper(value):
            return FixedValue(value)
        if kind is set and all(is_simple_key(unwrap(member)) for member in value):
            return self._shared(value, lambda: NewSet(unwrap(value)))
        raise Unsupported("escape.object", f"a new {kind.__name__} leaves the recorded call")

    def _container(self, value: Any) -> Any:
        entered = self._recording.kept.entered_tuple(value)
        if entered is not None:
            return FromSlot(entered.slot)
        return self._shared(value, lambda: self._parts(value))

    def _parts(self, value: Any) -> Any:
        kind, parts = type(value), self._own_parts(value)
        if kind in (list, dict) or issubclass(kind, tuple):
            return parts
        about = value.maxlen if kind is deque else getattr(value, "default_factory", None)
        return NewContainer(kind, self._template(about), parts)

    def _own_parts(self, value: Any) -> Any:
        if type(value) in DICTS:
            # A plan would hold the object itself as a key, and so keep alive and hand out one that belongs to the
            # recorded call.
            if any(issubclass(type(key), Proxy) and not isinstance(unwrap(key), type) for key in value):
                raise Unsupported("escape.object", "a dict with objects for keys leaves the recorded call")
            return {unwrap(key): self._template(part) for key, part in value.items()}
        parts = [self._template(part) for part in value]
        if not issubclass(type(value), tuple):
            return parts
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)

    def _array(self, value: RecordedArray) -> Leaf:
        storage: Storage = value._storage
        if storage.base is value._plain_:
            return self._of_storage(storage, ())
        # A view that shows all of its base is another object than the base nevertheless: `y = x[...]`, `x.view()`.
        chain = value._chain or (Index((Ellipsis,)),)
        return self._shared(value._plain_, lambda: self._of_storage(storage, chain))

    def _placed(self, chain: Chain) -> Chain:
        """The chain of a view that leaves the call, its positions numbers that each run computes."""
        return tuple(
            [
                Placed(step.extent, fill(step.starts, self._position, Node)) if isinstance(step, At) else step
                for step in chain
            ]
        )

    def _position(self, node: Node) -> Any:
        forced = self._recording.writer.forced(node)
        return self._number(node, node.scalar or np.int64) if forced is MISSING else forced

    def _number(self, node: Node, kind: type) -> Number:
        self._outputs.numbers.append(node)
        return Number(len(self._outputs.numbers) - 1, kind)

    def _of_storage(self, storage: Storage, chain: Chain) -> Leaf:
        if storage.origin is not None:
            return FromSlot(storage.origin.args[0], self._placed(chain))
        if not _is_view(storage.base, chain):
            raise Unsupported("escape.object", "a view leaves the call that would be a copy of an array in C order")
        # Two views of one new array leave the call as two views of one array.
        index = self._made.get(id(storage))
        if index is None:
            if config.current().exact and not is_in_c_order(storage.base):
                raise Unsupported("compile.exact", "a new array whose memory is not in C order leaves the call")
            index = self._made[id(storage)] = len(self._outputs.arrays)
            self._outputs.arrays.append(storage.version)
        return NewArray(index, self._placed(chain))

    def _scalar(self, value: RecordedScalar) -> Leaf:
        node = value.node()
        forced = value._recording_.writer.forced(node)
        # The path fixes its value: there is nothing to fetch from the device. The type says 1 from 1.0 and True.
        if forced is not MISSING and type(forced) is type(value._plain_):
            return FixedValue(value._plain_)
        return self._number(node, type(value._plain_))

    def _compressed(self, value: CompressedArray) -> Leaf:
        settle(value)
        return self._template_of(value)  # type: ignore[no-any-return]  # it is an array by now

    def _proxy(self, value: Any) -> Leaf:
        if value._slot_ is not None:
            return FromSlot(value._slot_)
        if isinstance(value._plain_, (type, ModuleType)):
            return FixedValue(value._plain_)
        if not issubclass(type(value), ObjectProxy):
            raise Unsupported("escape.object", f"a new {type(value._plain_).__name__} leaves the recorded call")
        if issubclass(type(value), NamedTupleProxy):
            parts = value._parts_
            return self._shared(value._plain_, lambda: type(value._plain_)(*map(self._template, parts)))
        return self._shared(value._plain_, lambda: self._object(value._plain_))

    def _object(self, value: object) -> NewObject:
        attributes = {}
        for name in own_names(value):
            state = self._recording.attributes.get((id(value), name))
            if state is None or state.held is not own_attribute(value, name):
                raise Unsupported("escape.object", f".{name} of a new {type(value).__name__} was set out of sight")
            attributes[name] = self._template(state.wrapped)
        return NewObject(type(value), attributes)

    def _followed(self, value: Followed) -> Leaf:
        if value._bound or isinstance(value._function.__globals__, SubstitutedGlobals):
            raise Unsupported("escape.object", "a method or nested function leaves the recorded call")
        return FixedValue(value._plain_)


def _set_template(leaf: SharedLeaf, template: Any) -> None:
    """The leaf is frozen for everybody else; its identity is what says that two places hold the same object."""
    object.__setattr__(leaf, "template", template)


def _is_view(array: np.ndarray[Any, Any], chain: Chain) -> bool:
    """Whether a chain gives a view of a new array, which a replay makes in C order, as it did of NumPy's."""
    if not any(isinstance(step, Reshape) for step in chain):
        return True
    base = np.empty(array.shape, array.dtype)
    view = seen_through(base, chain)
    return view.size == 0 or np.may_share_memory(base, view)


def _refuse_function(planner: Planner, value: FunctionType) -> Leaf:
    raise Unsupported("escape.object", f"the function {value.__name__}, made while recording, leaves the call")


_LITERALS = frozenset({type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis)})
_LEAVES: tuple[tuple[Any, Callable[[Planner, Any], Leaf]], ...] = (
    (RecordedArray, Planner._array),
    (RecordedScalar, Planner._scalar),
    (CompressedArray, Planner._compressed),
    (Proxy, Planner._proxy),
    (Followed, Planner._followed),
    ((RuleFunction, TypeStandIn, Builtin), lambda planner, value: FixedValue(unwrap(value))),
    (FunctionType, _refuse_function),
)
