"""Iterating: the body of a loop, run again and again on memory that is found once.

To find the arrays and addresses of one run takes 25 us, longer than many a body computes. Iterations whose memory is
that of earlier ones are run by machine code: Python takes 3 us for each.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from accel.compiler.kernels import helpers, machine_code
from accel.compiler.kernels.helpers import Entry
from accel.compiler.kernels.segments import Form, Kernel, Made, Segmented, pointer_table
from accel.platform.addresses import address_of
from accel.platform.alignment import made_at

_MOST_BYTES = 1 << 18
"""Maximum size of one argument of a body. Where arrays are larger, finding them is quick beside computing."""


_MANY = 256
"""Maximum kernels that run without a look at signals: of small arrays, they take some milliseconds."""

_DRIVER = """
define i64 @drive(ptr %calls, i64 %count, i64 %most) {
start:
  br label %call
call:
  %made = phi i64 [ 0, %start ], [ %more, %next ]
  %at = phi i64 [ 0, %start ], [ %following, %next ]
  %first = mul i64 %at, 3
  %place = getelementptr ptr, ptr %calls, i64 %first
  %function = load ptr, ptr %place
  %second = getelementptr ptr, ptr %place, i64 1
  %table = load ptr, ptr %second
  %third = getelementptr ptr, ptr %place, i64 2
  %flag = load ptr, ptr %third
  call void %function(ptr %table, i64 0, i64 1)
  %more = add i64 %made, 1
  %asks = icmp ne ptr %flag, null
  br i1 %asks, label %ask, label %next
ask:
  %value = load i8, ptr %flag
  %ends = icmp eq i8 %value, 0
  br i1 %ends, label %end, label %next
next:
  %up = add i64 %at, 1
  %wraps = icmp eq i64 %up, %count
  %following = select i1 %wraps, i64 0, i64 %up
  %is_last = icmp eq i64 %more, %most
  br i1 %is_last, label %end, label %call
end:
  ret i64 %more
}
"""
"""Calls functions in a circle until a flag is 0, and at most `most` of them. Returns how many. calls: a row for each:
the function, its pointer table, and the flag to look at afterwards, or null."""


@functools.cache
def _driver() -> tuple[machine_code.Loaded, Callable[[bytes, int, int], int]]:
    """The function, with what holds its memory."""
    loaded = machine_code.Loaded(machine_code.object_of(_DRIVER))
    return loaded, ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)(
        loaded.address("drive")
    )


class _Tables(NamedTuple):
    """One iteration: its kernels with their pointer tables. results: numbers of arrays."""

    calls: Sequence[tuple[Entry, bytes]]
    results: tuple[int, ...]

    def rows(self, flag: int) -> list[int]:
        """The driver's rows. flag: the address of what is looked at after the iteration, or 0."""
        found: list[int] = []
        for call, table in self.calls:
            # of the bytes object, which this holds
            found += [_address(call), _address(ctypes.c_char_p(table)), 0]
        found[-1] = flag
        return found


def _address(pointer: Any) -> int:
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0


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
        self._rows: dict[tuple[tuple[int, ...], bool], bytes] = {}

    def array(self, number: int) -> np.ndarray[Any, Any]:
        return self._arrays[number][0]

    def iterate(self) -> Sequence[int]:
        """Run one iteration. Returns the numbers of the results behind the state."""
        tables = self._tables.get(self.state)
        if tables is None:
            tables = self._tables[self.state] = self._made()
        for call, table in tables.calls:
            call(table, 0, 1)
        return self._after(tables)

    def _after(self, tables: _Tables) -> Sequence[int]:
        self.state = tables.results[: len(self._state)]
        return tables.results[len(self._state) :]

    def iterate_on(self, most: int = _MANY, *, asks: bool = False) -> tuple[int, Sequence[int]]:
        """Run at least one iteration and at most so many. Returns their number, and the results of the last one.

        asks: whether to end after an iteration whose first result behind the state is False.
        """
        circle = self._circle() if self._rooms else []
        rounds = min(most, _MANY // len(self._rooms)) // len(circle) if circle else 0
        if rounds < 2:
            return 1, self.iterate()
        key = self.state, asks
        if key not in self._rows:
            behind = len(self._state)
            flags = [self._arrays[each.results[behind]][1] if asks else 0 for each in circle]
            rows = [number for each, flag in zip(circle, flags, strict=True) for number in each.rows(flag)]
            self._rows[key] = pointer_table(rows)
        calls = len(circle) * len(self._rooms)
        made = _driver()[1](self._rows[key], calls, rounds * calls) // len(self._rooms)
        return made, self._after(circle[(made - 1) % len(circle)])

    def _circle(self) -> list[_Tables]:
        """The tables of the next iterations, up to the one whose state lies where the next one's does; none if these
        are not all known."""
        found: list[_Tables] = []
        state = self.state
        while (tables := self._tables.get(state)) is not None and len(found) <= len(self._tables):
            found.append(tables)
            state = tables.results[: len(self._state)]
            if state == self.state:
                return found
        return []

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
            calls.append((kernel.load(), pointer_table([*addresses, room[1]])))
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
