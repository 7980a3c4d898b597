"""Compare a function under accel with NumPy's own results, to the last bit.

The payload and the sign of a NaN do not count. The sign of a zero does.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

import accel
from accel.dispatch.replay.commit import commit
from accel.platform.ledger import open_ledger
from tests.replays import Inputs, Program, variant_of

Call = tuple[Any, ...]
Differ = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Mismatch(NamedTuple):
    """An element that is not NumPy's. call: number of the call. output: number of the array among the results."""

    call: int
    output: int
    place: tuple[int, ...]
    found: Any
    expected: Any


def differs(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Elements with other bits than NumPy's."""
    if expected.dtype.kind != "f":
        return np.asarray(found != expected)
    same = (found == expected) & (np.signbit(found) == np.signbit(expected))
    return ~(same | (np.isnan(found) & np.isnan(expected)))


def differs_in_kind(found: np.ndarray, expected: np.ndarray, units: float = 4.0) -> np.ndarray:
    """Elements that are zero, infinite or NaN where NumPy's are not, or more than `units` in the last place away.

    For functions such as `log`, whose last bits depend on the library.
    """
    exact = ~np.isfinite(expected) | (expected == 0.0) | ~np.isfinite(found)
    finite, near = np.where(exact, 0.0, found), np.where(exact, 1.0, expected)
    return np.where(exact, differs(found, expected), np.abs(finite - near) > units * np.spacing(np.abs(near)))


def arrays_in(value: Any) -> Iterator[np.ndarray]:
    """The arrays and numbers of a value: of tuples and lists, and of the attributes of an object of a test's class."""
    if type(value).__module__.startswith("tests."):
        value = tuple(vars(value).values())
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from arrays_in(part)
    else:
        yield np.asarray(value)


def mismatches(number: int, found: Any, expected: Any, differ: Differ = differs) -> Iterator[Mismatch]:
    """The first wrong element of each array in the results of one call."""
    for output, (mine, theirs) in enumerate(zip(arrays_in(found), arrays_in(expected), strict=True)):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), (number, output)
        wrong = np.argwhere(differ(mine, theirs))
        if len(wrong):
            place = tuple(int(index) for index in wrong[0])
            yield Mismatch(number, output, place, mine[place], theirs[place])


def replay_mismatches(
    function: Callable[..., Any], calls: Iterable[Call], name: str, differ: Differ = differs
) -> list[Mismatch]:
    """What differs between plain and accelerated calls on equal arguments, changed arguments included.

    An argument that several calls share goes on from what the plain call left. Asserts that half of the calls or more
    ran as a program. The fixture `foreground` must be in use.
    """
    accelerated, found, count = accel.accelerate(function, name=name), [], 0
    for number, theirs in enumerate(calls):
        mine = copy.deepcopy(theirs)
        with np.errstate(all="ignore"):
            found += mismatches(number, (accelerated(*mine), mine), (function(*theirs), theirs), differ)
        count += 1
    compiled = open_ledger(name).compiled_calls
    assert found or compiled >= count / 2, f"{compiled} of {count} calls of {name} were compiled\n{accel.report()}"
    return found


def variant_mismatches(program: Program, inputs: Inputs, count: int, differ: Differ = differs) -> Iterator[Mismatch]:
    """What differs between plain calls and replays of one program that takes no input for constant."""
    variant = variant_of(program, inputs)
    assert variant is not None
    for number in range(count):
        mine, theirs = inputs(number), inputs(number)
        values, failed = variant.trace.inputs.fetch(mine, {})
        assert failed is None, failed
        staged = variant.run(values)
        assert not isinstance(staged, tuple), staged
        yield from mismatches(number, commit(staged), program(*theirs), differ)
