"""Iterating: the body of a loop, run again and again on memory that is found once.

To find the arrays and addresses of one run takes 25 us, longer than many a body computes. Iterations whose memory is
that of earlier ones, or the next rows of the same arrays, are run by machine code.
"""

from __future__ import annotations

import ctypes
import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from accel.compiler.kernels import helpers, machine_code
from accel.compiler.kernels.accumulators import loop
from accel.compiler.kernels.helpers import Entry
from accel.compiler.kernels.segments import Form, Kernel, Made, Segmented, pointer_table
from accel.platform.addresses import address_of
from accel.platform.alignment import made_at

_MANY = 256
"""Maximum kernels, or chunks of large ones, that run without a look at signals: some milliseconds."""

_MOVE = (
    "%move = getelementptr { i64, i64 }, ptr %moving, i64 %m",
    "%entry_and_step = load { i64, i64 }, ptr %move",
    "%entry = extractvalue { i64, i64 } %entry_and_step, 0",
    "%step = extractvalue { i64, i64 } %entry_and_step, 1",
    "%address = getelementptr i64, ptr %table, i64 %entry",
    "%old = load i64, ptr %address",
    "%new = add i64 %old, %step",
    "store i64 %new, ptr %address",
)

_ROW = "{ ptr, ptr, ptr, ptr, i64 }"

_DRIVER = "\n".join(
    [
        "define i64 @drive(ptr %calls, i64 %count, i64 %most) {",
        "br label %call",
        "call:",
        "%made = phi i64 [ 0, %0 ], [ %more, %next ]",
        "%at = phi i64 [ 0, %0 ], [ %following, %next ]",
        f"%place = getelementptr {_ROW}, ptr %calls, i64 %at",
        f"%row = load {_ROW}, ptr %place",
        *(
            f"%{name} = extractvalue {_ROW} %row, {n}"
            for n, name in enumerate("function table flag moving all".split())
        ),
        "call void %function(ptr %table, i64 0, i64 1)",
        *loop("m", "%all", _MOVE),
        "%more = add i64 %made, 1",
        "%asks = icmp ne ptr %flag, null",
        "br i1 %asks, label %ask, label %next",
        "ask:",
        "%value = load i8, ptr %flag",
        "%ends = icmp eq i8 %value, 0",
        "br i1 %ends, label %end, label %next",
        "next:",
        "%up = add i64 %at, 1",
        "%wraps = icmp eq i64 %up, %count",
        "%following = select i1 %wraps, i64 0, i64 %up",
        "%is_last = icmp eq i64 %more, %most",
        "br i1 %is_last, label %end, label %call",
        "end:",
        "ret i64 %more",
        "}",
    ]
)
"""Calls functions in a circle until a flag is 0, and at most `most` of them. Returns how many. calls: a row for each:
the function, its pointer table, the flag to look at afterwards or null, and a list with its length: of numbers of
addresses in the table, each with the bytes by which to move it afterwards."""


@functools.cache
def _driver() -> tuple[machine_code.Loaded, Callable[[bytes, int, int], int]]:
    """The function, with what holds its memory."""
    loaded = machine_code.Loaded(machine_code.object_of(_DRIVER))
    return loaded, ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)(
        loaded.address("drive")
    )


class _Moving(NamedTuple):
    """An array of which each iteration has another row. base: its address. lag: the number of iterations since a row
    was the current one's."""

    array: np.ndarray[Any, Any]
    base: int
    backwards: bool
    lag: int = 0

    @property
    def step(self) -> int:
        """Bytes to the next iteration's row."""
        return -self.array.strides[0] if self.backwards else self.array.strides[0]

    def _place(self, iteration: int) -> int:
        number = iteration - self.lag
        return len(self.array) - 1 - number if self.backwards else number

    def address(self, iteration: int) -> int:
        return self.base + self._place(iteration) * self.array.strides[0]

    def row(self, iteration: int) -> np.ndarray[Any, Any]:
        """Return an iteration's row, as a view."""
        row: np.ndarray[Any, Any] = self.array[self._place(iteration), ...]
        return row


class _Call(NamedTuple):
    """One kernel's run in an iteration. table: its pointers. moving: the place of each in it that moves."""

    entry: Entry
    table: np.ndarray[Any, Any]
    moving: Sequence[tuple[int, _Moving]]

    def set(self, iteration: int) -> None:
        for place, each in self.moving:
            self.table[place] = each.address(iteration)

    def moves(self, iterations: int) -> np.ndarray[Any, Any]:
        """Return the driver's list: how to move them by so many iterations."""
        return np.array([(place, each.step * iterations) for place, each in self.moving], np.int64)


class _Tables(NamedTuple):
    """One iteration. results, state: numbers of its results, and of the next one's state."""

    calls: Sequence[_Call]
    results: tuple[int, ...]
    state: tuple[int, ...]


class LoopRun:
    """A loop in progress.

    An iteration whose state lies where that of an earlier one did, or as many rows behind its own, has the same tables.
    """

    def __init__(
        self,
        body: Segmented,
        given: Sequence[Any],
        state: range,
        rows: Sequence[Any] = (),
        collected: Sequence[Any] = (),
        *,
        backwards: bool = False,
    ) -> None:
        """body: see `may_drive`. given: its arguments but for `rows`, arrays that it is passed row by row.

        state: which arguments are an iteration's first results in the next one. collected: arrays whose rows become the
        other results.
        """
        forms = zip((*given, *rows), body.forms, strict=True)
        arrays = [np.asarray(array, dtype, order="C") for array, (_, dtype) in forms]
        given, rows = arrays[: state.stop], arrays[state.stop :]
        self._body, self._state, self._done = body, state, 0
        self._arrays: list[Made] = []
        self._moving: dict[int, _Moving] = {}
        self._later: dict[int, int] = {}  # by number of a row: that of the same row in the next iteration
        self._rooms = [(kernel, kernel.take_room()) for kernel in _kernels(body)]
        self._chunks = sum(max(kernel.size.chunks, 1) for kernel, _ in self._rooms)
        self._spare = body.take_memory()
        known = [*body.constants.items(), *enumerate(given)]
        made = {number: (array, address_of(array)) for number, array in known} | self._spare
        self._known = {number: self._add(each) for number, each in made.items()}
        self.state = tuple(self._known[number] for number in state)
        self._known |= {
            state.stop + at: self._add_rows(_Moving(each, address_of(each), backwards)) for at, each in enumerate(rows)
        }
        # results that are written where they are collected, and those that are copied there
        self._targets: dict[int, int] = {}
        self._copied: list[tuple[int, _Moving]] = []
        written = {each for kernel, _ in self._rooms for each in kernel.outputs if each not in kernel.in_place}
        for at, (number, array) in enumerate(zip(body.results[len(state) :], collected, strict=False)):
            target = _Moving(array, address_of(array), backwards)
            if number in written and number not in self._targets:
                self._targets[number] = self._add_rows(target)
            else:
                self._copied.append((len(state) + at, target))
        self._buffers: dict[int, list[int]] = defaultdict(list)
        self._tables: dict[tuple[int, ...], _Tables] = {}
        self._rows: dict[tuple[tuple[int, ...], bool], tuple[bytes, Any]] = {}

    def array(self, number: int) -> np.ndarray[Any, Any]:
        return self._arrays[number][0]

    def iterate(self) -> Sequence[int]:
        """Run one iteration. Returns the numbers of the results behind the state."""
        tables = self._tables.get(self.state)
        if tables is None:
            tables = self._tables[self.state] = self._made()
        for call in tables.calls:
            call.set(self._done)
            call.entry(call.table.tobytes(), 0, 1)
        for at, target in self._copied:
            target.row(self._done)[...] = self._value(tables.results[at], self._done)
        return self._after(tables, 1)

    def _after(self, tables: _Tables, made: int) -> Sequence[int]:
        self._done += made
        self.state = tables.state
        return tables.results[len(self._state) :]

    def iterate_on(self, most: int = _MANY, *, asks: bool = False) -> tuple[int, Sequence[int]]:
        """Run at least one iteration and at most so many. Returns their number, and the results of the last one.

        asks: whether to end after an iteration whose first result behind the state is False.
        """
        circle = self._circle() if self._rooms and not self._copied else []
        rounds = min(most, _MANY // self._chunks) // len(circle) if circle else 0
        if rounds < 1 or len(circle) * rounds < 2:
            return 1, self.iterate()
        key = self.state, asks
        if key not in self._rows:
            self._rows[key] = self._driven(circle, asks=asks)
        for at, tables in enumerate(circle):
            for call in tables.calls:
                call.set(self._done + at)
        calls = len(circle) * len(self._rooms)
        made = _driver()[1](self._rows[key][0], calls, rounds * calls) // len(self._rooms)
        return made, self._after(circle[(made - 1) % len(circle)], made)

    def _driven(self, circle: Sequence[_Tables], *, asks: bool) -> tuple[bytes, Any]:
        """Return the driver's rows, and what holds the memory of their lists."""
        rows, kept = list[int](), list[Any]()
        for tables in circle:
            for call in tables.calls:
                moves = call.moves(len(circle))
                kept.append(moves)
                entry = ctypes.cast(call.entry, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
                rows += [entry, address_of(call.table), 0, address_of(moves), len(moves)]
            if asks:
                rows[-3] = self._arrays[tables.results[len(self._state)]][1]
        return pointer_table(rows), kept

    def _circle(self) -> list[_Tables]:
        """The tables of the next iterations, up to the one whose state lies where the next one's does; none if these
        are not all known."""
        found: list[_Tables] = []
        state = self.state
        while (tables := self._tables.get(state)) is not None and len(found) <= len(self._tables):
            found.append(tables)
            state = tables.state
            if state == self.state:
                return found
        return []

    def end(self) -> list[np.ndarray[Any, Any]]:
        """Return the last state, and give back what the body lends."""
        for kernel, room in self._rooms:
            kernel.give_room(room)
        self._body.spare.append(self._spare)
        return [
            np.array(self._value(each, self._done)) if each in self._moving else self.array(each) for each in self.state
        ]

    def _value(self, number: int, iteration: int) -> np.ndarray[Any, Any]:
        """Return an array, or the row of it that an iteration has."""
        return self._moving[number].row(iteration) if number in self._moving else self.array(number)

    def _add(self, made: Made) -> int:
        self._arrays.append(made)
        return len(self._arrays) - 1

    def _add_rows(self, moving: _Moving) -> int:
        """Return the number of an array of which each iteration has a row."""
        number = self._add((moving.array, moving.base))
        self._moving[number] = moving
        return number

    def _next(self, number: int) -> int:
        """Return the number, in the next iteration, of what has this one in the current one."""
        row = self._moving.get(number)
        if row is None:
            return number
        if number not in self._later:
            self._later[number] = self._add_rows(row._replace(lag=row.lag + 1))
        return self._later[number]

    def _made(self) -> _Tables:
        numbers = self._known | dict(zip(self._state, self.state, strict=True)) | self._targets
        calls = []
        for kernel, room in self._rooms:
            for output, form in zip(kernel.outputs, kernel.forms, strict=True):
                if output in kernel.in_place:
                    numbers[output] = numbers[kernel.in_place[output]]
                elif output not in numbers:
                    numbers[output] = self._buffer(output, form)
            used = [numbers[each] for each in (*kernel.inputs, *kernel.outputs)]
            table = np.array([*(self._arrays[each][1] for each in used), room[1]], np.uint64)
            moving = [(place, self._moving[each]) for place, each in enumerate(used) if each in self._moving]
            calls.append(_Call(kernel.load(), table, moving))
        results = tuple(numbers[each] for each in self._body.results)
        return _Tables(calls, results, tuple(map(self._next, results[: len(self._state)])))

    def _buffer(self, output: int, form: Form) -> int:
        """Return the number of an array for a result that this iteration does not read."""
        for number in self._buffers[output]:
            if number not in self.state:
                return number
        self._buffers[output].append(self._add(made_at(*form)))
        return self._buffers[output][-1]


def may_drive(body: Segmented) -> bool:
    """Whether a `LoopRun` may run a body: kernels compute all of it, each by one thread."""
    return has_kernels_alone(body) and all(helpers.threads_for(each.size.chunks) == 1 for each in _kernels(body))


def has_kernels_alone(body: Segmented) -> bool:
    """Whether kernels compute all of a body."""
    return all(type(each) is Kernel for each in body.segments)


def _kernels(body: Segmented) -> Iterator[Kernel]:
    return (each for each in body.segments if isinstance(each, Kernel))
