"""Positions: recorded integers in a basic key, which stay values of the program instead of deciding its path.

`a[i, 1:]` and `x[i - 1 : i + 2]` become a box of a fixed form whose starts are operands (`accel.ir.views.Extent`). That
an index is within its axis is an outcome: XLA would clamp it where NumPy raises. So is the length of a slice.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.ir.views import NEW, At, Extent, Index, Step, per_axis
from accel.record.state.recording import Recording
from accel.record.state.wrapper import has_wrapper, unwrap
from accel.record.values.arrays import RecordedArray, RecordedScalar, as_static, as_template
from accel.rules import core, scalars
from accel.rules.rule import Rule
from accel.rules.tables import ufuncs

MOST_EXPANDED = 32
"""Maximum operations looked through to see whether two bounds of a slice follow from one number. Guess."""


def position_of(entry: Any) -> Node | None:
    """The node of an integer that this recording's path does not fix; None for everything else in a key."""
    kind = type(entry)
    is_number = issubclass(kind, RecordedScalar) or (issubclass(kind, RecordedArray) and entry._plain_.ndim == 0)
    if not is_number:
        return None
    node = as_template(entry)
    is_whole = isinstance(node, Node) and node.dtype is not None and node.dtype.kind in "iu"
    return node if is_whole and not node.constant else None


def within_axis(recording: Recording, position: Node, size: int) -> None:
    """Let replays check that an index is within an axis of `size`, as NumPy would raise otherwise."""
    part = recording.writer.element(position)
    if part is not None:
        recording.writer.assume_in_bounds(*part, size)
    else:
        recording.writer.assume(scalars.IN_RANGE, (position, -size, size - 1), host=position.host)


def steps_of(array: RecordedArray, key: tuple[Any, ...]) -> tuple[Step, ...]:
    """The view steps of a basic key: one, or two where an axis that does not move is strided or empty."""
    if not has_wrapper(key):
        return (Index(as_static(key)),)
    shape = array._plain_.shape
    axes = [_axis_of(array._recording_, entry, size) for entry, size in per_axis(shape, key)]
    if not any(isinstance(axis.start, Node) for axis in axes):
        return (Index(as_static(key)),)
    extent = Extent(tuple([axis.length for axis in axes]))
    whole = [axis for axis in axes if axis.length != NEW]
    now = extent.at(shape, tuple([axis.now for axis in whole]))
    step = At(extent, tuple([axis.start for axis in whole]), now)
    rest = tuple([axis.rest for axis in axes if axis.length is not None])
    return (step,) if all(part == slice(None) for part in rest) else (step, Index(rest))


class _Axis:
    """One entry of a key. start, length: as in an `Extent`. now: the start at present. rest: what is still to do."""

    __slots__ = ("length", "now", "rest", "start")

    def __init__(self, start: Any, length: Any, now: int, rest: slice = slice(None)) -> None:
        self.start = start
        self.length = length
        self.now = now
        self.rest = rest


def _axis_of(recording: Recording, entry: Any, size: int) -> _Axis:
    """One entry of a key as an axis of a box."""
    if entry is None:
        return _Axis(None, NEW, 0)
    if isinstance(entry, slice):
        return _slice_axis(recording, entry, size)
    position = position_of(entry)
    if position is None:
        index = operator.index(as_static(entry))
        return _Axis(index + size * (index < 0), None, index)
    within_axis(recording, position, size)
    return _Axis(position, None, operator.index(unwrap(entry)))


def _slice_axis(recording: Recording, entry: slice, size: int) -> _Axis:
    moving = _moving_slice(recording, entry, size)
    if moving is not None:
        return moving
    static = as_static(entry)
    start, stop, step = static.indices(size)
    if step == 1 and start < stop:
        return _Axis(start, stop - start, start)
    return _Axis(0, size, 0, static)


def _moving_slice(recording: Recording, entry: slice, size: int) -> _Axis | None:
    """A slice of fixed length that moves; None if its bounds have to be outcomes."""
    start, stop = position_of(entry.start), position_of(entry.stop)
    # With one bound alone its length decides where it begins.
    if start is None or stop is None or entry.step not in (None, 1):
        return None
    now = operator.index(unwrap(entry.start))
    length = operator.index(unwrap(entry.stop)) - now
    # One that NumPy cuts off at an end, or counts from the other, keeps its bounds: another length is another path.
    if length < 1 or not 0 <= now <= size - length or not _keeps_length(start, stop):
        return None
    recording.writer.assume(core.IS_SLICE, (start, stop, length, size), host=start.host and stop.host)
    return _Axis(start, length, now)


def _keeps_length(start: Node, stop: Node) -> bool:
    """Whether a slice is likely to keep its length: `x[i : i + n]` is, `x[row[i] : row[i + 1]]` is not.

    It need not be right, as the length is an outcome. Where the bounds follow from different numbers, they are better
    known: the rows of a sparse matrix have other lengths anyway (see accel.record.state.pinned).
    """
    return not _sources(start).isdisjoint(_sources(stop))


def _sources(node: Node) -> set[Node]:
    """The numbers that a whole number follows from by a few operations of arithmetic."""
    found, left = set(), [node]
    for _ in range(MOST_EXPANDED):
        if not left:
            break
        each = left.pop()
        parts = [part for part in each.args if isinstance(part, Node)] if each.rule in _ARITHMETIC else []
        left += parts
        if not parts:
            found.add(each)
    return found


_ARITHMETIC: frozenset[Rule] = frozenset({core.CONVERT, scalars.host_rule(int)}) | {
    rule
    for function, ufunc in (
        (operator.add, np.add),
        (operator.sub, np.subtract),
        (operator.mul, np.multiply),
        (operator.neg, np.negative),
        (max, np.maximum),
        (min, np.minimum),
    )
    for rule in (scalars.host_rule(function), scalars.PYTHON[function].rule, ufuncs.rule_for(ufunc))
}
"""Rules of operations that bounds of slices are computed by."""
