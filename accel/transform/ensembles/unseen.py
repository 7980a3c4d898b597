"""Unseen writes: flags, texts and objects that a step stores and does not read. Members share all of them.

This matters once another step reads one. It would find the program's earlier value instead of its member's value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accel.record import Trace
from accel.record.state.changes import Write
from accel.record.state.inputs import Inputs
from accel.record.state.leaves import FixedValue, FromSlot
from accel.transform.ensembles.addresses import Address, Hop, address_of
from accel.transform.ensembles.inventory import Inventory, below
from accel.transform.ensembles.working_copy import WorkingCopy
from accel.transform.pure.recorded import refused


class Unseen:
    """Addresses that recorded steps read, and addresses outside the members' state that they write."""

    def __init__(self) -> None:
        self._read: dict[Address, str] = {}
        self._stored: set[Address] = set()

    def add(self, trace: Trace, inventory: Inventory, copy: WorkingCopy) -> None:
        """Add one recorded step. Raises Refused if one step reads a value that another stores."""
        slots = trace.inputs.slots
        for slot, each in enumerate(slots, Inputs.ROOTS):
            address = address_of(slots, slot)
            if address is not None:
                self._read.setdefault(address, each.name)
        state = {inventory.addresses[name] for name in inventory.changed}
        self._stored.update(each for each in _stored(trace, copy) if each not in state)
        for address in self._stored & self._read.keys():
            detail = f"{self._read[address]} is stored by some steps and read by others"
            raise refused(copy.name, "pure.static", detail)


def _stored(trace: Trace, copy: WorkingCopy) -> Iterator[Address]:
    """Yield the addresses at which a step stores a value other than the one already there."""
    slots = trace.inputs.slots
    for change in trace.outputs.writes:
        owner = address_of(slots, change.owner) if isinstance(change, Write) else None
        if owner is not None and isinstance(change, Write):
            for _, address, template in below("", (*owner, Hop(change.is_item, change.name)), change.value):
                if not _is_there(template, address, trace, copy):
                    yield address


def _is_there(template: Any, address: Address, trace: Trace, copy: WorkingCopy) -> bool:
    """Return whether the value that a step stores is already at the address."""
    if isinstance(template, FromSlot):
        return not template.chain and address_of(trace.inputs.slots, template.slot) == address
    value = template.value if isinstance(template, FixedValue) else template
    before = copy.read(address)
    return before is value or (
        type(before) is type(value) and isinstance(value, (bool, int, float, str)) and before == value
    )
