"""What NumPy's call has made of objects and containers, beside what the replay would have made of them."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

from accel.dispatch.comparing.snapshot import Snapshot, is_same, part_name, parts_of
from accel.dispatch.replay import StagedOutputs
from accel.record.changes import Emptied, Ends, Members, Write
from accel.record.inputs import MISSING

Found = tuple[Any, Any, str]
"""A template of the replay's, the value of NumPy's, and its name."""


class Changes:
    """The changes of one run. snapshot: of the inputs, taken before NumPy's call."""

    def __init__(self, staged: StagedOutputs, snapshot: Snapshot) -> None:
        self._trace, self._values, self._snapshot = staged.trace, staged.values, snapshot
        self._writes = [change for change in self._trace.outputs.writes if isinstance(change, Write)]
        self._others = [change for change in self._trace.outputs.writes if not isinstance(change, Write)]
        self._ends = {change.owner: change for change in self._others if isinstance(change, Ends)}

    def values(self) -> Iterator[Found]:
        """All values that the replay would store."""
        for write in self._writes:
            name = part_name(self._trace, write.owner, write.name, is_item=write.is_item)
            if write.is_item:
                place = self._place(write.owner, write.name)
                if place is not None:
                    yield write.value, parts_of(self._values[write.owner]).get(place, MISSING), name
            else:
                yield write.value, getattr(self._values[write.owner], write.name, MISSING), name
        for change in self._ends.values():
            now = list(self._values[change.owner])
            # where lengths differ, `structure` says so
            if len(now) == self._length(change):
                first = len(now) - len(change.back)
                pairs = [*zip(change.front, now, strict=False), *zip(change.back, now[first:], strict=True)]
                places = [*range(len(change.front)), *range(first, len(now))]
                for place, (template, value) in zip(places, pairs, strict=True):
                    yield template, value, part_name(self._trace, change.owner, place, is_item=True)

    def structure(self) -> Iterator[tuple[str, str]]:
        """The name of each container that is not as the replay would leave it otherwise, and how."""
        for change in self._others:
            name, now = self._trace.inputs.name(change.owner), self._values[change.owner]
            if isinstance(change, Ends):
                what = self._stretch(change, list(now))
            elif isinstance(change, Members):
                what = None if now == self._members(change) else "NumPy leaves other members than the replay"
            else:
                what = None
            if what is not None:
                yield name, what
        for slot in {change.owner for change in self._trace.outputs.writes if self._is_dict(change)}:
            if list(self._values[slot]) != self._keys(slot):
                yield self._trace.inputs.name(slot), "NumPy leaves other keys than the replay, or another order"

    # -- sequences ----------------------------------------------------------------------------------------------------

    def _place(self, owner: int, key: Any) -> Any:
        """Where an item is after the call that was told by its former index; None where it is gone."""
        change = self._ends.get(owner)
        if change is None:
            return key
        is_kept = change.keeps and change.skip <= key < len(self._snapshot.parts[owner]) - change.drop
        return key - change.skip + len(change.front) if is_kept else None

    def _length(self, change: Ends) -> int:
        stays = len(self._snapshot.parts[change.owner]) - change.skip - change.drop if change.keeps else 0
        return stays + len(change.front) + len(change.back)

    def _stretch(self, change: Ends, now: list[Any]) -> str | None:
        """How what stays of a sequence is not what it was."""
        if len(now) != self._length(change):
            return f"NumPy leaves {len(now)} elements, the replay {self._length(change)}"
        if not change.keeps:
            return None
        before = self._snapshot.parts[change.owner]
        stays = before[change.skip : len(before) - change.drop]
        found = now[len(change.front) : len(now) - len(change.back)]
        if all(map(operator.is_, stays, found)):
            return None
        written = {write.name - change.skip for write in self._writes if write.owner == change.owner}
        pairs = enumerate(zip(stays, found, strict=True))
        differs = any(not is_same(*pair) for position, pair in pairs if position not in written)
        return "NumPy changes elements that the replay leaves as they are" if differs else None

    # -- sets and dicts -----------------------------------------------------------------------------------------------

    def _members(self, change: Members) -> set[Any]:
        found = set(self._snapshot.parts[change.owner]) if change.keeps else set()
        for member, is_in in change.turns:
            (found.add if is_in else found.discard)(member)
        return found

    def _is_dict(self, change: Any) -> bool:
        is_item = isinstance(change, Emptied) or (isinstance(change, Write) and change.is_item)
        return is_item and isinstance(self._values[change.owner], dict)

    def _keys(self, slot: int) -> list[Any]:
        """A dict's keys as the replay would leave them."""
        before: Mapping[Any, Any] = self._snapshot.parts[slot]
        is_emptied = any(isinstance(change, Emptied) and change.owner == slot for change in self._others)
        keys = {} if is_emptied else dict.fromkeys(before)
        for write in self._writes:
            if write.owner == slot:
                is_gone = getattr(write.value, "value", None) is MISSING
                if is_gone or write.is_anew:
                    keys.pop(write.name, None)
                if not is_gone:
                    keys[write.name] = None
        return list(keys)
