"""Enumerations and the namespaces of objects, as programs use them."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any

import numpy as np


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
        values = {kind: x * kind.value for kind in Kind}
        assert Kind and Kind.CAR in Kind
        return values[Kind.CAR] - values[Kind["TRUCK"]], len(Kind), x * Kind(3).value, x[Level(2)], x[Level.HIGH]

    check(program, lambda i: (row(i),))


def test_a_value_that_is_no_members(check: Any) -> None:
    def program(x: Any) -> Any:
        try:
            return x * Kind(4).value
        except ValueError:
            return -x

    check(program, lambda i: (row(i),), replays=0)


def test_another_metaclass_is_not_looked_into(check: Any) -> None:
    check(lambda x: x * sum(Odd), lambda i: (row(i),), reason="call.opaque")  # type: ignore[call-overload]


class Settings:
    defaults = {"damping": 0.5}  # noqa: RUF012

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__:
            return self.__dict__[name]
        try:
            return self.defaults[name]
        except KeyError:
            raise AttributeError(name) from None

    def total(self, x: Any) -> Any:
        if "_total" not in self.__dict__:
            self._total = x.sum()
        return self._total + self.__dict__.get("extra", 1.0)

    def names(self, x: Any) -> Any:
        return x * len(self.__dict__)


def test_a_getattr_that_looks_into_the_namespace(check: Any) -> None:
    def worlds() -> Any:
        settings = Settings(rate=2.0)

        def make(i: int) -> Any:
            if i == 6:
                settings.damping = 0.25
            if i == 9:
                del settings.damping
                settings.extra = 4.0
            if i == 12:
                del settings._total
            return settings, row(i)

        return make

    check(lambda s, x: (x * s.rate + s.damping, s.total(x)), worlds=worlds, calls=24, replays=5)


def test_all_of_a_namespace_is_not_looked_into(check: Any) -> None:
    check(lambda s, x: s.names(x), worlds=lambda: lambda i: (Settings(rate=2.0), row(i)), reason="code.unsupported")
