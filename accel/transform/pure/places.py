"""Leaves of a pure function's inputs, named by where they live in the program: `x`, `self.u`, `params.k`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accel.compiler.merge import ABSENT
from accel.record.state.inputs import Inputs, Slot, is_same_code
from accel.transform.pure.recorded import RecordedFunction, refused

LIBRARIES = frozenset({"numpy", "scipy", "math", "builtins", "cmath"})
"""Modules whose numbers are constants."""

KINDS = "biufc"


@dataclass(slots=True)
class InputLeaf:
    """One input: an array, or a number as a 0-dimensional array. slot: the merged slot; None for a leaf that is only
    written.

    value: in the example.
    """

    name: str
    slot: int | None
    value: np.ndarray[Any, Any]
    of_argument: bool = False


@dataclass(slots=True)
class Places:
    """The leaves by name. names: of all slots, leaves or not."""

    leaves: dict[str, InputLeaf] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    def leaf_of(self, slot: int) -> InputLeaf | None:
        name = self.names.get(slot)
        leaf = None if name is None else self.leaves.get(name)
        return leaf if leaf is not None and leaf.slot == slot else None


def places_of(recorded: RecordedFunction) -> Places:
    """Return the leaves of a recorded function: all arrays and numbers that it reads and that do not decide its
    path. Raises Refused for a number that some paths take as a number, and others as a constant."""
    trace, values = recorded.trace, recorded.values
    places = Places()
    arguments = _argument_slots(trace.inputs.slots)
    wanted = {*trace.array_slots, *trace.scalar_slots} - set(trace.pinned)
    for position, slot in enumerate(trace.inputs.slots):
        index = position + Inputs.ROOTS
        name = places.names[index] = _unused(slot.name, places.names.values())
        value = values[index]
        if index in wanted and value is not ABSENT and _is_value(value) and not _is_fixed(slot):
            places.leaves[name] = InputLeaf(name, index, np.array(value), index in arguments)
    _check_constants(recorded, places)
    return places


def _check_constants(recorded: RecordedFunction, places: Places) -> None:
    slots = dict(enumerate(recorded.trace.inputs.slots, Inputs.ROOTS))
    names = {leaf.slot: name for name, leaf in places.leaves.items()}
    constants = [slot for index, slot in slots.items() if index not in names]
    for index in slots.keys() & names.keys():
        slot = slots[index]
        if any(each.name == slot.name and is_same_code(each.fetch, slot.fetch) for each in constants):
            raise refused(recorded.name, "pure.host", f"{names[index]}, a constant of some paths")


def _is_value(value: object) -> bool:
    kind = type(value)
    if kind is np.ndarray or isinstance(value, np.generic):
        return value.dtype.kind in KINDS  # type: ignore[attr-defined]
    return kind in (int, float, complex) and (kind is not int or -(2**63) <= value < 2**63)  # type: ignore[operator]


def _is_fixed(slot: Any) -> bool:
    return slot.name.partition(".")[0] in LIBRARIES or slot.fetch.text.startswith("len(")


def _argument_slots(slots: Iterable[Slot | Any]) -> set[int]:
    return {
        index
        for index, slot in enumerate(slots, Inputs.ROOTS)
        if slot.fetch.parent is not None and slot.fetch.parent < 2
    }


def _unused(name: str, taken: Iterable[str]) -> str:
    """Return the name, with a number appended if it is taken."""
    known = set(taken)
    found, number = name, 2
    while found in known:
        found, number = f"{name}#{number}", number + 1
    return found


def chosen(recorded: RecordedFunction, places: Places, wrt: Any) -> list[str]:
    """Return the names of the leaves that `wrt` selects: a name, a position of an argument, or several. Raises
    KeyError."""
    if wrt is None:
        return list(places.leaves)
    wanted = [wrt] if isinstance(wrt, (str, int)) else list(wrt)
    found: list[str] = []
    for each in wanted:
        found += [name for name in under(recorded, places, each) if name not in found]
    return found


def under(recorded: RecordedFunction, places: Places, wanted: str | int) -> list[str]:
    """Return the leaves at a place or below it. Raises KeyError if there are none."""
    name = wanted if isinstance(wanted, str) else _parameter(recorded, places, wanted)
    found = [each for each in places.leaves if each == name or each.startswith((f"{name}.", f"{name}["))]
    if not found:
        raise KeyError(f"{recorded.name} reads no array or number {wanted!r}; it reads {', '.join(places.leaves)}")
    return found


def _parameter(recorded: RecordedFunction, places: Places, position: int) -> str:
    slots = recorded.trace.inputs.slots
    key = position + recorded.skipped
    for index, slot in enumerate(slots, Inputs.ROOTS):
        if slot.fetch.parent == 0 and slot.fetch.constants == (key,):
            return places.names[index]
    raise KeyError(f"{recorded.name} does not read its argument {position}")


def check_exists(recorded: RecordedFunction, names: Sequence[str]) -> None:
    if not names:
        raise refused(recorded.name, "pure.inputs", "it reads no array and no number that may change")
