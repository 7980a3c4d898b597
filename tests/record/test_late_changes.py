"""What changes after a path was compiled: each call must see what NumPy sees, or be another path.

Every case has one state, changed before call LATE: by then the path is compiled, and what it read taken for constant.
"""

from __future__ import annotations

import abc
import enum
import math
import os
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.helpers import some

LATE = 6


class Index:
    def __init__(self, i: int) -> None:
        self.i = i

    def __index__(self) -> int:
        return self.i


class Shape(list[int]):
    pass


SCALE = SimpleNamespace(factor=2.0)


class Fields(NamedTuple):
    u: Any
    v: Any

    def energy(self) -> Any:
        return self.u * SCALE.factor


class Scheme(enum.Enum):
    UPWIND = 1
    CENTRED = 2

    def weight(self) -> float:
        return SCALE.factor


class Weights(enum.Enum):
    EVEN = [1.0, 1.0]  # noqa: RUF012 - that it can be changed is the point


class Meta(type):
    @property
    def limit(cls) -> float:
        return SCALE.factor


class Limited(metaclass=Meta):
    pass


class Bare:
    """A class that gets special methods later."""


class Grid(abc.ABC):  # noqa: B024 - classes are registered with it
    pass


class Asked(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return SCALE.factor > 2.0


class Moody(metaclass=Asked):
    pass


class TooFar(Exception):
    reach = 2.0


def helper(x: Any) -> Any:
    return x * helper.weight  # type: ignore[attr-defined]


def state() -> Any:
    helper.weight = 2.0  # type: ignore[attr-defined]
    SCALE.factor = 2.0
    Weights.EVEN.value[0] = 1.0
    TooFar.reach = 2.0
    os.environ.pop("ACCEL_TEST_WORD", None)
    for name in ("__add__", "__len__", "__eq__", "__setattr__"):
        if name in vars(Bare):
            delattr(Bare, name)
    sys.modules["accel_test_tables"] = tables(2.0)
    np.seterr(divide="warn")
    return SimpleNamespace(
        x=some(1, 3, 3),
        u=some(2, 6),
        ints=[0, 1],
        shape=[2, 3],
        row=[1.0, 2.0, 3.0],
        custom=Shape([2, 3]),
        index=Index(0),
        nested=[[1.0, 2.0]],
        n=2,
        dt=0.5,
        numbers={1: 1.0},
        some_of=frozenset({1}),
        span=range(0),
        bare=Bare(),
        fields=Fields(some(3, 3), 1.0),
        scheme=Scheme.UPWIND,
        weights=Weights.EVEN,
        imaginary=complex(-1.0, 0.0),
        missing=complex(np.nan, 1.0),
        zero=0.0,
        long=np.longdouble(0.0),
        a={},
        b={},
        list_a=[some(4)],
        list_b=[some(5)],
        pair=(1, 2),
        other=(1, len("ab")),
    )


def tables(value: float) -> Any:
    module: Any = ModuleType("accel_test_tables")
    module.value = value
    return module


def imported(s: Any) -> Any:
    import accel_test_tables

    return s.x * accel_test_tables.value


def imported_from(s: Any) -> Any:
    from accel_test_tables import value

    return s.x * value


def kinds_of_keys(s: Any) -> Any:
    return s.x * sum(len(str(key)) for key in s.numbers)


def kinds_of_members(s: Any) -> Any:
    return s.x * sum(2 if isinstance(part, float) else 3 for part in s.some_of)


def written_item(s: Any) -> Any:
    s.list_a[0] = s.x[0] * 2
    return s.list_b[0] + 1


def assigned(s: Any) -> Any:
    s.u[s.ints] = s.row[:2]
    return s.u * 2


def set_on_bare(s: Any) -> Any:
    s.bare.level = s.n
    return s.x * s.bare.level


def set_twice(value: Any, name: str, new: Any) -> None:
    object.__setattr__(value, name, new * 2)


def optional(s: Any) -> Any:
    return s.x * getattr(sys.modules["accel_test_tables"], "extra", 2.0)


def text_of(s: Any) -> Any:
    return len(str(s.zero)) * 0 + s.zero, np.arctan2(s.zero, s.x)


def put(owner: str, key: Any, value: Any) -> Callable[[Any], None]:
    return lambda s: getattr(s, owner).__setitem__(key, value)


def let(name: str, value: Any) -> Callable[[Any], None]:
    return lambda s: setattr(s, name, value)


def give(name: str, method: Any) -> Callable[[Any], None]:
    return lambda s: setattr(Bare, name, method)


EVERYTHING = slice(None)

CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "a list as a shape": (lambda s: np.reshape(s.u, s.shape), put("shape", EVERYTHING, [3, 2])),
    "a list as a method's shape": (lambda s: s.u.reshape(s.shape), put("shape", EVERYTHING, [3, 2])),
    "a list of axes": (lambda s: np.transpose(s.x, s.ints) * 2, put("ints", EVERYTHING, [1, 0])),
    "a list as an index": (lambda s: s.x[s.ints] * 2, put("ints", EVERYTHING, [2, 1])),
    "lists as two indices": (lambda s: s.x[s.ints, s.ints] * 2, put("ints", EVERYTHING, [2, 1])),
    "a list of places assigned to": (assigned, put("ints", EVERYTHING, [2, 1])),
    "a list of shifts": (lambda s: np.roll(s.x, s.ints, axis=(0, 1)) * 2, put("ints", EVERYTHING, [2, 1])),
    "a list of percentiles": (lambda s: np.percentile(s.x, s.row), put("row", 0, 50.0)),
    "a list of edges": (lambda s: np.split(s.u, s.ints)[0] * 2, put("ints", EVERYTHING, [2, 3])),
    "a list of repeats": (lambda s: np.tile(s.u, s.ints) * 2, put("ints", EVERYTHING, [2, 1])),
    "a list of widths": (lambda s: np.pad(s.u, s.ints)[:4] * 2, put("ints", EVERYTHING, [2, 1])),
    "a list's own length": (lambda s: s.x * np.shape(s.nested)[0], lambda s: s.nested.append([3.0, 4.0])),
    "a list's own size": (lambda s: s.x * np.size(s.nested), lambda s: s.nested.append([3.0, 4.0])),
    "a number in a shape": (lambda s: s.x * np.broadcast_shapes((s.n, 1), (1, 3))[0], let("n", 5)),
    "a number's own type": (lambda s: s.u.astype(np.min_scalar_type(s.n)) + 1, let("n", 300)),
    "a list of one's own class": (lambda s: s.u.reshape(s.custom), put("custom", EVERYTHING, [3, 2])),
    "an index of one's own class": (lambda s: s.x[s.index] * 2, lambda s: setattr(s.index, "i", 1)),
    "an axis of one's own class": (lambda s: s.x.sum(s.index) * 2, lambda s: setattr(s.index, "i", 1)),
    "keys of another type": (kinds_of_keys, let("numbers", {True: 1.0})),
    "members of another type": (kinds_of_members, let("some_of", frozenset({1.0}))),
    "an empty range elsewhere": (lambda s: s.x * s.span.start, let("span", range(5, 5))),
    "a global in a namedtuple's method": (lambda s: s.fields.energy(), lambda s: setattr(SCALE, "factor", 3.0)),
    "a global in an enumeration's method": (lambda s: s.x * s.scheme.weight(), lambda s: setattr(SCALE, "factor", 3.0)),
    "an enumeration's list": (lambda s: s.x * s.weights.value[0], lambda s: s.weights.value.__setitem__(0, 5.0)),
    "a function's attribute": (lambda s: helper(s.x), lambda s: setattr(helper, "weight", 3.0)),
    "a class's property by its metaclass": (lambda s: s.x * Limited.limit, lambda s: setattr(SCALE, "factor", 3.0)),
    "an exception's attribute": (lambda s: s.x * TooFar.reach, lambda s: setattr(TooFar, "reach", 3.0)),
    "a number made of two": (lambda s: s.x * complex(s.dt, s.n), let("dt", 0.25)),
    "a number made of two of an array's": (lambda s: s.x * complex(s.u[0], s.u[1]), put("u", 0, 5.0)),
    "a number in another base": (lambda s: s.x * int("11", s.n), let("n", 3)),
    "a tolerance by name": (lambda s: s.x * (2 + math.isclose(1.0, s.dt, rel_tol=0.3)), let("dt", 0.9)),
    "a start by name": (lambda s: s.x * math.prod([2.0, 3.0], start=s.dt), let("dt", 0.25)),
    "an array on another's memory": (lambda s: s.x * np.ndarray((6,), buffer=s.u).sum(), put("u", 0, 5.0)),
    "the sign of an imaginary zero": (lambda s: s.x * np.angle(s.imaginary), let("imaginary", complex(-1.0, -0.0))),
    "a part beside a NaN": (lambda s: s.x * s.missing.imag, let("missing", complex(np.nan, 2.0))),
    "the sign of a zero in text": (text_of, let("zero", -0.0)),
    "the sign of a long zero": (lambda s: np.arctan2(float(s.long), s.x), let("long", np.longdouble(-0.0))),
    "two dicts that become one": (lambda s: s.x + 1 if s.a is s.b else s.x - 1, lambda s: setattr(s, "b", s.a)),
    "two tuples that become one": (lambda s: s.x if s.pair is s.other else -s.x, lambda s: setattr(s, "other", s.pair)),
    "a written list that becomes another": (written_item, lambda s: setattr(s, "list_b", s.list_a)),
    "a module put in the place of another": (imported, lambda s: sys.modules.update(accel_test_tables=tables(5.0))),
    "the same by name": (imported_from, lambda s: sys.modules.update(accel_test_tables=tables(5.0))),
    "an attribute that a module computes": (
        optional,
        lambda s: setattr(sys.modules["accel_test_tables"], "__getattr__", lambda name: 5.0),
    ),
    "a class that gets a length": (lambda s: s.x * (2 if s.bare else 3), give("__len__", lambda value: 0)),
    "a class that gets equality": (lambda s: s.x * (2 if s.bare == 1 else 3), give("__eq__", lambda a, b: True)),
    "a class that sets attributes its way": (set_on_bare, give("__setattr__", set_twice)),
    "a class registered with another": (
        lambda s: s.x * (2 if isinstance(s.index, Grid) else 3),
        lambda s: Grid.register(Index),
    ),
    "a class whose instances its metaclass chooses": (
        lambda s: s.x * (2 if isinstance(s.index, Moody) else 3),
        lambda s: setattr(SCALE, "factor", 3.0),
    ),
    "how NumPy takes errors": (
        lambda s: s.x * (2 if np.geterr()["divide"] == "warn" else 3),
        lambda s: np.seterr(divide="ignore"),
    ),
}


@pytest.mark.parametrize(("function", "change"), CASES.values(), ids=CASES.keys())
def test_what_changes_late(check: Any, function: Any, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "accel_test_tables", tables(2.0))
    before = np.geterr()

    def worlds() -> Any:
        one: list[Any] = []

        def make(i: int) -> Any:
            if i == 0:
                one.append(state())
            if i == LATE:
                change(one[0])
            return one[0]

        return make

    try:
        check(function, worlds=worlds, replays=0)
    finally:
        np.seterr(**before)


# -- what a call may ask of its arguments -----------------------------------------------------------------------------


def writeable(x: Any) -> Any:
    if x.flags.writeable:
        x += 1
        return x * 2
    return x * 3


def locked(i: int) -> Any:
    x = some(i)
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("locked_first", [True, False])
def test_flags_decide_the_path(check: Any, locked_first: bool) -> None:
    check(writeable, lambda i: locked(i) if (i < LATE) is locked_first else some(i), replays=3)


@pytest.mark.parametrize("function", [lambda x: x * (2 + x.flags.owndata), lambda x: x * (2 + x.flags["OWNDATA"])])
def test_memory_of_its_own_decides_the_path(check: Any, function: Any) -> None:
    check(function, lambda i: some(i) if i < LATE else some(i)[:], replays=3)


def test_elements_that_share_memory(check: Any) -> None:
    def work(windows: Any) -> Any:
        windows[0] = 5.0
        return windows * 2

    def sliding(i: int) -> Any:
        return np.lib.stride_tricks.sliding_window_view(some(i, 6), 3, writeable=True)

    check(work, sliding, reason="alias.overlap")
    check(work, lambda i: np.lib.stride_tricks.as_strided(some(i), (3,), (0,)), reason="alias.overlap")
    check(work, lambda i: some(i, 6, 8)[::2, ::-1])


def test_the_same_tuple_twice(check: Any) -> None:
    def work(s: Any) -> Any:
        return (s.x if s.a is s.b else -s.x), s.a

    def worlds() -> Any:
        pair = (1, 2)
        one = SimpleNamespace(x=some(1), a=pair, b=pair)

        def make(i: int) -> Any:
            if i == LATE:
                one.b = (1, len("ab"))
            return one

        return make

    check(work, worlds=worlds, replays=3)


@pytest.mark.parametrize("columns", [False, True])
def test_indices_that_repeat_later(check: Any, columns: bool) -> None:
    """With repeated indices NumPy keeps the last value; XLA leaves open which."""

    def work(rows: Any, index: Any, values: Any) -> Any:
        if columns:
            rows[1:, index] = values
        else:
            rows[index] = values.T
        return rows

    def make(i: int) -> Any:
        index = np.array([3, 1, -4] if i % 4 != 3 else [3, -1, 1])
        return np.zeros((4, 4)), index, np.arange(12.0).reshape(4, 3)[1 if columns else 0 :] + i

    check(work, make, calls=24, replays=4, reason="rule.parameter")


def test_an_integer_beyond_64_bits_is_that_calls_own_matter(check: Any) -> None:
    def work(n: int, x: Any) -> Any:
        return x * (n * n)

    check(work, lambda i: (2**40 if i == 12 else i + 2, np.arange(3.0)), calls=20, replays=12)


def test_a_constant_array_of_one_complex_number(check: Any) -> None:
    class Wave:
        def __init__(self) -> None:
            self.phase = np.array(1.0 + 2.0j)

        def turn(self, x: Any) -> Any:
            return x * self.phase

    def worlds() -> Any:
        wave = Wave()

        def make(i: int) -> Any:
            if i == 12:
                wave.phase = np.array(1.0 - 2.0j)
            return wave, np.arange(3.0) + i

        return make

    check(Wave.turn, worlds=worlds, calls=20)
