"""Shards: how a program's arrays are divided among several devices of one machine.

Fields are divided by rows: arrays of two axes or more along their first one, where that has the length that most of
them have there. All else is on each device. XLA's partitioner divides the operations accordingly, and moves the rows
at the borders from device to device where a stencil reads them.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import prod
from typing import Any

from accel.process import forks

ROWS = "rows"
"""The name of the one axis of devices."""

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
    """A division among devices. devices: those that are used. rows: the length of the first axis that is divided."""

    devices: tuple[Any, ...]
    rows: int
    _mesh: Any = field(repr=False, compare=False)

    @property
    def everywhere(self) -> Any:
        """The sharding of what each device has whole."""
        return self._sharding()

    def of(self, shape: Sequence[int]) -> Any:
        """The sharding of an array of this shape."""
        return self._sharding(ROWS) if len(shape) > 1 and shape[0] == self.rows else self._sharding()

    def _sharding(self, *names: str) -> Any:
        from jax.sharding import NamedSharding, PartitionSpec

        return NamedSharding(self._mesh, PartitionSpec(*names))


def equal_parts(total: int, most: int) -> int:
    """Into how many parts of one size so many things can be divided, at most so many parts."""
    return max(each for each in range(1, most + 1) if total % each == 0)


def division(devices: Sequence[Any], shapes: Iterable[Sequence[int]]) -> Shards | str:
    """How arrays of these shapes are divided among the devices, or as many of them as divide the rows; or why not."""
    counts: Counter[int] = Counter()
    for shape in shapes:
        if len(shape) > 1:
            counts[shape[0]] += prod(shape)
    if not any(counts.values()):
        return "it takes no array of two axes"
    rows = counts.most_common(1)[0][0]
    number = equal_parts(rows, len(devices))
    if number == 1:
        return f"{rows} rows cannot be divided among up to {len(devices)} devices"
    import numpy as np
    from jax.sharding import Mesh

    used = tuple(devices[:number])
    return Shards(used, rows, Mesh(np.array(used), (ROWS,)))
