"""Written views: what a call writes to of an array, where that is little of it.

`self.fields[2] += flux` writes to one field of five, `history[k] = mean` to one number of thousands. A program that
gave new contents of the whole array would copy it in each run, and the copy would be copied back. So it gives the views
that are written to, as they are at the end, and only these are stored.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.ir.tape import Node
from accel.ir.views import Box, Index, Placed, box_of
from accel.rules import core

MOST_VIEWS = 8
"""Maximum number of views of one array. Each is a result of its own, which costs some microseconds."""

FEW_WRITES = 3
"""Maximum number of writes to one view."""

LEAST_SPARED = 1 << 17
"""Minimum bytes that each view must save: copying these there and back takes about as long as one more result."""


@dataclass(frozen=True, slots=True)
class OnHost:
    """A number that Python computes before each launch: the value of the host node of this index."""

    index: int


View = Index | Placed
"""A view at the same place in each run, or one of whose starts some are on the host."""


def place_of(view: View, shape: tuple[int, ...], host: Mapping[int, Any]) -> Index:
    """Return the place of a view of an array of `shape` in one run.

    host: the values that Python has computed for it, by index of nodes.
    """
    if isinstance(view, Index):
        return view
    known = [host[start.index] if isinstance(start, OnHost) else start for start in view.starts]
    return view.extent.at(shape, tuple(known))


@dataclass(frozen=True, slots=True)
class Changed:
    """An array as it is at the end of the call.

    contents: None if the program gives the whole array. Otherwise it holds the views that the program gives, in the
    order in which they are stored. Each view has the node of its contents, or None if these are read at the end.
    """

    node: Node
    contents: Mapping[View, Node | None] | None

    @property
    def views(self) -> tuple[View, ...] | None:
        """The views that the program gives of it, in order; None if it gives the whole."""
        return None if self.contents is None else tuple(self.contents)


class _Write(NamedTuple):
    view: View
    box: Box
    value: Any


def changed(slot: int, node: Node, value_of: Callable[[Node], Any]) -> Changed:
    """An input that the call changes in place. node: as it is at the end.

    value_of: a node's value where it is known before launch, else None.
    """
    writes: list[_Write] = []  # the last first
    before = node
    while before.rule in (core.WRITE, core.WRITE_AT):
        view = _view_of(before, value_of)
        box = None if view is None else _box_at(view, node.shape)
        if view is None or box is None:
            return Changed(node, None)
        writes.append(_Write(view, box, before.args[2]))
        before = before.args[0]
    if not before.is_input or before.args[0] != slot:
        return Changed(node, None)
    contents = _contents(node, writes)
    written = size_of(contents, node.shape)
    spared = (math.prod(node.shape) - written) * np.dtype(node.dtype).itemsize
    pays = 0 < len(contents) <= MOST_VIEWS and spared >= LEAST_SPARED * len(contents)
    return Changed(node, contents if pays else None)


def _contents(node: Node, writes: Sequence[_Write]) -> dict[View, Node | None]:
    """Return the written views, as in `Changed`; empty if only the whole array shows its content at the end.

    writes: the last first.
    """
    last: dict[View, _Write] = {}
    for write in writes:
        last.setdefault(write.view, write)
    if any(isinstance(view, Placed) for view in last):
        # they may overlap: stored in the order of their last writes, they leave what all writes leave
        values = {view: _value(node, write, writes) for view, write in reversed(last.items())}
        return {} if None in values.values() else values
    boxes = [write.box for write in last.values()]
    largest = {view: write for view, write in last.items() if not any(_holds(box, write.box) for box in boxes)}
    return {view: _at_the_end(node, write, writes) for view, write in largest.items()}


def _at_the_end(node: Node, write: _Write, writes: Sequence[_Write]) -> Node | None:
    """The value that a view has at the end, if a write gives it as it is. write: the last one to that very view."""
    later = itertools.takewhile(lambda each: each is not write, writes)
    return None if any(_meet(each.box, write.box) for each in later) else _value(node, write, writes)


def _value(node: Node, write: _Write, writes: Sequence[_Write]) -> Node | None:
    """Return the written value, if it is an array of the view's own form and available."""
    # of many writes, a loop may be made: what its last iteration writes is not to be had alone
    if sum(each.view == write.view for each in writes) > FEW_WRITES:
        return None
    value = write.value
    if not isinstance(value, Node) or value.host or value.dtype != node.dtype or value.shape != write.box.given:
        return None
    return value


def _view_of(write: Node, value_of: Callable[[Node], Any]) -> View | None:
    """Return the view that a write goes to; None if it is not known before the program has run."""
    if write.rule is core.WRITE:
        step = write.args[1]
        return step if isinstance(step, Index) else None
    extent, starts = write.args[1], write.args[3]
    known = tuple([_start_of(start, value_of) for start in starts])
    if None in known:
        return None
    if any(isinstance(start, OnHost) for start in known):
        return Placed(extent, known)
    settled: Index = extent.at(write.shape, known)
    return settled


def _start_of(start: Any, value_of: Callable[[Node], Any]) -> int | OnHost | None:
    if not isinstance(start, Node):
        return int(start)
    value = value_of(start)
    if value is not None:
        return int(value)
    return OnHost(start.index) if start.host else None


def _box_at(view: View, shape: tuple[int, ...]) -> Box | None:
    """The box of an array of `shape` that a view shows; None if that is no box."""
    if isinstance(view, Index):
        return box_of(shape, view.key)
    return Box(view.starts, view.extent.sizes, view.extent.given)


def size_of(views: Iterable[View], shape: tuple[int, ...]) -> int:
    """The number of elements of views that a program gives of an array of `shape`."""
    boxes = [_box_at(view, shape) for view in views]
    return sum(math.prod(box.sizes) for box in boxes if box is not None)


def _meet(one: Box, other: Box) -> bool:
    """Whether two boxes have elements in common."""
    return all(
        start < begin + length and begin < start + size
        for start, size, begin, length in zip(one.starts, one.sizes, other.starts, other.sizes, strict=True)
    )


def _holds(outer: Box, inner: Box) -> bool:
    """Whether a box lies within another, larger one."""
    return outer.sizes != inner.sizes and all(
        begin <= start and start + size <= begin + length
        for begin, length, start, size in zip(outer.starts, outer.sizes, inner.starts, inner.sizes, strict=True)
    )


def results(arrays: Iterable[Changed], first: int) -> list[Node]:
    """The arrays, or what their views hold at the end. first: an index from which on there are no nodes."""
    numbers = itertools.count(first)
    found: list[Node] = []
    for array in arrays:
        if array.contents is None:
            found.append(array.node)
            continue
        for view, value in array.contents.items():
            found.append(value or _read(array.node, view, next(numbers)))
    return found


def _read(array: Node, view: View, index: int) -> Node:
    box = _box_at(view, array.shape)
    assert box is not None
    dtype, where = array.dtype, array.where
    return Node(index, core.READ, (array, view), {}, shape=box.given, dtype=dtype, scalar=None, host=False, where=where)


def grouped(values: Iterable[Any], arrays: Iterable[Changed]) -> list[Any]:
    """Group the computed values of `results` by array: for each its whole value, or a list of its views."""
    rest = iter(values)
    return [next(rest) if array.views is None else [next(rest) for _ in array.views] for array in arrays]


@dataclass(slots=True)
class Written:
    """New contents of some views of an array. host: what Python has computed for the run, by index of nodes."""

    views: Sequence[View]
    contents: Sequence[NDArray[Any]]
    host: Mapping[int, Any]

    def steps(self, array: NDArray[Any]) -> list[Callable[[], None]]:
        """Return the calls that write the contents to the array. Each is C code: Python runs no signal handler
        within."""
        pairs = zip(self.places(array), self.contents, strict=True)
        return [partial(operator.setitem, array, place.key, content) for place, content in pairs]

    def now(self, array: NDArray[Any]) -> Written:
        """Return the array's present contents in these views."""
        return Written(self.views, [np.array(place.read(array)) for place in self.places(array)], self.host)

    def places(self, array: NDArray[Any]) -> list[Index]:
        """Return the places of the views in this run."""
        return [place_of(view, array.shape, self.host) for view in self.views]

    def of(self, before: NDArray[Any]) -> NDArray[Any]:
        """The whole array with them. before: as it was."""
        whole = np.array(before)
        for step in self.steps(whole):
            step()
        return whole
