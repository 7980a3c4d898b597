"""Pinned: arrays whose elements say which path a call takes.

`for i in range(n): y[i] = a[start[i]:start[i + 1]].sum()` needs every element of `start` as a plain number, and each
would be an outcome for the device to check. An input of which many elements are needed so is compared with what it was
when the call was recorded, before launch and as a whole; to the program its elements are constants.

So is an array that a parameter takes which shapes the program: `np.quantile(x, LEVELS)`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.ir.tape import Node, Outcome, Storage
from accel.record.state.inputs import Inputs, has_content
from accel.rules import core
from accel.rules.rule import Unsupported

MANY = 32
"""Number of needed elements from which an array is compared as a whole. Guess."""

MOST_COMPARED = 4096
"""Maximum size of an array that is needed as a whole: later calls compare all of it. Guess."""

MOST_STEPS = 16
"""Maximum operations that make one number of a table's elements. Guess."""


def pinned_whole(array: Any) -> NDArray[Any]:
    """The elements of a small recorded array that came from outside, and is still what it was then.

    Later calls must find the same there. Raises Unsupported for any other array.
    """
    base, origin = array._storage.base, array._storage.origin
    if origin is None or array._storage.version is not origin or base.size > MOST_COMPARED or base.dtype.hasobject:
        raise Unsupported("value.forced", "an array is needed where the program's shape is decided")
    array._recording_.inputs.narrow(origin.args[0], has_content(base.copy()))
    return np.array(array._plain_)


def element_of(node: Node) -> int | None:
    """The slot of the input array of which a node is an element; None for any other node."""
    table = _table_of(node)
    return None if table is None else table.args[0]


def _table_of(node: Node) -> Node | None:
    # `start[i]` is two nodes: the read of an element, and the number that Python makes of it.
    while node.rule is core.SCALAR or (node.rule is core.READ and not node.shape):
        node = node.args[0]
    return node if node.is_input and node.shape else None


def is_of_table(number: Any) -> bool:
    """Whether a recorded number is an element of a small array that came in, such as one of a list of angles.

    Or arithmetic on such elements and constants alone, as `-angle` or `np.pi / 180 * angle`: it recurs where they do.
    """
    is_itself = bool(number._plain_ == number._plain_)  # NaN is no number that a later call could be found to have
    return is_itself and _follows_from_tables(number.node())


def _follows_from_tables(node: Node) -> bool:
    """Whether a few operations of arithmetic make a number of elements of small arrays that came in, and constants."""
    found, steps, left = False, 0, [node]
    while left and steps < MOST_STEPS:
        each, steps = left.pop(), steps + 1
        table = _table_of(each)
        if table is not None:
            if math.prod(table.shape or ()) > MOST_COMPARED:
                return False
            found = True
        elif each.rule is core.SCALAR or (each.rule.cost.arithmetic and not each.shape):
            left += each.operands()
        elif not each.constant:
            return False
    return found and not left


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
