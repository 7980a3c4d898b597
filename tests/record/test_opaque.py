"""Objects that accel does not look into: what the program does with them gives what Python gives."""

from __future__ import annotations

import array
import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers import some


class Record(ctypes.Structure):
    """Its attributes are C's."""

    _fields_ = (("step", ctypes.c_double),)


def set_step(o: Any, x: Any) -> Any:
    try:
        o.step = 3.0
    except AttributeError:
        return "no such attribute"
    return x + o.step


def delete_missing(o: Any, x: Any) -> Any:
    try:
        del o.missing
    except AttributeError as error:
        return str(error)
    return x


@pytest.mark.parametrize("function", [set_step, delete_missing])
def test_attributes_are_set_and_deleted(check: Any, function: Any) -> None:
    record = Record()
    check(lambda x: function(record, x), some, reason="object.opaque")


VALUES = {
    "array": array.array("d", [1.0, 2.0, 3.0]),
    "bytearray": bytearray(b"abc"),
    "ctypes": (ctypes.c_double * 3)(1.0, 2.0, 3.0),
}

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "times": lambda o, x: o * x[:3],
    "times a number": lambda o, x: o * x[0],
    "plus": lambda o, x: o + x[0],
    "reflected": lambda o, x: x[:3] - o,
    "or": lambda o, x: o | o,
    "bytes": lambda o, x: bytes(o),
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operators_are_pythons(check: Any, value: str, name: str) -> None:
    """A sequence of C's has methods for repeating and joining, which raise where NumPy's array has an operator."""
    o, operation = VALUES[value], OPERATIONS[name]

    def work(x: Any) -> Any:
        try:
            return operation(o, x)
        except TypeError as error:
            return str(error)

    check(work, some, replays=0)
