"""Shards: how a program's arrays are divided among several devices, of one machine or of several.

Fields are divided by rows: arrays of two axes or more along their first one, if it has the length that most of them
have there. If more devices can divide the columns, fields are divided by columns, along their last axis. JAX gives each
device as much as the others: 721 rows are divided among 7 of 8 devices, and 1440 columns among 8. All else is on each
device. XLA's partitioner divides the operations accordingly. If a stencil reads across a border, it moves the values
there from device to device.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import prod
from typing import Any

from accel.platform import forks

PARTS = "parts"
"""The name of the one axis of devices."""

ROWS, COLUMNS = 0, -1
"""The axis along which arrays are divided."""

_lock = threading.RLock()  # a signal handler may launch a program while its thread is here


@forks.in_child
def _in_child() -> None:
    """Replace the lock, which another thread may have held."""
    global _lock
    _lock = threading.RLock()


def launching() -> AbstractContextManager[Any]:
    """Held while a program of several devices is launched and runs.

    Two of them at once may each hold devices for which the other waits, for ever.
    """
    return _lock


@dataclass(frozen=True, slots=True)
class Shards:
    """A division among devices. devices: those that are used. axis: ROWS or COLUMNS. length: of a divided axis."""

    devices: tuple[Any, ...]
    axis: int
    length: int
    _mesh: Any = field(repr=False, compare=False)

    @property
    def everywhere(self) -> Any:
        """The sharding of what each device has whole."""
        return self._sharding()

    @property
    def is_across(self) -> bool:
        """Whether some of the devices belong to other processes."""
        return len({device.process_index for device in self.devices}) > 1

    def of(self, shape: Sequence[int]) -> Any:
        """The sharding of an array of this shape."""
        if len(shape) < 2 or shape[self.axis] != self.length:
            return self._sharding()
        return self._sharding(*[None] * (len(shape) - 1 if self.axis == COLUMNS else 0), PARTS)

    def _sharding(self, *names: str | None) -> Any:
        from jax.sharding import NamedSharding, PartitionSpec

        return NamedSharding(self._mesh, PartitionSpec(*names))


def shards_of(devices: Sequence[Any], axis: int, length: int) -> Shards:
    """Equal parts of an axis of this length, one for each of these devices."""
    import numpy as np
    from jax.sharding import Mesh

    return Shards(tuple(devices), axis, length, Mesh(np.array(devices), (PARTS,)))


def equal_parts(total: int, most: int) -> int:
    """Return the largest number of equal parts, at most a limit, that divides a count."""
    return max(each for each in range(1, most + 1) if total % each == 0)


def division(devices: Sequence[Any], shapes: Iterable[Sequence[int]]) -> Shards | str:
    """Return the division of arrays of these shapes among the devices, or the reason why there is none.

    Only as many devices are used as divide an axis.
    """
    fields = [tuple(shape) for shape in shapes if len(shape) > 1 and 0 not in shape]
    if not fields:
        return "it takes no array of two axes"
    rows, columns = (_usual_length(fields, axis) for axis in (ROWS, COLUMNS))
    by_rows, by_columns = equal_parts(rows, len(devices)), equal_parts(columns, len(devices))
    if by_rows == by_columns == 1:
        return f"neither {rows} rows nor {columns} columns can be divided among up to {len(devices)} devices"
    if by_rows >= by_columns:
        return shards_of(devices[:by_rows], ROWS, rows)
    return shards_of(devices[:by_columns], COLUMNS, columns)


def _usual_length(shapes: Iterable[tuple[int, ...]], axis: int) -> int:
    """The length of an axis in most of these shapes, each weighted by its elements."""
    counts: Counter[int] = Counter()
    for shape in shapes:
        counts[shape[axis]] += prod(shape)
    return counts.most_common(1)[0][0]
