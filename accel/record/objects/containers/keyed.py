"""The base of dicts and sets from outside: some keys are computed anew in each call."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, NoReturn

from accel.ir.tape import Node
from accel.record.objects.containers.container import ContainerProxy, is_simple_key
from accel.record.state import inputs
from accel.record.state.inputs import MISSING
from accel.record.state.wrapper import unwrap
from accel.record.values.arrays import RecordedScalar, as_static
from accel.record.values.wrapping import wrap
from accel.rules.scalars import host_rule

MOST_RELATED = 32
"""Maximum number of keys of one container that guards tell apart; later computed keys are fixed by the path. Guess."""


class KeyedProxy(ContainerProxy):
    """A dict or set from outside. emptied: the call has taken all of its items away.

    computed: the nodes of keys that Python computes before each launch (`frames[self.n]`), by the key of this call.
    Which of the keys that the call uses are the same is a part of its path.
    """

    __slots__ = ("_computed", "_emptied")

    def __init__(self, recording: Any, value: object, slot: int | None = None) -> None:
        super().__init__(recording, value, slot)
        self._computed: dict[Any, Node] = {}
        self._emptied = False

    def _growth(self) -> int | None:
        return None if self._emptied else super()._growth()

    def _known_keys(self) -> Iterable[Any]:
        """The keys of which this call has changed what there is."""
        raise NotImplementedError

    def _key(self, key: object) -> Any:
        """A key as a plain value, told from all others of this call."""
        return self._recording_.write_down(lambda: self._told(key), unwrap(key))

    def _told(self, key: Any) -> Any:
        """The plain key, after replays were told to check which keys of this call are equal."""
        node, plain = _computed_node(key), unwrap(key)
        related = {*self._known_keys(), *self._computed} if node is not None or self._computed else set()
        if node is not None and len(related) > MOST_RELATED:
            node = None
        if node is None:
            plain = as_static(key)
        for other in related if is_simple_key(plain) else ():
            theirs = self._computed.get(other)
            if theirs is not node:
                self._note_equal((other, theirs), (plain, node))
        if node is not None and plain not in related:
            self._computed[plain] = node
        return plain

    def _note_equal(self, *keys: tuple[Any, Node | None]) -> None:
        """Let replays check whether two keys are equal, as they are now or are not. keys: plain, and their nodes."""
        result = keys[0][0] == keys[1][0]
        parts = tuple(plain if node is None else node for plain, node in keys)
        writer = self._recording_.writer
        writer.outcome(writer.node(host_rule(operator.eq), parts, {}, result, host=True), result)

    def computed(self, key: object) -> Node | None:
        """The node that gives a key, where it is another in each call."""
        return self._computed.get(key)

    def _fix(self, key: object) -> None:
        """Let the path fix a computed key: more depends on it than whether there is such an item."""
        node = self._computed.pop(key, None)
        if node is not None:
            self._recording_.write_down(lambda: self._recording_.writer.outcome(node, key), None)

    def _fix_all(self) -> None:
        for key in list(self._computed):
            self._fix(key)

    def _raise_missing(self, key: Any) -> NoReturn:
        """Say that there is no such item, with the key that the program gave: handlers may look at it."""
        node = self._computed.get(key) if self._recording_.active and is_simple_key(key) else None
        with self._recording_.foreseen():
            raise KeyError(key if node is None else wrap(self._recording_, key, node))

    def _guard_membership(self, key: Any, known: bool) -> None:
        """Let replays check whether there was such an item when the call began."""
        recording, slot = self._recording_, self._slot_
        if not recording.active or slot is None or self._emptied:
            return
        node = self._computed.get(key) if is_simple_key(key) else None
        if node is None:
            recording.inputs.narrow(slot, inputs.has_item(key, known))
            return

        def write() -> None:
            container = recording.writer.input_node(slot, self._base)
            held = recording.writer.node(host_rule(operator.contains), (container, node), {}, known, host=True)
            recording.writer.outcome(held, known)

        recording.write_down(write, None)


def _computed_node(key: Any) -> Node | None:
    """The node of a number that Python computes before launch, and that nothing has fixed."""
    if not issubclass(type(key), RecordedScalar) or type(key._plain_) not in (int, float):
        return None
    node: Node = key.node()
    is_free = node.host and not node.constant and key._recording_.writer.forced(node) is MISSING
    return node if is_free else None
