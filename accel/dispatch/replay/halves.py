"""Halves: two threads draw the numbers of one stream, and get those that one thread alone would have got.

The number of a bit generator's outputs that a draw takes is known beforehand only approximately: NumPy takes more for
some of its numbers. But a thread that begins a little before or after the right place soon draws the same numbers. It
does so as soon as both threads begin a number at the same place.

So the second thread begins some numbers before the place where the first one is expected to end. The end of the first
is then looked up among the second's first numbers. The generator's state proves the place: it must be the very state at
which the first thread has ended.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.backend.alignment import ALIGNED
from accel.record.state.draw import Draw
from accel.record.values.draws.formulas import twin_of
from accel.record.values.draws.generators import KINDS

Numbers = NDArray[np.float64]

KIND = KINDS[np.random.Generator]

ADVANCING = frozenset({np.random.PCG64, np.random.PCG64DXSM})
"""Bit generators that can advance by many of their numbers at once."""


class Rate(NamedTuple):
    """Number of a bit generator's outputs that one number takes, and its deviation, which adds up as a square root."""

    mean: float
    deviation: float


_ONE, _NORMAL, _EXPONENTIAL = Rate(1.0, 0.0), Rate(1.0221, 0.2), Rate(1.0338, 0.25)

RATES = {
    **dict.fromkeys(("random", "uniform", "laplace", "logistic", "gumbel", "triangular"), _ONE),
    **dict.fromkeys(("standard_normal", "normal", "lognormal"), _NORMAL),
    **dict.fromkeys(
        ("standard_exponential", "exponential", "rayleigh", "weibull", "pareto", "power"),
        _EXPONENTIAL,
    ),
}
"""Methods whose numbers are drawn one after the other, and do not take more for other parameters. Measured over a
million numbers. Were one wrong in some version of NumPy, the halves would not fit together: one thread would draw."""

FILLING = frozenset({"random", "standard_normal", "standard_exponential"})
"""Methods among RATES that fill an array which they are given."""

MOST_TRIED = 4
"""Maximum number of places at which the halves are tried for a fit. Numbers that are all alike have many such
places."""

SKIP = 64
"""Minimum number of draws that the second thread makes before the place where the first one ends."""

PROBED = SKIP // 2
"""The second's number that is looked for among the first's: by then both draw the same."""

DEVIATIONS = 6.0
"""Number of standard deviations from the expected place that are provided for."""

LEAST = 10_000
"""Minimum number of random numbers that are worth two threads."""


@dataclass(frozen=True)
class Divisible:
    """Draws that two threads can make: consecutive ones of one generator's, all by one method.

    owner: the generator's slot. parameters: of all draws, by name. parts: of each draw, its slot, its shape, and where
    it begins and ends. total: of all.
    """

    owner: int
    method: str
    parameters: Mapping[str, float]
    parts: tuple[tuple[int, tuple[int, ...], int, int], ...]
    total: int


def divisible(draws: Sequence[Draw]) -> Divisible | None:
    """The draws of a path as those of two threads; None where one thread has to make them."""
    methods, owners = {draw.method for draw in draws}, {draw.owner for draw in draws}
    given = [_parameters(draw) for draw in draws]
    if len(methods) != 1 or len(owners) != 1 or any(each is None or each != given[0] for each in given):
        return None
    parts, total = [], 0
    for draw in draws:
        assert draw.form is not None
        size = math.prod(draw.form.shape)
        parts.append((draw.slot, draw.form.shape, total, total + size))
        total += size
    (owner,), (method,) = owners, methods
    if total < LEAST or owner is None or given[0] is None:
        return None
    return Divisible(owner, method, given[0], tuple(parts), total)


def _parameters(draw: Draw) -> dict[str, float] | None:
    """The parameters of a draw of an array of float64s; None if it takes more than numbers and a shape."""
    form = draw.form
    if draw.method not in RATES or form is None or form.dtype != np.float64 or form.scalar is not None:
        return None
    given = KIND.methods[draw.method].bound(draw.args, draw.kwargs)
    size = given.pop("size", None)
    is_of_form = size == form.shape or (type(size) is int and (size,) == form.shape)
    return given if is_of_form and all(type(value) in (int, float) for value in given.values()) else None


class Rooms:
    """Aligned memory for random numbers, which is used again once nothing refers to it."""

    MOST = 4

    def __init__(self, size: int) -> None:
        self._size = size
        self._memory: list[Numbers] = []

    def room(self) -> Numbers:
        """Room for the numbers. As long as it or a part of it is held, it is given to nobody else."""
        for at in range(len(self._memory)):
            if sys.getrefcount(self._memory[at]) == _UNUSED:
                return self._aligned(self._memory[at])
        memory = np.empty(self._size + ALIGNED // 8)
        if len(self._memory) < self.MOST:
            self._memory.append(memory)
        return self._aligned(memory)

    def _aligned(self, memory: Numbers) -> Numbers:
        first = -memory.ctypes.data % ALIGNED // 8
        return memory[first : first + self._size]


def _references_of_unused() -> int:
    memory = [np.empty(1)]
    return sys.getrefcount(memory[0])


_UNUSED = _references_of_unused()


class Twins:
    """Generators of accel's own for the two halves, and one to prove that they fit together. of: their types."""

    def __init__(self, generator: Any, bits: type, state: Any) -> None:
        self.of = type(generator), bits
        self.first, self.second, self.proof = (twin_of(generator, state) for _ in range(3))


class End(NamedTuple):
    """End of the first half: the generator's state, its time by `time.perf_counter`, and the seconds that it took."""

    state: Any
    at: float
    seconds: float


class Halves:
    """One run's numbers. state: of the generator before them. room: for them. count: of the first half."""

    def __init__(self, divisible: Divisible, twins: Twins, state: Any, room: Numbers, count: int) -> None:
        self._divisible, self._twins, self._state = divisible, twins, state
        self._room, self._count = room, count
        rate = RATES[divisible.method]
        self._before = SKIP + math.ceil(DEVIATIONS * rate.deviation * math.sqrt(count))
        self._place = max(0, round(rate.mean * (count - self._before)))
        self._head = np.empty(SKIP)

    def draw_first(self) -> End:
        """Draw the first half."""
        began = time.perf_counter()
        twin = self._twins.first
        KIND.put_back(twin, self._state)
        self._draw(twin, self._room[: self._count])
        state, ended = KIND.state(twin), time.perf_counter()
        return End(state, ended, ended - began)

    def draw_second(self) -> None:
        """Draw the second half, at the same time."""
        twin = self._twins.second
        self._go_to_place(twin)
        self._draw(twin, self._head)
        self._draw(twin, self._room[self._count :])

    def join(self, end: End) -> Any:
        """Make one sequence of both. Returns the state of the generator after it."""
        room, count = self._room, self._count
        drawn_before = self._drawn_before(end)
        if drawn_before is None:  # hardly ever
            KIND.put_back(self._twins.second, end.state)
            self._draw(self._twins.second, room[count:])
        else:
            left = min(drawn_before - SKIP, room.size - count)
            # NumPy copies within one array in the right order
            room[count : room.size - left] = room[count + left :]
            self._draw(self._twins.second, room[room.size - left :], skipped=drawn_before - SKIP - left)
        return self._as_left(KIND.state(self._twins.second))

    def _drawn_before(self, end: End) -> int | None:
        """Return the number of draws by the second half's thread before the place where the first half ends.

        At least SKIP; None if it did not come to draw the same by then.
        """
        start = max(0, self._count - 2 * self._before)
        found = np.flatnonzero(self._room[start : self._count] == self._head[PROBED])
        for at in found[:MOST_TRIED].tolist():
            drawn = self._count - (start + at - PROBED)
            if drawn >= SKIP and self._is_proved(drawn, end):
                return int(drawn)
        return None

    def _is_proved(self, drawn: int, end: End) -> bool:
        twin = self._twins.proof
        self._go_to_place(twin)
        self._draw(twin, np.empty(drawn))
        return bool(KIND.state(twin)["state"] == end.state["state"])

    def _go_to_place(self, twin: Any) -> None:
        KIND.put_back(twin, self._state)
        twin.bit_generator.advance(self._place)

    def _draw(self, twin: Any, into: Numbers, skipped: int = 0) -> None:
        method = getattr(twin, self._divisible.method)
        if skipped:
            method(**self._divisible.parameters, size=skipped)
        if self._divisible.method in FILLING:
            method(out=into)
        else:
            into[...] = method(**self._divisible.parameters, size=into.size)

    def _as_left(self, state: Any) -> Any:
        """A twin's state as the generator's: half a number that it has kept for integers is not touched by draws."""
        return {**self._state, "state": state["state"]}

    def values(self) -> list[tuple[int, NDArray[np.float64]]]:
        """Return each draw's slot and numbers."""
        return [(slot, self._room[start:end].reshape(shape)) for slot, shape, start, end in self._divisible.parts]
