"""Settling: a masked selection becomes an array of the length that it has now, which replays check.

A selection stays a full array with its mask (`accel.record.values.compressed`) as long as what follows allows. All else
is recorded for this length: another one is another path. Masks that do not change, such as walls and coasts, select as
much in each call; and so do many that change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from accel.ir.tape import Node, Storage
from accel.ir.views import basic_key
from accel.record.state.recording import Recording
from accel.record.state.wrapper import set_class
from accel.record.values.arrays import CompressedArray, RecordedArray
from accel.record.values.operands import flat
from accel.record.values.positions import steps_of
from accel.rules import core, selections
from accel.rules.rule import Unsupported


def settle(value: Any) -> None:
    """Make a selection a `RecordedArray`, and with it all that share its memory."""
    if not issubclass(type(value), CompressedArray):
        return
    root = value
    while root._parent is not None:
        root = root._parent
    node = selected(root._recording_, root._full, root._mask, root._plain_)
    _become(root, Storage(root._plain_, node), ())


def _become(value: Any, storage: Storage, chain: tuple[Any, ...]) -> None:
    """Make the wrapper a recorded array in place, so that all who hold it see an array."""
    views = value._views
    value._storage, value._chain = storage, chain
    value._full = value._mask = value._parent = None
    value._views = []
    set_class(value, RecordedArray)
    for view, key in views:
        _become(view, storage, (*chain, *steps_of(value, basic_key(key))))


def selected(recording: Recording, full: Node, mask: Node, plain: Any) -> Node:
    """The rows of `full` where `mask` holds, as many as now. plain: those rows."""
    writer = recording.writer
    writer.outcome(writer.node(core.COUNT, (mask,), {}, len(plain)), len(plain))
    return writer.node(selections.SELECTED, (full, mask, len(plain)), {}, plain)


def or_settled(write: Callable[[], Any], values: Iterable[Any]) -> Any:
    """`write()`; where it cannot do with selections of unknown length, again with those among `values` settled."""
    values = list(values)
    try:
        return write()
    except Unsupported as gap:
        chosen = [value for value in flat(values) if issubclass(type(value), CompressedArray)]
        if gap.reason != "shape.dynamic" or not chosen:
            raise
    for value in chosen:
        settle(value)
    return write()
