"""Inventories: the names and addresses of values that recorded calls read and change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accel.record import Trace
from accel.record.state.changes import Write
from accel.record.state.leaves import FixedValue, FromSlot, Number
from accel.transform.ensembles.addresses import Address, Hop, address_of
from accel.transform.pure import results
from accel.transform.pure.places import Places
from accel.transform.pure.recorded import RecordedFunction, refused
from accel.transform.pure.results import Returned, Way


@dataclass(slots=True)
class Inventory:
    """Values that the calls on some paths read and change.

    addresses: of leaves and changed values, if the call's arguments lead to them. kinds: a number's type, or
    `numpy.ndarray`. changed: all names that calls change. in_place: arrays that they write to. rebound: names that they
    assign anew. together: groups of names that hold one array after a call.
    """

    addresses: dict[str, Address] = field(default_factory=dict)
    kinds: dict[str, type] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    in_place: set[str] = field(default_factory=set)
    rebound: set[str] = field(default_factory=set)
    together: list[list[str]] = field(default_factory=list)

    def add(self, other: Inventory, name: str) -> None:
        """Merge another inventory into this one. name: of the function. Raises Refused if the two contradict a pure
        form."""
        for each, address in other.addresses.items():
            if self.addresses.setdefault(each, address) != address:
                raise refused(name, "ensemble.place", f"two places are called {each}")
        self.kinds = {**other.kinds, **self.kinds}
        self.changed = list(dict.fromkeys([*self.changed, *other.changed]))
        self.in_place |= other.in_place
        self.rebound |= other.rebound
        self.together += other.together
        for names in self.together:
            if not self.in_place.isdisjoint(names):
                raise refused(name, "pure.alias", " and ".join(names))


def inventory_of(
    recorded: RecordedFunction, places: Places, ways: Sequence[Way], returned: Sequence[Returned]
) -> Inventory:
    """Return the inventory of a recorded function. Raises Refused for a change of an object that no argument holds."""
    found = Inventory()
    slots = recorded.trace.inputs.slots
    for name, leaf in places.leaves.items():
        if leaf.slot is not None and "#" not in name:
            _note(found, name, address_of(slots, leaf.slot), type(recorded.values[leaf.slot]))
    for way, each in zip(ways, returned, strict=True):
        found.in_place |= {places.names[slot] for slot in each.changed}
        found.rebound |= {name for name, part in each.state.items() if not _is_itself(name, part, way, places)}
        places_of_written = {
            each: address
            for change, at in written(way.trace)
            for each, address, _ in below(results.name_of(change, way, recorded, places), at, change.value)
        }
        for name, part in each.state.items():
            _note(found, name, places_of_written.get(name), _kind_of(part, way, recorded))
            found.changed.append(name)
    found.changed = list(dict.fromkeys([*found.changed, *found.in_place]))
    for name in found.changed:
        if name not in found.addresses:
            raise refused(recorded.name, "ensemble.place", name)
    found.together = list(results.shared_arrays(places, ways, returned))
    return found


def _note(inventory: Inventory, name: str, address: Address | None, kind: type) -> None:
    if address is not None:
        inventory.addresses.setdefault(name, address)
        inventory.kinds.setdefault(name, kind)


def _is_itself(name: str, part: Any, way: Way, places: Places) -> bool:
    """Return whether a path stores the object that is there already, as after `self.u += 1`."""
    return isinstance(part, FromSlot) and not part.chain and places.names[way.slots[part.slot]] == name


def _kind_of(part: Any, way: Way, recorded: RecordedFunction) -> type:
    if isinstance(part, Number):
        return part.kind
    if isinstance(part, FixedValue):
        return type(part.value)
    if isinstance(part, FromSlot) and not part.chain:
        return type(recorded.values[way.slots[part.slot]])
    return np.ndarray


def written(trace: Trace) -> Iterator[tuple[Write, Address]]:
    """Yield the writes of one recorded call to attributes and items, each with its address."""
    for change in trace.outputs.writes:
        owner = address_of(trace.inputs.slots, change.owner) if isinstance(change, Write) else None
        if owner is not None and isinstance(change, Write):
            yield change, (*owner, Hop(change.is_item, change.name))


def stored(trace: Trace) -> Iterator[Address]:
    """Yield the addresses at which one recorded call has stored arrays or numbers, or written to arrays."""
    for slot, _ in trace.outputs.changed:
        address = address_of(trace.inputs.slots, slot)
        if address is not None:
            yield address
    for change, at in written(trace):
        yield from (each for _, each, _ in below("", at, change.value))


def below(name: str, address: Address, template: Any) -> Iterator[tuple[str, Address, Any]]:
    """Yield the parts of a stored value, each with its name, its address and the template that builds it."""
    for each, steps, part in results.below(name, template):
        yield each, (*address, *(Hop(*step) for step in steps)), part
