"""Iterating: the body of a loop, run again and again on memory that is found once.

To find the arrays and addresses of one run takes 25 us, longer than many a body computes.
"""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from accel.compiler.kernels import helpers
from accel.compiler.kernels.segments import Form, Kernel, Made, Segmented
from accel.platform.addresses import address_of
from accel.platform.alignment import made_at

_MOST_BYTES = 1 << 18
"""Maximum size of one argument of a body. Where arrays are larger, finding them is quick beside computing."""


class _Tables(NamedTuple):
    """One iteration: its kernels with their pointer tables. results: numbers of arrays."""

    calls: Sequence[tuple[Callable[[bytes, int, int], None], bytes]]
    results: tuple[int, ...]


class LoopRun:
    """A loop in progress. arguments: the first iteration's. state: numbers of arrays that the next one is given.

    An iteration whose state lies where that of an earlier one did has the same tables.
    """

    def __init__(self, body: Segmented, given: Sequence[Any], state: range) -> None:
        """given: the body's arguments. state: which of them are an iteration's first results in the next one."""
        self._body = body
        self._arrays: list[Made] = []
        self._state = state
        self.arguments = given
        self._rooms = [(kernel, kernel.take_room()) for kernel in body.segments if isinstance(kernel, Kernel)]
        self._spare = body.take_memory()
        known = [*body.constants.items(), *enumerate(given)]
        made = {number: (array, address_of(array)) for number, array in known} | self._spare
        self._known = {number: self._add(each) for number, each in made.items()}
        self.state = tuple(self._known[number] for number in state)
        self._buffers: dict[int, list[int]] = defaultdict(list)
        self._tables: dict[tuple[int, ...], _Tables] = {}

    def array(self, number: int) -> np.ndarray[Any, Any]:
        return self._arrays[number][0]

    def iterate(self) -> Sequence[int]:
        """Run one iteration. Returns the numbers of the results behind the state."""
        tables = self._tables.get(self.state)
        if tables is None:
            tables = self._tables[self.state] = self._made()
        for call, table in tables.calls:
            call(table, 0, 1)
        self.state = tables.results[: len(self._state)]
        return tables.results[len(self._state) :]

    def end(self) -> list[np.ndarray[Any, Any]]:
        """Return the last state, and give back what the body lends."""
        for kernel, room in self._rooms:
            kernel.give_room(room)
        self._body.spare.append(self._spare)
        return [self.array(each) for each in self.state]

    def _add(self, made: Made) -> int:
        self._arrays.append(made)
        return len(self._arrays) - 1

    def _made(self) -> _Tables:
        numbers = self._known | dict(zip(self._state, self.state, strict=True))
        calls = []
        for kernel, room in self._rooms:
            for output, form in zip(kernel.outputs, kernel.forms, strict=True):
                if output in kernel.in_place:
                    numbers[output] = numbers[kernel.in_place[output]]
                elif output not in numbers:
                    numbers[output] = self._buffer(output, form)
            addresses = [self._arrays[numbers[each]][1] for each in (*kernel.inputs, *kernel.outputs)]
            calls.append((kernel.load(), struct.pack(f"{len(addresses) + 1}P", *addresses, room[1])))
        return _Tables(calls, tuple(numbers[each] for each in self._body.results))

    def _buffer(self, output: int, form: Form) -> int:
        """Return the number of an array for a result that this iteration does not read."""
        for number in self._buffers[output]:
            if number not in self.state:
                return number
        self._buffers[output].append(self._add(made_at(*form)))
        return self._buffers[output][-1]


def loop_run(body: Segmented, given: Sequence[Any], state: range) -> LoopRun | None:
    """Return the loop, or None where the body's own runs are as quick or needed.

    These are needed for segments that are no kernels, and where several threads compute them. given: the first
    iteration's arguments. Those behind the state are copied, so that the next one's can be written to them.
    """
    if any(number in range(state.stop, len(given)) for number in body.results[: len(state)]):
        return None  # a row stays in the state
    kernels = [each for each in body.segments if isinstance(each, Kernel)]
    if not is_small(body) or any(helpers.threads_for(each.size.chunks) > 1 for each in kernels):
        return None
    arrays = [np.asarray(array, dtype, order="C") for array, (_, dtype) in zip(given, body.forms, strict=True)]
    return LoopRun(body, [*arrays[: state.stop], *map(np.array, arrays[state.stop :])], state)


def is_small(body: Segmented) -> bool:
    """Whether a body has kernels alone, and small arrays."""
    small = all(math.prod(shape) * dtype.itemsize <= _MOST_BYTES for shape, dtype in body.forms)
    return small and all(type(each) is Kernel for each in body.segments)
