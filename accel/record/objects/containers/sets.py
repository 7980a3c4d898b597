"""Sets from outside, of strings, whole numbers and the like: what Python itself hashes and compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from accel.record.objects.containers.container import is_simple_key
from accel.record.objects.containers.keyed import KeyedProxy
from accel.record.state.changes import SetMembers
from accel.record.state.wrapper import unwrap


class SetProxy(KeyedProxy):
    """A set from outside.

    turns: the members that the call has added (True) and taken away (False), in order. known: the last turn of each.
    """

    __slots__ = ("_known", "_turns")

    copied = set

    def __init__(self, recording: Any, value: object, slot: int | None = None) -> None:
        super().__init__(recording, value, slot)
        self._turns: list[tuple[Any, bool]] = []
        self._known: dict[Any, bool] = {}

    def as_container(self) -> Any:
        return set(self)

    def change(self, template: Callable[[Any], Any]) -> SetMembers | None:
        """The change of members that a replay makes; None if there is none."""
        is_same = not (self._turns or self._emptied)
        turns = [(template(member), is_in) for member, is_in in self._turns]
        return None if is_same or self._slot_ is None else SetMembers(self._slot_, turns, not self._emptied)

    def _known_keys(self) -> Iterable[Any]:
        return self._known

    def _guard_length(self) -> None:
        # The order of a set's members depends on its history, and that of strings on the process.
        self._give_up("is looked at as a whole")

    def __iter__(self) -> Iterator[Any]:
        self._guard_length()
        return iter(self._plain_)

    def __contains__(self, member: object) -> bool:
        return self._has(self._key(member))

    def _has(self, member: Any) -> bool:
        known = member in self._plain_
        if self._recording_.active and not is_simple_key(member):
            self._give_up(f"is asked for a member of type {type(member).__name__}")
        if self._recording_.active and member not in self._known:
            self._guard_membership(member, known)
        return known

    def _turn(self, member: Any, is_in: bool) -> bool:
        """Note that a member is there from now on, or not; returns whether that is a change."""
        at = self._key(member)
        if self._has(at) is is_in:
            return False
        self._begin_change()
        if self._recording_.active:
            self._turns.append((member if self.computed(at) is not None else at, is_in))
            self._known[at] = is_in
        (self._plain_.add if is_in else self._plain_.discard)(at)
        return True

    def add(self, member: object) -> None:
        self._turn(member, True)

    def discard(self, member: object) -> None:
        self._turn(member, False)

    def remove(self, member: object) -> None:
        if not self._turn(member, False):
            self._raise_missing(unwrap(member))

    def update(self, *others: Any) -> None:
        for other in others:
            # Sets and dicts are taken over in one piece, and that decides the order of the members.
            if isinstance(other, (set, frozenset, dict)):
                self._give_up("is given another's members")
            for member in list(other):
                self.add(member)

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __or__(self, other: Any) -> Any:
        return self._whole() | unwrap(other)

    def __and__(self, other: Any) -> Any:
        return self._whole() & unwrap(other)

    def __sub__(self, other: Any) -> Any:
        return self._whole() - unwrap(other)

    def _whole(self) -> Any:
        self._guard_length()
        return self._plain_

    def clear(self) -> None:
        self._begin_change()
        self._turns, self._known, self._emptied = [], {}, True
        self._plain_.clear()
