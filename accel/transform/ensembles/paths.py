"""The recorded paths of a step, its compiled program, and when to build it again.

NumPy steps a member whose step takes an unknown path, and records that step. The program is rebuilt with the new paths
once such steps have taken as long as its last build.

Some steps store flags, texts and objects that they do not read; members share all of them. This matters once another
step reads one, or stores an array or number there. It would find the program's earlier value instead of its member's
value, or members would keep that value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from accel.platform import logs
from accel.platform.reasons import Refused
from accel.record import Trace
from accel.record.state.inputs import Inputs
from accel.record.state.leaves import FixedValue, FromSlot
from accel.transform.ensembles.addresses import Address, address_of
from accel.transform.ensembles.batch import Batch
from accel.transform.ensembles.inventory import Inventory, below, written
from accel.transform.ensembles.working_copy import Stepped, WorkingCopy
from accel.transform.pure.recorded import distinct, refused

MOST_PATHS = 32
"""Maximum recorded paths in one program."""

WORTH = 1.0
"""Rebuild the program once steps on unknown paths have taken this many times its build time."""


class Paths:
    """The recorded paths of a step. inventory: the values that all of them read and change."""

    def __init__(self, copy: WorkingCopy, members: int) -> None:
        self._copy, self._members = copy, members
        self.inventory = Inventory()
        self._traces: list[Trace] = []
        self._waiting: list[Trace] = []
        self._apart: list[Trace] = []  # those that the others have no program with
        self._spent_s = 0.0
        self._batch: Batch | None = None
        self._varied: frozenset[str] = frozenset()
        self._unseen = Unseen()
        self._record_first()
        self.builds = 0

    def _record_first(self) -> None:
        """Record a step from the values of the working copy. Raises Refused."""
        first = self._copy.step({})
        if first.trace.outputs.shown:
            raise refused(self._copy.name, "effect.print", "the first step shows text")
        self._check(first)
        self._traces, self._waiting, self._apart, self._batch = [first.trace], [], [], None

    def before(self, name: str) -> np.ndarray[Any, Any] | None:
        """Return the program's value of a name that no member has changed; None if there is no value."""
        return self._copy.value(self.inventory.addresses[name])

    def _check(self, stepped: Stepped) -> None:
        """Raise Refused for a step that cannot be that of one member alone."""
        if stepped.trace.draws:
            raise refused(self._copy.name, "effect.random", "give each member its random numbers as values")
        self.inventory.add(stepped.inventory, self._copy.name)
        self._copy.check_one_holder(self.inventory)
        self._unseen.add(stepped.trace, stepped.inventory, self._copy)
        self._copy.check_one_name(self.inventory, self._varied)

    def batch(self, varied: Iterable[str]) -> Batch:
        """Return the program. varied: names whose values may differ between members though no step changes them."""
        self._varied |= frozenset(varied)
        if self._batch is not None and any(name in self._batch.constants for name in self._varied):
            self._batch = None
        if self._batch is not None and not self._batch.is_current(self._copy.call):
            self._record_first()
        if self._batch is None:
            self._batch = Batch(self._copy.assembled(self._traces), self._varied, self._members)
            self.builds += 1
            self.inventory.add(self._batch.inventory, self._copy.name)
        return self._batch

    def step_one(self, values: Mapping[str, np.ndarray[Any, Any]]) -> Stepped:
        """Step one member on NumPy. Raises Refused, and any exception of the program."""
        self._copy.place(values, self.inventory)
        stepped = self._copy.step({name: self.inventory.addresses[name] for name in values})
        self._check(stepped)
        return stepped

    def has_learned(self, stepped: Stepped, took_s: float, left: int) -> bool:
        """Record a step on an unknown path and its time. Returns whether the program was rebuilt.

        left: number of members that may take the same path in this step.
        """
        self._spent_s += took_s
        if stepped.trace.outputs.shown or self._batch is None:
            return False  # a program would lose its text
        known = [*self._traces, *self._waiting, *self._apart]
        if len(known) < MOST_PATHS and len(distinct([*known, stepped.trace])) > len(known):
            self._waiting.append(stepped.trace)
        return self._spent_s + left * took_s >= WORTH * self._batch.built_s and self._learn()

    def _learn(self) -> bool:
        """Rebuild the program with all waiting paths. If they do not fit together, try each with the current paths."""
        waiting, self._waiting = self._waiting, []
        learned = bool(waiting) and self._build_with(waiting)
        if not learned and len(waiting) > 1:
            for trace in waiting:
                learned |= self._build_with([trace])
        return learned

    def _build_with(self, more: list[Trace]) -> bool:
        """Rebuild the program with additional paths. Returns False if that is impossible."""
        traces = [*self._traces, *more]
        try:
            batch = Batch(self._copy.assembled(traces), self._varied, self._members)
            self.inventory.add(batch.inventory, self._copy.name)
        except Refused as why:
            logs.LOGGER.info("ensemble of %s: some members go on by NumPy: %s", self._copy.name, why)
            self._apart += more if len(more) == 1 else []
            return False
        self._traces, self._batch, self._spent_s = traces, batch, 0.0
        self.builds += 1
        return True


# -- flags and objects that some steps store --------------------------------------------------------------------------


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
