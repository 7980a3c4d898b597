"""A copy of the program's objects, on which NumPy runs and records one member's step."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.entry.callables import PlainCall
from accel.record import Trace
from accel.record.state.inputs import MISSING, Inputs
from accel.transform.ensembles import addresses
from accel.transform.ensembles.addresses import Address, Roots
from accel.transform.ensembles.copies import Copy
from accel.transform.ensembles.inventory import Inventory, inventory_of, stored
from accel.transform.pure import places as places_module
from accel.transform.pure import results
from accel.transform.pure.recorded import RecordedFunction, assembled, recorded_call, refused
from accel.transform.pure.results import Hole, ways_of

Array = np.ndarray[Any, Any]


@dataclass(slots=True)
class Stepped:
    """The result of one member's step on NumPy.

    values: by name, the values after the step. result: the return value as a form with holes, and the arrays and
    numbers of those holes. inventory: of this call alone.
    """

    trace: Trace
    values: dict[str, Array]
    form: Any
    result: list[Array]
    inventory: Inventory


class WorkingCopy:
    """A copy of a call's objects. skipped: number of arguments that the caller does not pass. silent: steps show no
    text."""

    silent = False

    def __init__(self, function: Any, name: str, copy: Copy, skipped: int) -> None:
        self._function, self.name, self._skipped = function, name, skipped
        self._copy = copy

    @property
    def call(self) -> PlainCall:
        roots = self._copy.roots
        return PlainCall(self._function, tuple(roots.args), roots.kwargs)

    def read(self, address: Address) -> Any:
        return addresses.read(self._copy.roots, address)

    def value(self, address: Address) -> Array | None:
        """Return the array or number at an address, as an array; None if there is none."""
        return _value(self.read(address))

    def place(self, values: Mapping[str, Array], inventory: Inventory) -> None:
        """Store a member's values in the copy. Raises Refused if the copy has no place for one."""
        place(self._copy.roots, values, inventory, self.name)

    def assembled(self, traces: Sequence[Trace]) -> RecordedFunction:
        """Merge recorded calls into one trace, with the copy's values. Raises Refused."""
        recorded = assembled(self.name, traces, [self.call], self._skipped)
        self._check_owners(recorded)
        return recorded

    def _check_owners(self, recorded: RecordedFunction) -> None:
        """Raise Refused if a step reads an original object under a global name although the copy holds a copy of it."""
        call, inputs = self.call, recorded.trace.inputs
        values, _ = inputs.fetch(call.args, call.kwargs)  # the values of `recorded` are copies
        for slot, value in enumerate(values[Inputs.ROOTS :], start=Inputs.ROOTS):
            if self._copy.was_copied(value):
                name = inputs.slots[slot - Inputs.ROOTS].name
                raise refused(self.name, "ensemble.place", f"{name} is below an argument, too")

    def step(self, names: Mapping[str, Address]) -> Stepped:
        """Run one step on NumPy from the stored values, and undo its changes. names: addresses to read after the step.

        Raises Refused if a step changes a value without a name, and any exception of the program.
        """
        after: dict[Address, Array | None] = {}
        returned: list[Any] = []

        def look(trace: Trace, result: Any) -> None:
            self._see(trace)
            after.update((address, _value(self.read(address))) for address in (*names.values(), *stored(trace)))
            returned.append(copy.deepcopy(result))  # undoing may change the objects inside it

        trace = recorded_call(self.call, look, silent=self.silent)
        inventory, form = self._inventory(trace)
        values = {}
        for name, address in {**names, **{each: inventory.addresses[each] for each in inventory.changed}}.items():
            value = after.get(address)
            if value is None:
                raise refused(self.name, "pure.state", f"{name} is no array or number after a step")
            values[name] = value
        return Stepped(trace, values, form, leaves_in(form, returned[0], self.name), inventory)

    def _see(self, trace: Trace) -> None:
        """Inspect a recorded step before it is undone. An override may rename inputs, and may raise Refused."""

    def _inventory(self, trace: Trace) -> tuple[Inventory, Any]:
        recorded = self.assembled([trace])
        places = places_module.places_of(recorded)
        ways = ways_of(recorded.trace)
        returned = [results.returned_by(way, recorded, places) for way in ways]
        names = list(dict.fromkeys(name for each in returned for name in each.state))
        results.check_known(recorded, places, names)
        results.check_aliases(recorded, places, ways, returned)
        inventory = inventory_of(recorded, places, ways, returned)
        return inventory, returned[0].form

    def check_one_holder(self, inventory: Inventory) -> None:
        """Refuse an array that some steps write to and others replace, if it has another holder.

        Whether that holder sees the writes would differ between members.
        """
        for name in inventory.in_place & inventory.rebound:
            if self._copy.is_shared(self.read(inventory.addresses[name])):
                raise refused(self.name, "pure.alias", f"another name holds {name}")

    def check_one_name(self, inventory: Inventory, varied: Iterable[str]) -> None:
        """Refuse a value that members own or change, if steps know it by different names.

        A program would hold it twice. varied: names of values that may differ between members.
        """
        own = {*inventory.changed, *varied}
        places: dict[Any, str] = {}
        for name, address in inventory.addresses.items():
            *way, last = address
            other = places.setdefault((id(self.read(tuple(way))), last), name)
            if other != name and not own.isdisjoint((name, other)):
                raise refused(self.name, "pure.alias", f"{other} and {name}")
        self._check_arrays(inventory)

    def _check_arrays(self, inventory: Inventory) -> None:
        """Refuse an array that some steps write to and others know by another name."""
        names: dict[int, str] = {}
        for name, address in inventory.addresses.items():
            found = self.read(address)
            if isinstance(found, np.ndarray):
                other = names.setdefault(id(found), name)
                if other != name and not inventory.in_place.isdisjoint((name, other)):
                    raise refused(self.name, "pure.alias", f"{other} and {name}")


def place(roots: Roots, values: Mapping[str, Array], inventory: Inventory, function: str) -> None:
    """Store values at the addresses of their names. Raises Refused if that is impossible."""
    for name, value in values.items():
        in_place = name in inventory.in_place or name not in inventory.rebound
        try:
            addresses.put(roots, inventory.addresses[name], value, inventory.kinds[name], in_place)
        except (LookupError, AttributeError, TypeError) as error:
            raise refused(function, "ensemble.place", f"{name}: {error}") from error
    for name, value in values.items():
        there = _value(addresses.read(roots, inventory.addresses[name]))
        if there is None or not is_same(there, value):
            raise refused(function, "ensemble.place", f"{name} shares its place with another")


def leaves_in(form: Any, result: Any, name: str) -> list[Array]:
    """Return the arrays and numbers of a return value, at the holes of its form. Raises Refused."""
    if isinstance(form, Hole):
        if not results.is_leaf(result):
            raise refused(name, "pure.result", f"it returns a {type(result).__name__}")
        return [np.array(result)]
    found: list[Array] = []
    if isinstance(form, dict):
        for key, part in form.items():
            found += leaves_in(part, result[key] if isinstance(result, dict) else getattr(result, key), name)
    elif isinstance(form, (tuple, list)):
        for part, value in zip(form, result, strict=True):
            found += leaves_in(part, value, name)
    return found


def _value(found: Any) -> Array | None:
    return np.array(found) if found is not MISSING and results.is_leaf(found) else None


def is_same(one: Array, other: Array) -> bool:
    """Return whether two arrays have equal elements, dtype and shape."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
