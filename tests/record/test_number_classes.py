"""Numbers of classes that extend numbers: members of enumerations, and numbers with attributes."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, IntEnum
from typing import Any

import numpy as np
import pytest

from accel.record import record


class Kind(Enum):
    CAR = 5
    TRUCK = 3


class Level(IntEnum):
    LOW = 0
    HIGH = 2


class Counted(type):
    def __iter__(cls) -> Any:
        return iter([1, 2])


class Odd(metaclass=Counted):
    pass


def row(i: int) -> Any:
    return np.arange(4.0) + i


def test_members_of_an_enumeration(check: Any) -> None:
    def program(x: Any) -> Any:
        return (x * Kind.CAR.value if Kind else x), x[Level.HIGH]

    check(program, lambda i: (row(i),))


def test_another_metaclass_is_not_looked_into(check: Any) -> None:
    check(lambda x: x * sum(Odd), lambda i: (row(i),), reason="call.opaque")  # type: ignore[call-overload]
    check(lambda x: (x * len(Kind), Kind.CAR in Kind, Kind["TRUCK"].name), lambda i: (row(i),), reason="call.opaque")


class Phase(IntEnum):
    """With code of its own, so that accel does not look into it."""

    ICE = 1
    WATER = 2

    @property
    def is_wet(self) -> bool:
        return self is Phase.WATER


class Share(float):
    pass


class Metres(float):
    def __init__(self, value: float) -> None:
        self.unit = "m"


class Turned(float):
    def __rmul__(self, other: Any) -> Any:
        return other + 100.0

    __mul__ = __rmul__


HALF, DEPTH, TURNED = Share(0.5), Metres(1.5), Turned(2.0)

OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "array and member": lambda x: (x * Level.HIGH, Level.HIGH * x, x == Level.HIGH, Level.HIGH - x),
    "array and member with code": lambda x: (x * Phase.WATER, Phase.WATER * x, x == Phase.WATER, Phase.ICE - x),
    "compared": lambda x: np.where(x == Phase.ICE, Phase.WATER, x) if Phase.ICE == 1 and Phase.ICE < 2 else x,
    "position": lambda x: (x[Phase.WATER], x[: Phase.WATER], np.full(Phase.WATER, Phase.ICE), x.sum(axis=Level.LOW)),
    "Python's number": lambda x: (float(x.sum()) * Phase.WATER, Phase.WATER + float(x[0]), float(x[0]) >= Level.LOW),
    "loop": lambda x: [x * i for i in range(Phase.WATER)],
    "assigned": lambda x: np.put_along_axis(x, np.array([0]), Phase.WATER, 0),
    "a share": lambda x: (x * HALF, HALF * x, HALF * 0.1 + x, x.astype(np.float32) * HALF),
    "metres": lambda x: (x * DEPTH, DEPTH * x, DEPTH + DEPTH, DEPTH * 0.1 + x, x < DEPTH),
    "metres in single precision": lambda x: (x.astype(np.float32) * DEPTH, np.maximum(x, DEPTH)),
    "NumPy's number": lambda x: (
        x.astype(np.float32)[1] * DEPTH,
        x.astype(np.int8)[1] * Phase.WATER,
        x[0] + Level.HIGH,
    ),
    "small integers": lambda x: (x.astype(np.int8) * Level.HIGH, np.clip(x.astype(np.int8), Phase.ICE, Level.HIGH)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_numbers_of_classes_that_extend_numbers(check: Any, name: str) -> None:
    check(OPERATIONS[name], lambda i: (row(i),))


def test_a_number_with_operators_of_its_own_is_none_to_python(check: Any) -> None:
    check(lambda x: x * TURNED, lambda i: (row(i),))
    check(lambda x: float(x[0]) * TURNED, lambda i: (row(i),), reason="call.opaque")
    check(lambda x: TURNED * x, lambda i: (row(i),), reason="call.opaque")


def test_a_number_of_a_class_changes(check: Any) -> None:
    """The value of an object is guarded where it has attributes, too."""
    for kind in (Share, Metres):
        given = [kind(0.5)] * 6 + [kind(0.25)] * 3
        check(lambda x, by: by * x, lambda i, given=given: (row(i), given[i]), replays=0)


def test_programs_with_members_are_kept_for_the_next_process() -> None:
    found = record(lambda x: x * Level.HIGH + HALF, (row(0),), {}, max_nodes=100).trace
    kinds = {type(arg) for node in found.tape.nodes for arg in node.args}
    assert kinds & {np.int64, np.float64} and not kinds & {Level, Share}
