"""Attributes that classes inherit, read by recorded code, and `self.__class__`. Changes of a class stay on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import accel
from accel.platform.ledger import open_ledger
from tests.record.conftest import Check


class Base:
    scale: Any = 2.0


class Mid(Base):
    def above(self) -> Any:
        return super().scale


class Low(Mid):
    def above_mid(self) -> Any:
        return super().scale


def row(i: int) -> Any:
    return np.random.default_rng(i).normal(size=3) + 3.0


def test_reads_of_a_class_that_has_got_its_own_since() -> None:
    """Between two calls: what was read of the base is the other's from then on."""
    low = Low()
    fast = accel.accelerate(
        lambda x: (low.scale * x, Low.scale * x, low.above() * x, low.above_mid() * x), name="inherited"
    )
    for i in range(12):
        if i == 6:
            Mid.scale = 50.0
        found, of_mid = fast(row(i)), 50.0 if i >= 6 else 2.0
        np.testing.assert_array_equal(found, [row(i) * by for by in (of_mid, of_mid, 2.0, of_mid)])
    del Mid.scale
    assert open_ledger("inherited").compiled_calls >= 4


@pytest.mark.parametrize(
    "work",
    [
        lambda x: setattr(Mid, "scale", x[0]) or x * Low.scale,
        lambda x: setattr(Mid, "rate", property(lambda self: 2.0)) or x * Mid().rate,
    ],
)
def test_changes_of_a_class_stay_on_numpy(check: Check, work: Any) -> None:
    """They last, for all objects."""
    check(work, lambda i: (row(i),), reason="effect.global")
    for name in {"scale", "rate"} & set(vars(Mid)):
        delattr(Mid, name)


class Counted:
    scale = 2.0

    def __init__(self, x: Any) -> None:
        self.x = x

    def twice(self) -> Any:
        return self.__class__(self.x * 2.0)

    def facts(self, other: Any) -> Any:
        kind = self.__class__
        return kind is type(self), kind.__name__, isinstance(other, kind), kind == Counted, kind is Counted, kind.scale

    def is_like(self, other: Any) -> Any:
        return self.__class__ is other.__class__

    def rebound(self) -> Any:
        self = self.x
        return self.__class__.__name__

    def nested(self) -> Any:
        def of(value: Any) -> Any:
            return value.__class__.__name__

        return of(self), of(self.x), [(lambda one: one.__class__.__name__)(each) for each in (self, 1.0)]

    def become(self) -> None:
        self.__class__ = Other


class Other(Counted):
    pass


class OfTuple(tuple):  # type: ignore[type-arg]
    def name(self) -> str:
        return self.__class__.__name__


def test_class_of_self_is_what_type_gives(check: Check) -> None:
    def work(x: Any) -> Any:
        one, other = Counted(x).twice(), Other(x[:2]).twice()
        return one.x * 2.0, other.x, type(other) is Other, one.facts(other), other.facts(one)

    check(work, lambda i: (row(i),))


@pytest.mark.parametrize(
    "work",
    [
        lambda x: (Counted(x).is_like(Other(x)), x * 2.0),
        lambda x: (Counted(x).rebound(), x * 2.0),
        lambda x: (Counted(x).nested(), x * 2.0),
        lambda x: (Counted(x).become(), x * 2.0),
    ],
)
def test_other_reads_of_a_class_stay_on_numpy(check: Check, work: Any) -> None:
    check(work, lambda i: (row(i),), reason="code.unsupported")


def test_of_an_object_that_has_no_stand_in(check: Check) -> None:
    pair = OfTuple((1, 2))

    def work(x: Any) -> Any:
        return pair.name(), x * 2.0

    check(work, lambda i: (row(i),), replays=0)
