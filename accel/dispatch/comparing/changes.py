"""Objects and containers after NumPy's call, compared with what the replay would have made of them."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from accel.dispatch.comparing.snapshot import Snapshot, is_same, part_name, part_of, parts_of
from accel.dispatch.replay import StagedOutputs
from accel.dispatch.replay.build import Builder
from accel.record.state.changes import Emptied, Ends, SetMembers, Write
from accel.record.state.inputs import MISSING

Found = tuple[Any, Any, str]
"""A template of the replay's, the value of NumPy's, and its name."""


class Changes:
    """The changes of one run. snapshot: of the inputs, taken before NumPy's call."""

    def __init__(self, staged: StagedOutputs, snapshot: Snapshot) -> None:
        self._trace, self._values, self._snapshot = staged.trace, staged.values, snapshot
        self._build = Builder(staged)
        changes = self._trace.outputs.writes
        self._attributes = [change for change in changes if isinstance(change, Write) and not change.is_item]
        items = [change for change in changes if isinstance(change, Write) and change.is_item]
        # by their keys in this call
        self._items: list[tuple[Any, Write]] = [(self._build(write.name), write) for write in items]
        self._ends = {change.owner: change for change in changes if isinstance(change, Ends)}
        self._members = [change for change in changes if isinstance(change, SetMembers)]
        self._emptied = {change.owner for change in changes if isinstance(change, Emptied)}

    def values(self) -> Iterator[Found]:
        """All values that the replay would store."""
        for write in self._attributes:
            name = part_name(self._trace, write.owner, write.name, is_item=False)
            yield write.value, part_of(self._values[write.owner], write.name), name
        for key, write in self._items:
            place = self._place(write.owner, key)
            if place is not None:
                now = parts_of(self._values[write.owner]).get(place, MISSING)
                yield write.value, now, part_name(self._trace, write.owner, key, is_item=True)
        for change in self._ends.values():
            yield from self._new_elements(change)

    def structure(self) -> Iterator[tuple[str, str]]:
        """The name of each container that is not as the replay would leave it otherwise, and how."""
        for slot in {write.owner for _, write in self._items} | self._ends.keys() | self._emptied:
            of_kind = self._dict if isinstance(self._values[slot], dict) else self._sequence
            # a module's namespace is not looked at as a whole
            what = of_kind(slot) if slot in self._snapshot.parts else None
            if what is not None:
                yield self._trace.inputs.name(slot), what
        for change in self._members:
            if self._values[change.owner] != self._set(change):
                yield self._trace.inputs.name(change.owner), "NumPy leaves other members than the replay"

    # -- sequences ----------------------------------------------------------------------------------------------------

    def _new_elements(self, change: Ends) -> Iterator[Found]:
        now = list(self._values[change.owner])
        # where lengths differ, `structure` says so
        if len(now) == self._length(change.owner):
            first = len(now) - len(change.back)
            for place, template in [*enumerate(change.front), *enumerate(change.back, first)]:
                yield template, now[place], part_name(self._trace, change.owner, place, is_item=True)

    def _place(self, owner: int, key: Any) -> Any:
        """Return an item's position after the call, by its former index; None if it is gone."""
        change = self._ends.get(owner)
        if change is None:
            return key
        is_kept = change.keeps and change.skip <= key < len(self._snapshot.parts[owner]) - change.drop
        return key - change.skip + len(change.front) if is_kept else None

    def _length(self, slot: int) -> int:
        change, size = self._ends.get(slot), len(self._snapshot.parts[slot])
        if change is None:
            return size
        stays = size - change.skip - change.drop if change.keeps else 0
        return stays + len(change.front) + len(change.back)

    def _sequence(self, slot: int) -> str | None:
        """Describe changes of a list or deque that the replay does not make."""
        now, length = list(self._values[slot]), self._length(slot)
        if len(now) != length:
            return f"NumPy leaves {len(now)} elements, the replay {length}"
        before, change = self._snapshot.parts[slot], self._ends.get(slot) or Ends(slot, 0, [], 0, [])
        if not change.keeps:
            return None
        stays = before[change.skip : len(before) - change.drop]
        found = now[len(change.front) : len(now) - len(change.back)]
        if all(map(operator.is_, stays, found)):
            return None
        written = {key - change.skip for key, write in self._items if write.owner == slot}
        pairs = enumerate(zip(stays, found, strict=True))
        differs = any(not is_same(*pair) for position, pair in pairs if position not in written)
        return "NumPy changes elements that the replay leaves as they are" if differs else None

    # -- sets and dicts -----------------------------------------------------------------------------------------------

    def _set(self, change: SetMembers) -> set[Any]:
        found = set(self._snapshot.parts[change.owner]) if change.keeps else set()
        for member, is_in in change.turns:
            (found.add if is_in else found.discard)(self._build(member))
        return found

    def _dict(self, slot: int) -> str | None:
        """Describe changes of a dict that the replay does not make."""
        before, now = self._snapshot.parts[slot], self._values[slot]
        keys = {} if slot in self._emptied else dict.fromkeys(before)
        written = {key: write for key, write in self._items if write.owner == slot}
        for key, write in written.items():
            is_gone = getattr(write.value, "value", None) is MISSING
            if is_gone or write.is_anew:
                keys.pop(key, None)
            if not is_gone:
                keys[key] = None
        if [(type(key), key) for key in now] != [(type(key), key) for key in keys]:
            return "NumPy leaves other keys than the replay, or another order"
        other = [key for key in keys if key not in written and not is_same(before[key], now[key])]
        return f"NumPy changes the item {other[0]!r}, the replay leaves it as it is" if other else None
