"""Segments: a program as kernels and, between them, segments that something else computes, all on NumPy's arrays.

Values are numbered. A run fills a table of arrays: arguments and constants first, then the results of each segment.
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from accel.compiler.kernels import helpers, machine_code
from accel.compiler.kernels.helpers import Entry
from accel.compiler.kernels.module import ENTRY, Size
from accel.compiler.kernels.sharing import COUNTERS
from accel.platform import callbacks, interrupts, logs
from accel.platform.addresses import address_of
from accel.platform.alignment import aligned_array, made_at

_loading = threading.Lock()

_ENTRY_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)


@functools.cache
def _packer(count: int) -> Callable[..., bytes]:
    return struct.Struct(f"{count}P").pack


def pointer_table(addresses: Sequence[int]) -> bytes:
    """Return addresses as machine code reads them."""
    return _packer(len(addresses))(*addresses)


Form = tuple[tuple[int, ...], np.dtype[Any]]

Made = tuple[np.ndarray[Any, Any], int]
"""An array and its address."""


_rooms: list[Made] = []
"""Scratch memory for the next runs of kernels. All share it, as it is then likely to be in the cache."""


class ArrayTable:
    """The values of a run, by number: arrays, and the addresses of those that kernels have asked for.

    finite: those that have neither NaN nor infinity, as far as known.
    """

    __slots__ = ("addresses", "arrays", "finite")

    def __init__(self, count: int, known: Mapping[int, Made]) -> None:
        self.arrays: list[Any] = [None] * count
        self.addresses: list[int | None] = [None] * count
        self.finite: set[int] = set()
        for number, made in known.items():
            self.set(number, *made)

    def set(self, number: int, array: Any, address: int | None = None) -> None:
        """Set a value. address: its address, if it is known."""
        self.arrays[number], self.addresses[number] = array, address

    def address(self, number: int) -> int:
        """Return a value's address."""
        found = self.addresses[number]
        if found is None:
            found = self.addresses[number] = address_of(self.arrays[number])
        return found


@dataclass(slots=True)
class Segment:
    """Part of a program. inputs, outputs: numbers of values."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def fill(self, values: ArrayTable, memory: Mapping[int, Made]) -> None:
        """Compute the outputs. memory: for outputs that only other segments read."""
        found = self.run([values.arrays[number] for number in self.inputs])
        for number, array in zip(self.outputs, found, strict=True):
            values.set(number, array)

    def run(self, given: Sequence[Any]) -> Sequence[Any]:
        """Return the outputs, as arrays in C order."""
        raise NotImplementedError


@dataclass(slots=True)
class Kernel(Segment):
    """A segment of machine code.

    forms: shape and dtype of the outputs. reused: inputs and outputs that may be one array. checked: outputs that it
    checks for NaN and infinity. in_place: by output, the input whose array a run writes it to.
    """

    code: bytes
    forms: tuple[Form, ...]
    size: Size
    reused: tuple[tuple[int, int], ...] = ()
    checked: tuple[int, ...] = ()
    in_place: Mapping[int, int] = field(default_factory=dict)
    _loaded: machine_code.Loaded | None = None
    _call: Entry | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        about = self.forms, self.size, self.reused, self.checked, self.in_place
        return Kernel, (self.inputs, self.outputs, self.code, *about)

    def load(self) -> Entry:
        """Load the machine code and return its function. Raises any exception of llvmlite."""
        # once: a second one would free the code that another thread runs
        with _loading:
            if self._call is None:
                self._loaded = machine_code.Loaded(self.code)
                self._call = _ENTRY_TYPE(self._loaded.address(ENTRY))
            return self._call

    def fill(self, values: ArrayTable, memory: Mapping[int, Made]) -> None:
        call = self._call or self.load()
        for number, form in zip(self.outputs, self.forms, strict=True):
            if (place := self.in_place.get(number)) is None:
                values.set(number, *(memory.get(number) or made_at(*form)))
            else:
                values.set(number, values.arrays[place], values.address(place))
        room = self.take_room()
        room[0][0] = 0
        table = [*map(values.address, self.inputs), *map(values.address, self.outputs), room[1]]
        threads = helpers.threads_for(self.size.chunks)
        if threads > 1:
            # late helpers come to it after the run
            counters = np.zeros(COUNTERS * self.size.steps, np.uint8)
            packed = pointer_table([*table, address_of(counters)])
            helpers.team.run(call, packed, threads, (self, counters))
        else:
            call(pointer_table(table), 0, 1)
        if not room[0][0]:
            values.finite.update(self.checked)
        self.give_room(room)

    def take_room(self) -> Made:
        """Return scratch memory for one run, see `Size.room`."""
        # taken out while it is used, so that two runs at once have their own
        try:
            room = _rooms.pop()
            if len(room[0]) >= self.size.room:
                return room
        except IndexError:
            pass
        return made_at((self.size.room,), np.dtype(np.uint8))

    def give_room(self, room: Made) -> None:
        """Take scratch memory back."""
        _rooms.append(room)


@dataclass(slots=True)
class Segmented:
    """A program.

    forms: shape and dtype of the arguments, which are the first values. constants: values by number. results: a
    template of lists and dicts with numbers of values, and `Given` for a result that must be copied. changed: arguments
    that a run writes to. spare: memory for values between kernels.
    """

    forms: tuple[Form, ...]
    constants: Mapping[int, np.ndarray[Any, Any]]
    segments: Sequence[Segment]
    results: Any
    count: int
    changed: frozenset[int] = frozenset()
    spare: list[dict[int, Made]] = field(default_factory=list)
    _known: dict[int, Made] = field(default_factory=dict)
    _given: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        self._given = frozenset(_numbers(self.results))

    def __reduce__(self) -> tuple[Any, ...]:
        return Segmented, (self.forms, self.constants, self.segments, self.results, self.count, self.changed)

    def __call__(self, arrays: Sequence[Any], constants: Sequence[Any], scalars: Mapping[str, Any]) -> Any:
        """Run the program. Returns new arrays in the form of its results."""
        return self.run(arrays, constants, scalars)[0]

    def run(self, arrays: Sequence[Any], constants: Sequence[Any], scalars: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        """Run the program. Returns its results, and those of them that are known to be finite."""
        if len(self._known) < len(self.constants):
            self._known = {number: (array, address_of(array)) for number, array in self.constants.items()}
        values = ArrayTable(self.count, self._known)
        given = (*arrays, *constants, *(scalars[name] for name in sorted(scalars)))
        for number, (array, (_, dtype)) in enumerate(zip(given, self.forms, strict=True)):
            values.arrays[number] = np.asarray(array, dtype, order="C")
        memory = self.take_memory()
        for segment in self.segments:
            segment.fill(values, memory)
        self.spare.append(memory)
        finite = [values.arrays[number] for number in values.finite & self._given]
        return _filled(self.results, values.arrays), finite

    def take_memory(self) -> dict[int, Made]:
        """Return memory for kernel outputs that only later segments read. A run's results are new arrays."""
        # taken out while it is used, so that two runs at once have their own
        try:
            return self.spare.pop()
        except IndexError:
            pass
        return {
            number: made_at(*form)
            for segment in self.segments
            if isinstance(segment, Kernel)
            for number, form in zip(segment.outputs, segment.forms, strict=True)
            if number not in self._given
        }


@dataclass(slots=True)
class MatrixProduct(Segment):
    """A segment that multiplies two arrays as NumPy does.

    summed, batched: axes of the first array and of the second. The result has the batched axes first, then the others.
    """

    summed: tuple[tuple[int, ...], tuple[int, ...]]
    batched: tuple[tuple[int, ...], tuple[int, ...]]

    def run(self, given: Sequence[Any]) -> Sequence[Any]:
        x, y = given
        with np.errstate(all="ignore"):
            return [np.ascontiguousarray(self._product(x, y)).reshape(self._shape(x, y))]

    def _product(self, x: Any, y: Any) -> Any:
        if self.batched[0]:
            return np.matmul(self._matrices(x, 0), self._matrices(y, 1).swapaxes(1, 2))
        if self.summed == ((x.ndim - 1,), (max(y.ndim - 2, 0),)):
            # of stacks of matrices, `dot` computes each element by itself
            return np.matmul(x, y) if x.ndim > 2 >= y.ndim else np.dot(x, y)
        return np.tensordot(x, y, self.summed)

    def _own(self, array: Any, which: int) -> list[int]:
        return [dim for dim in range(array.ndim) if dim not in (*self.summed[which], *self.batched[which])]

    def _shape(self, x: Any, y: Any) -> tuple[int, ...]:
        axes = [(x, self.batched[0]), (x, self._own(x, 0)), (y, self._own(y, 1))]
        return tuple(array.shape[dim] for array, dims in axes for dim in dims)

    def _matrices(self, array: Any, which: int) -> Any:
        """Return the array as a stack of matrices whose rows are summed."""
        groups = self.batched[which], self._own(array, which), self.summed[which]
        lengths = [math.prod(array.shape[dim] for dim in group) for group in groups]
        return array.transpose([dim for group in groups for dim in group]).reshape(lengths)


@dataclass(slots=True)
class HostCall(Segment):
    """A segment that a function of Python's computes, see `accel.platform.callbacks`."""

    function: Callable[..., Any]
    forms: Sequence[callbacks.Form]
    fills: bool

    def run(self, given: Sequence[Any]) -> list[Any]:
        if self.fills:
            filled = [aligned_array(shape, np.dtype(dtype)) for shape, dtype in self.forms]
            try:
                callbacks.fill(self.function, given, filled)
            except Exception as error:
                interrupts.pass_on(error)
                raise callbacks.Failed from error
            return [*filled, np.array(True)]
        try:
            found = callbacks.results_of(self.function, given, self.forms)
            if found is not None:
                # copies: the function may keep what it gives
                return [*(np.array(each, order="C") for each in found), np.array(True)]
        except Exception as error:
            interrupts.pass_on(error)
            logs.LOGGER.debug("a function that a program calls raised", exc_info=True)
        return [*(np.zeros(shape, dtype) for shape, dtype in self.forms), np.array(False)]


@dataclass(frozen=True, slots=True)
class Given:
    """A result that has to be copied: it is an argument, a constant, or another result too."""

    number: int


def body_of(program: Segmented, state: range) -> Segmented:
    """Return the program for use as a loop body: it does not copy arguments that it returns, and writes to its state.

    state: the arguments that its first results become in the next iteration.
    """
    results = [each.number if isinstance(each, Given) else each for each in program.results]
    segments, changed = list(program.segments), set[int]()
    for at, segment in enumerate(segments):
        if isinstance(segment, Kernel):
            in_place = {
                target: source
                for source, target in segment.reused
                if source in state
                and results[source - state.start] == target
                and results.count(target) == 1
                and source not in results
                and all(isinstance(each, Kernel) for each in segments if {source, target} & {*each.inputs})
                and not any(source in each.inputs for each in segments[at + 1 :])
            }
            segments[at] = replace(segment, in_place=in_place)
            changed.update(in_place.values())
    return replace(program, results=results, segments=tuple(segments), changed=frozenset(changed))


def _numbers(template: Any) -> Iterator[int]:
    if isinstance(template, int):
        yield template
    elif not isinstance(template, Given):
        for each in template.values() if isinstance(template, dict) else template:
            yield from _numbers(each)


def _filled(template: Any, values: Sequence[Any]) -> Any:
    if isinstance(template, int):
        return values[template]
    if isinstance(template, Given):
        return np.array(values[template.number])
    if isinstance(template, dict):
        return {name: _filled(each, values) for name, each in template.items()}
    # most are numbers: a call for each takes as long as a small kernel
    found = [values[each] if type(each) is int else _filled(each, values) for each in template]
    return found if type(template) is list else type(template)(found)
