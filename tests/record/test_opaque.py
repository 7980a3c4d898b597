"""Objects that accel does not look into: what the program does with them gives what Python gives."""

from __future__ import annotations

import array
import ctypes
import json
import sys
from collections import namedtuple
from collections.abc import Callable
from types import SimpleNamespace
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


LOOKED_INTO = sys.version_info >= (3, 13)
"""Whether types of ctypes are made as those of Python code."""


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (set_step, "call.opaque" if LOOKED_INTO else "object.opaque"),
        (delete_missing, None if LOOKED_INTO else "object.opaque"),
    ],
)
def test_attributes_are_set_and_deleted(check: Any, function: Any, reason: str | None) -> None:
    record = Record()
    check(lambda x: function(record, x), some, reason=reason)


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


class Cell:
    """Any object."""


@pytest.mark.parametrize("o", [Cell(), [1.0], (1, 2), Cell, np.sin], ids=lambda o: type(o).__name__)
def test_what_the_statement_that_ends_the_tape_asks_of_an_object(check: Any, o: Any) -> None:
    """Until it is over its variables hold stand-ins, whose ids, classes and calls are not the object's."""

    def work(x: Any) -> Any:
        try:
            asked = id(o) == id(o), type(o) is type(x), str(type(o)), callable(o)
        finally:
            x = x + 1
        return asked, x

    check(work, some, reason="value.forced")


def texts_of_containers(o: Any, x: Any) -> Any:
    items, table = o.items, o.table
    items[0] = 2
    with np.errstate(divide="ignore"):
        return np.trim_zeros(x).size, json.dumps(items), json.dumps(table), items < [3]


def kept_texts(o: Any, x: Any) -> Any:
    items = o.items
    items[0] = 2
    try:
        o.text = np.trim_zeros(x).size, json.dumps(items)
    finally:
        o.count += 1
    return x * 2


def kept_arrays(o: Any, x: Any) -> Any:
    """What the statement computed before is stored through the stand-in, which unwraps it."""
    try:
        o.arrays = [[x * 2], np.trim_zeros(x).size]
        raise ValueError
    finally:
        o.count += 1


@pytest.mark.parametrize("function", [texts_of_containers, kept_texts, kept_arrays])
def test_the_rest_of_the_statement_that_ends_the_tape_has_the_objects_themselves(check: Any, function: Any) -> None:
    """Functions of NumPy's and of libraries were given stand-ins of lists and objects."""

    def make(i: int) -> Any:
        return SimpleNamespace(items=[1, 2.0], table={"a": 1}, count=0), some(i)

    check(function, make, reason="shape.dynamic")


MADE: dict[str, Callable[[], Any]] = {
    "type": lambda: type("Made", (), {}),
    "namedtuple": lambda: namedtuple("Made", "u v"),
}


@pytest.mark.parametrize("name", MADE)
def test_classes_are_of_the_module_that_makes_them(check: Any, name: str) -> None:
    make = MADE[name]

    def work(x: Any) -> Any:
        try:
            kind = make()
        finally:
            x = x + 1
        return kind.__module__, x

    check(work, some, replays=0, reason=None)
