"""Unseen writes: flags, texts and objects that a step stores and does not read. Members share all of them.

This matters once another step reads one, or stores an array or number there. It would find the program's earlier value
instead of its member's value, or members would keep that value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from accel.record import Trace
from accel.record.state.inputs import Inputs
from accel.record.state.leaves import FixedValue, FromSlot
from accel.transform.ensembles.addresses import Address, address_of
from accel.transform.ensembles.inventory import Inventory, below, written
from accel.transform.ensembles.working_copy import WorkingCopy
from accel.transform.pure.recorded import refused


class Unseen:
    """Addresses that recorded steps read, that are state, and that steps store something else or flags at."""

    def __init__(self) -> None:
        self._read: dict[Address, str] = {}
        self._state: dict[Address, str] = {}
        self._flags: set[Address] = set()
        self._others: set[Address] = set()

    def add(self, trace: Trace, inventory: Inventory, copy: WorkingCopy) -> None:
        """Add one recorded step. Raises Refused if one step uses a value that another stores."""
        slots = trace.inputs.slots
        for slot, each in enumerate(slots, Inputs.ROOTS):
            address = address_of(slots, slot)
            if address is not None:
                self._read.setdefault(address, each.name)
        own = {inventory.addresses[name]: name for name in inventory.changed}
        self._state.update(own)
        for address, value in _stored(trace, copy):
            if address not in own:
                self._others.add(address)
            elif isinstance(value, (bool, np.bool_)):
                self._flags.add(address)
        for stored, used in ((self._others | self._flags, self._read), (self._others, self._state)):
            for address in stored & used.keys():
                raise refused(copy.name, "pure.static", f"{used[address]} is stored by some steps and used by others")


def _stored(trace: Trace, copy: WorkingCopy) -> Iterator[tuple[Address, Any]]:
    """Yield the addresses at which a step stores a value other than the one already there, and the value's template."""
    for change, at in written(trace):
        for _, address, template in below("", at, change.value):
            value = template.value if isinstance(template, FixedValue) else template
            if not _is_there(value, address, trace, copy):
                yield address, value


def _is_there(value: Any, address: Address, trace: Trace, copy: WorkingCopy) -> bool:
    """Return whether the value that a step stores is already at the address."""
    if isinstance(value, FromSlot):
        return not value.chain and address_of(trace.inputs.slots, value.slot) == address
    before = copy.read(address)
    return before is value or (
        type(before) is type(value) and isinstance(value, (bool, int, float, str)) and before == value
    )
