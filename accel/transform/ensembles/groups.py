"""Groups: on a CPU, members that are too many to compute together are divided among the processors.

XLA divides each operation among threads, and waits for all of them at its end. Members need no such barrier: two halves
of 16 members at 121x240, a thread for each, take 0.6 of the time on 2 processors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from accel.backend.shards import equal_parts
from accel.platform import processors


def number_of_groups(members: int, chunk: int) -> int:
    """Return the number of equal groups of members. chunk: number of members computed together; 1 group if all are."""
    if chunk >= members:
        return 1
    return equal_parts(members, processors.usable())


class Group(NamedTuple):
    """The members from `start` up to `end`, exclusive."""

    start: int
    end: int

    def of(self, values: Sequence[Any], own: Sequence[int]) -> list[Any]:
        """Return the group's part of values. own: positions of values with the members along their first axis."""
        found = list(values)
        for position in own:
            found[position] = np.asarray(values[position])[self.start : self.end]
        return found


class InGroups:
    """A step of all members in which each group is one call, in its own thread.

    compiled: a step of one group of `size` members. own: positions of inputs with the members along their first axis.
    outputs_apart: for each output, whether it has the members along its first axis; other outputs are equal for all
    groups.
    """

    def __init__(
        self,
        compiled: Callable[[list[Any]], Sequence[Any]],
        own: Sequence[int],
        outputs_apart: Sequence[bool],
        groups: int,
        size: int,
    ) -> None:
        self._compiled, self._own, self._outputs_apart = compiled, own, outputs_apart
        self._groups = [Group(number * size, (number + 1) * size) for number in range(groups)]

    def __call__(self, given: list[Any]) -> list[Any]:
        with ThreadPoolExecutor(len(self._groups)) as pool:
            steps = list(pool.map(lambda group: self._step(group, given), self._groups))
            first = steps[0]
            whole = [
                np.empty((self._groups[-1].end, *each.shape[1:]), each.dtype) if is_apart else each
                for each, is_apart in zip(first, self._outputs_apart, strict=True)
            ]
            list(pool.map(lambda group, step: self._put(group, step, whole), self._groups, steps))
        return whole

    def _step(self, group: Group, given: list[Any]) -> list[np.ndarray[Any, Any]]:
        import jax

        with jax.enable_x64(True):  # a setting of each thread
            return [np.asarray(each) for each in self._compiled(group.of(given, self._own))]

    def _put(self, group: Group, step: Sequence[Any], whole: Sequence[Any]) -> None:
        """Copy a group's outputs into the arrays of all members."""
        for each, target, is_apart in zip(step, whole, self._outputs_apart, strict=True):
            if is_apart:
                target[group.start : group.end] = each
