"""Snapshots: what NumPy's own call changes, and the replay does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import CellType
from typing import Any

import numpy as np

from accel.record import Trace
from accel.record.inputs import MISSING, Inputs
from accel.record.names.variables import CONTENTS, contents_of
from accel.reports.ledger import Difference


class Snapshot:
    """A call's inputs as they are before NumPy runs. values: of the slots, with copies of all arrays.

    By these, `differences` finds effects of NumPy's call that the replay does not have. Explaining a difference needs
    them too, because NumPy's call may change its arguments.
    """

    def __init__(self, trace: Trace, values: Sequence[Any]) -> None:
        self._trace = trace
        self.values = list(values)
        for slot in trace.array_slots:
            # of all arrays, changed ones too: explaining a difference computes from the values before the call
            self.values[slot] = values[slot].copy()
        changed = {slot for slot, _ in trace.outputs.changed}
        self._kept = [slot for slot in trace.array_slots if slot not in changed]
        self._written = {(id(values[write.owner]), write.name) for write in trace.outputs.writes}
        objects = {slot for slot in trace.objects if not _is_module_namespace(values[slot])}
        self._parts = {slot: dict(parts_of(values[slot])) for slot in {*objects, *_containers(values)}}

    def differences(self, values: Sequence[Any]) -> Iterator[Difference]:
        """What the call changed and the replay does not: contents of arrays, attributes, and items of containers."""
        what = "was changed in place by NumPy, not by the replay"
        for slot in self._kept:
            if values[slot].tobytes() != self.values[slot].tobytes():
                yield Difference(self._trace.inputs.name(slot), "", what, np.inf)
        for slot, before in self._parts.items():
            now = parts_of(values[slot])
            # as text, because keys of one dict may have types that do not compare
            for key in sorted(before.keys() | now.keys(), key=str):
                if (id(values[slot]), key) not in self._written and not _is_same(
                    before.get(key, MISSING), now.get(key, MISSING)
                ):
                    name = part_name(self._trace, slot, key, is_item=type(values[slot]) in (dict, list))
                    yield Difference(name, "", "was set by NumPy, not by the replay", np.inf)


def _containers(values: Sequence[Any]) -> list[int]:
    """Slots of lists and dicts, but for the call's own arguments (slots 0 and 1) and namespaces.

    The namespace of an object is compared with the object. That of a module is not compared: it is large, and other
    threads may change it.
    """
    namespaces = {id(getattr(value, "__dict__", None)) for value in values}
    return [
        slot
        for slot, value in enumerate(values)
        if slot >= Inputs.ROOTS
        if type(value) is list
        or (type(value) is dict and id(value) not in namespaces and not _is_module_namespace(value))
    ]


def _is_module_namespace(value: object) -> bool:
    return type(value) is dict and "__builtins__" in value


def part_of(owner: Any, name: Any, *, is_item: bool) -> Any:
    """What an item, an attribute or a cell holds; MISSING where there is none."""
    if is_item:
        return parts_of(owner).get(name, MISSING)
    return contents_of(owner) if type(owner) is CellType else getattr(owner, name, MISSING)


def parts_of(value: object) -> dict[Any, Any]:
    """The items of a container, or the attributes of an object."""
    if type(value) is list:
        return dict(enumerate(value))
    return value if type(value) is dict else getattr(value, "__dict__", {})


def _is_same(left: object, right: object) -> bool:
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
