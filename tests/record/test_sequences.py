"""Lists, tuples and objects as operands: NumPy's answer, not Python's."""

from __future__ import annotations

import typing
from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers import some


def holder(i: int) -> Any:
    return SimpleNamespace(
        x=some(i, 3), n=np.array([1, 5, 3]), k=np.array(2), row=[1.0, float(i), 3.0], whole=[1, i, 3], pair=(1.0, 2.0)
    )


def extended(s: Any) -> Any:
    values = [1.0, 2.0, 3.0]
    values += s.x
    return values


def added_in_place(s: Any) -> Any:
    s.x += [1.0, 2.0, 3.0]
    s.x *= s.row
    return s.x * 2


def assigned(s: Any) -> Any:
    s.x[:] = s.row
    return s.x * 2


OPERATIONS = {
    "an array and a list": lambda s: (s.x + [1.0, 2.0, 3.0], s.x * (1.0, 2.0, 3.0), s.x > [0, 0, 0]),
    "a list and an array": lambda s: ([1.0, 2.0, 3.0] + s.x, (1.0, 2.0, 3.0) * s.x, [1.0, 2.0, 3.0] - s.x),
    "an array and a list from outside": lambda s: (s.x + s.row, s.x * s.row, s.x < s.row),
    "a list from outside and an array": lambda s: (s.row + s.x, s.row * s.x, s.row / s.x),
    "a list from outside and an array without axes": lambda s: (s.row * s.k, s.k * s.row),
    "equality with a list": lambda s: (s.n == [1, 5, 2], np.where(s.n == s.whole, s.x, -1.0), np.sum(s.n != [1, 2, 3])),
    "a number from NumPy and a list": lambda s: (s.x[0] == [1.0, 2.0], s.x[0] + [1.0, 2.0], [1.0, 2.0] - s.x[0]),
    "a list extended by an array": extended,
    "an array changed by a list": added_in_place,
    "a list assigned": assigned,
    "a ufunc of lists": lambda s: (np.add(s.x, s.row), np.hypot(s.row, s.x), np.maximum([0.0, 0.0, 0.0], s.x)),
    "sequences of their own kind": lambda s: (s.x, s.row + [1.0], [0.0] + s.row, s.row * 2, 2 * s.row, s.pair + (3.0,)),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_operators_with_sequences(check: Any, operation: Any) -> None:
    check(operation, holder)


def test_numbers_that_repeat_a_list(check: Any) -> None:
    check(lambda s: (s.x * 2, [s.x, 1.0] * s.n[0], s.n[0] * [1.0]), holder)


def test_a_list_and_a_tuple_do_not_add(check: Any) -> None:
    check(lambda s: s.row + s.pair, holder, reason="path.exception")


@pytest.mark.parametrize("operation", [lambda s: np.sum(s.n != None), lambda s: np.sum(s.n != "a")])  # noqa: E711
def test_comparison_with_what_is_no_number(check: Any, operation: Any) -> None:
    check(operation, holder, reason="call.opaque")


class Plain:
    """Answers operators; NumPy asks it for each element."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __add__(self, other: Any) -> Any:
        return other * 0 + self.value

    __radd__ = __add__


class Typed:
    """Its operator tells which number it is given."""

    def __rmul__(self, other: Any) -> Any:
        return type(other).__name__


class TypedFirst(Typed):
    __array_ufunc__ = None


class First(Plain):
    """NumPy leaves operators to it."""

    __array_ufunc__ = None


def test_objects_as_operands(check: Any) -> None:
    plain = check(lambda s, q: s.x + q, lambda i: (holder(i), Plain(3.0)), reason="call.opaque")
    assert "recorder.gap" not in plain.refusals
    check(lambda s, q: q + s.x, lambda i: (holder(i), Plain(3.0)))
    check(lambda s, q: (s.x + q, q + s.x), lambda i: (holder(i), First(3.0)))
    for kind in (Typed, TypedFirst):
        check(lambda s, q: (np.float64(2.0) * q, s.x + 1), lambda i, kind=kind: (holder(i), kind()), replays=0)


def lengthened(s: Any) -> Any:
    for x in s.queue:
        s.queue.append(x * 2)
        if len(s.queue) > 6:
            break
    return s.x


def appended(s: Any) -> Any:
    steps = iter(s.queue)
    s.queue.append(next(steps) * 2)
    return next(steps)


def backwards(s: Any) -> Any:
    found = []
    for x, y in zip(s.row, reversed(s.row), strict=True):
        found.append(s.x * x + y)
        s.row[2] = x + 10
    return found


@pytest.mark.parametrize("function", [lengthened, appended, backwards])
def test_containers_changed_while_they_are_iterated_over(check: Any, function: Any) -> None:
    def make(i: int) -> Any:
        return SimpleNamespace(x=some(i), row=[1, 2, 3, 4], queue=deque([some(i + 1), some(i + 2)]))

    check(function, make, replays=0)


def compared(s: Any) -> Any:
    table = dict(s.table)
    return s.table.items() == table.items(), s.ends == deque([1, 2]), s.x * 2


def beyond(s: Any) -> Any:
    try:
        return s.row.pop(50)
    except IndexError as error:
        return str(error), s.x * 2


def generic(s: Any) -> Any:
    try:
        return isinstance(s.row, typing.Iterable), issubclass(list, typing.Sized), s.x * 2
    except TypeError as error:
        return str(error)


def names(s: Any) -> Any:
    found = locals()
    x = s.x * 2
    return found, x


@pytest.mark.parametrize("function", [compared, beyond, generic, names])
def test_answers_of_containers_are_pythons(check: Any, function: Any) -> None:
    def make(i: int) -> Any:
        return SimpleNamespace(x=some(i), row=[1, 2], ends=deque([1, 2]), table={"a": 1, "b": 2.5})

    check(function, make, replays=0)


class Schemes:
    @staticmethod
    def upwind(x: Any) -> Any:
        return x * 2

    def centred(self, x: Any) -> Any:
        return x * 3


def test_functions_of_classes_are_the_same_wherever_they_are_found(check: Any) -> None:
    def work(s: Any) -> Any:
        taken = s.scheme is Schemes.upwind, s.other is Schemes.centred, s.own.centred.__func__ is Schemes.centred
        return taken, s.own.upwind is s.scheme, s.scheme(s.x)

    def make(i: int) -> Any:
        return SimpleNamespace(x=some(i), scheme=Schemes.upwind, other=Schemes.centred, own=Schemes())

    check(work, make, replays=3)


def in_place_of_a_list(s: Any) -> Any:
    row = s.row
    row *= 2
    return s.x + 1


def in_place_of_a_dict(s: Any) -> Any:
    table = s.table
    table |= {"u": s.x * 2}
    return s.x + 1


def test_containers_changed_in_place(check: Any) -> None:
    check(in_place_of_a_list, holder)
    check(in_place_of_a_dict, lambda i: SimpleNamespace(x=some(i), table={"u": 0}))


def test_a_dict_backwards(check: Any) -> None:
    def work(s: Any) -> Any:
        return s.x + sum(key * 10**place for place, key in enumerate(reversed(s.table)))

    check(work, lambda i: SimpleNamespace(x=some(i), table={0: 5, 1: 7}))


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_the_bytes_of_an_array(check: Any, kind: Any) -> None:
    names = {"bytes": lambda x: (len(bytes(x)), x * 2), "bytearray": lambda x: (len(bytearray(x)), x * 2)}
    check(names[kind.__name__], lambda i: np.arange(3) + i, reason="value.forced")


def matched(s: Any) -> Any:
    match s.row:
        case [first, *_]:
            return s.x + first
        case _:
            return s.x - 100


def matched_mapping(s: Any) -> Any:
    match s.table:
        case {"u": value}:
            return s.x + value
        case _:
            return s.x - 100


def test_patterns(check: Any) -> None:
    check(matched, holder, reason="code.unsupported")
    check(matched_mapping, lambda i: SimpleNamespace(x=some(i), table={"u": 1.0}), reason="code.unsupported")


def to_its_end(items: Any, x: Any) -> Any:
    i = 0
    while i < len(items):
        x = x + items[i]
        i += 1
    return x


def last_ones(items: Any, x: Any) -> Any:
    for _ in range(300):
        x = x + items[-1]
    return x


def known_keys(items: Any, x: Any) -> Any:
    for i in range(300):
        if (i % 3, "a") in items:
            x = x + items[i % 3, "a"]
    return x


@pytest.mark.parametrize("function", [to_its_end, last_ones, known_keys])
def test_a_container_that_is_asked_hundreds_of_times(check: Any, function: Any) -> None:
    """What is asked of it is checked once; a longer one is another path."""

    def make(i: int) -> Any:
        numbers = [float(k + i) for k in range(300 if i < 12 else 301)]
        return {(k, "a"): numbers[k] for k in range(2)} if function is known_keys else numbers, np.arange(3.0)

    paths = check(function, make, calls=20, replays=10).function._self_target.paths
    assert all(len(slot.checks) < 8 for path in paths for slot in path.trace.inputs.slots)
