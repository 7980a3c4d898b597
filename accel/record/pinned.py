"""Pinned: arrays whose elements say which path a call takes.

`for i in range(n): y[i] = a[start[i]:start[i + 1]].sum()` needs every element of `start` as a plain number, and each
would be an outcome for the device to check. An input of which many elements are needed so is compared with what it was
when the call was recorded, before launch and as a whole; to the program its elements are constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from accel.ir.tape import Node, Outcome, Storage
from accel.record.inputs import Inputs, has_content
from accel.rules import core

MANY = 32
"""Elements of an array from which it is compared as a whole."""


def element_of(node: Node) -> int | None:
    """The slot of the input array of which a node is an element; None for any other node."""
    # `start[i]` is two nodes: the read of an element, and the number that Python makes of it.
    while node.rule is core.SCALAR or (node.rule is core.READ and not node.shape):
        node = node.args[0]
    return node.args[0] if node.is_input and node.shape else None


def note_pinned(outcomes: Iterable[Outcome], storages: Iterable[Storage], slots: Inputs) -> dict[int, Any]:
    """The contents of such arrays by slot; calls with other contents no longer match."""
    counts = Counter(element_of(outcome.node) for outcome in outcomes if not outcome.node.host)
    found = {}
    for storage in storages:
        # An array that the call writes holds something else by the time its elements are read: no check before launch
        # helps.
        slot = None if storage.origin is None or storage.written else storage.origin.args[0]
        if slot is not None and counts[slot] >= MANY:
            found[slot] = storage.base.copy()
            slots.narrow(slot, has_content(found[slot]))
    return found
