"""Snapshots: what NumPy's own call changes, and the replay does not."""

from __future__ import annotations

import operator
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from types import CellType
from typing import Any

import numpy as np

from accel.compiler.lower.written import Written
from accel.dispatch.replay import StagedOutputs
from accel.ir.vast import is_vast
from accel.platform.ledger import Difference
from accel.record import Trace
from accel.record.objects.kinds import is_dict_class
from accel.record.objects.names.variables import CONTENTS, contents_of
from accel.record.objects.own_attributes import own_attribute, own_names
from accel.record.state.changes import Write
from accel.record.state.inputs import MISSING, Inputs

SEQUENCES: tuple[type, ...] = (list, deque)
CONTAINERS: tuple[type, ...] = (list, deque, set, dict, defaultdict, Counter, OrderedDict)


class Snapshot:
    """A call's inputs as they are before NumPy runs. values: of the slots, with copies of all arrays.

    By these, `differences` finds effects of NumPy's call that the replay does not have. Explaining a difference needs
    them too, because NumPy's call may change its arguments. parts: a copy of the contents of the container or object in
    a slot; see `copy_of`.

    If the replay changes a vast array in part, those views alone are copied, until `complete`. If it does not change
    the array, there is no copy. That NumPy changes nothing else of vast arrays is taken on trust, unless `whole` asks
    for copies of all.
    """

    def __init__(self, staged: StagedOutputs, *, whole: bool = False) -> None:
        trace, values = staged.trace, staged.values
        self._trace = trace
        self.values = list(values)
        changed = {slot: new for (slot, _), new in zip(trace.outputs.changed, staged.changed, strict=True)}
        self._views = {
            slot: new.now(values[slot])
            for slot, new in changed.items()
            if isinstance(new, Written) and is_vast(values[slot]) and not whole
        }
        for slot in trace.array_slots:
            # of changed ones too: explaining a difference computes from the values before the call
            if slot not in self._views and (whole or slot in changed or not is_vast(values[slot])):
                self.values[slot] = values[slot].copy()
        unchanged = [slot for slot in trace.array_slots if slot not in changed]
        self._kept = [slot for slot in unchanged if whole or not is_vast(values[slot])]
        attributes = [change for change in trace.outputs.writes if isinstance(change, Write) and not change.is_item]
        self._written = {(id(values[write.owner]), write.name) for write in attributes}
        # a container that the replay changes is compared as a whole (accel.dispatch.comparing.changes)
        others = [change for change in trace.outputs.writes if not isinstance(change, Write) or change.is_item]
        self._compared = {id(values[change.owner]) for change in others}
        objects = {slot for slot in trace.objects if not _is_module_namespace(values[slot])}
        self.parts = {slot: copy_of(values[slot]) for slot in {*objects, *_containers(values)}}

    def complete(self) -> None:
        """Restore all arrays as they were before the call."""
        for slot, before in self._views.items():
            self.values[slot] = before.of(self.values[slot])
        self._views.clear()

    def differences(self, values: Sequence[Any]) -> Iterator[Difference]:
        """Yield changes by the call that the replay does not make: array contents, attributes, and items of
        containers."""
        what = "was changed in place by NumPy, not by the replay"
        for slot in self._kept:
            if values[slot].tobytes() != self.values[slot].tobytes():
                yield Difference(self._trace.inputs.name(slot), "", what, np.inf)
        for slot, before in self.parts.items():
            if id(values[slot]) not in self._compared and not _is_unchanged(before, values[slot]):
                yield from self._differences(slot, parts_of(before), parts_of(values[slot]))

    def _differences(self, slot: int, before: Mapping[Any, Any], now: Mapping[Any, Any]) -> Iterator[Difference]:
        owner = self.values[slot]
        # as text, because keys of one dict may have types that do not compare
        for key in sorted(before.keys() | now.keys(), key=str):
            if (id(owner), key) not in self._written and not is_same(before.get(key, MISSING), now.get(key, MISSING)):
                name = part_name(self._trace, slot, key, is_item=type(owner) in CONTAINERS)
                yield Difference(name, "", "was set by NumPy, not by the replay", np.inf)


def _containers(values: Sequence[Any]) -> list[int]:
    """Slots of containers, but for the call's own arguments (slots 0 and 1) and namespaces.

    The namespace of an object is compared with the object. That of a module is not compared: it is large, and other
    threads may change it.
    """
    namespaces = {id(getattr(value, "__dict__", None)) for value in values}
    return [
        slot
        for slot, value in enumerate(values)
        if slot >= Inputs.ROOTS
        if type(value) in CONTAINERS or is_dict_class(type(value))  # type: ignore[arg-type]
        if type(value) is not dict or (id(value) not in namespaces and not _is_module_namespace(value))
    ]


def _is_module_namespace(value: object) -> bool:
    return type(value) is dict and "__builtins__" in value


def part_of(owner: Any, name: Any) -> Any:
    """Return the value of an attribute or a cell; MISSING if there is none."""
    return contents_of(owner) if type(owner) is CellType else getattr(owner, name, MISSING)


def copy_of(value: Any) -> Any:
    """Return the contents of a container or an object: a list of elements, a set, or a dict of items or attributes."""
    if type(value) in SEQUENCES:
        return list(value)
    return set(value) if type(value) is set else dict(parts_of(value))


def _is_unchanged(before: Any, now: Any) -> bool:
    """Whether a sequence holds the very elements that it held: quick, as it may be long."""
    return type(now) in SEQUENCES and len(before) == len(now) and all(map(operator.is_, before, now))


def parts_of(value: Any) -> Mapping[Any, Any]:
    """The items of a container, or the attributes of an object."""
    if type(value) in SEQUENCES:
        return dict(enumerate(value))
    if type(value) is set:
        return dict.fromkeys(value)
    return value if isinstance(value, dict) else {name: own_attribute(value, name) for name in own_names(value)}


def is_same(left: object, right: object) -> bool:
    """Whether both are the same object, or equal strings or numbers: the identity of those does not matter."""
    if left is right:
        return True
    return type(left) is type(right) and isinstance(left, (str, int, float, complex, np.generic)) and equal(left, right)


def part_name(trace: Trace, slot: int, key: object, *, is_item: bool) -> str:
    """An item or attribute of a slot's object, as the user would write it."""
    if key == CONTENTS and not is_item:
        return trace.inputs.name(slot)
    return trace.inputs.name(slot) + (f"[{key!r}]" if is_item else f".{key}")


def equal(left: object, right: object) -> bool:
    """Whether two scalars are equal, or both NaN."""
    return bool(left == right) or (left != left and right != right)
