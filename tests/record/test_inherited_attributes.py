"""Attributes of classes that inherit from others: read, assigned on either, and made by recorded code."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import accel
from accel.platform.ledger import open_ledger
from tests.record.conftest import Twins, judged, play

_names = itertools.count()


class Family:
    """Base, Mid(Base), Low(Mid) and Side(Base), as they are made anew for each run, and an object of each."""

    def __init__(self) -> None:
        class Base:
            n: Any = 0
            scale: Any = 2.0
            field = np.zeros(3)
            log: Any = ()

            @classmethod
            def bump(cls) -> None:
                cls.n += 1

            def bump_own(self) -> None:
                self.__class__.n += 1

        class Mid(Base):
            def above(self) -> Any:
                return super().scale

        class Low(Mid):
            def above_mid(self) -> Any:
                return super().scale

        class Side(Base):
            scale = 3.0

        self.kinds = Base, Mid, Low, Side
        self.Base, self.Mid, self.Low, self.Side = Base, Mid, Low, Side
        self.base, self.mid, self.low, self.side = Base(), Mid(), Low(), Side()

    def held(self) -> list[dict[str, Any]]:
        """What each class holds itself, in order."""
        return [
            {name: value for name, value in vars(kind).items() if name[0] != "_" and not hasattr(value, "__get__")}
            for kind in self.kinds
        ]


def some(i: int) -> Any:
    return np.random.default_rng(i).normal(size=3) + 3.0


def agree(
    work: Any, *, between: Any = None, calls: int = 9, replays: int = 3, reason: str | None = None
) -> tuple[Family, Family]:
    """Compare `work(family, x)` with its accelerated form, each with classes of its own.

    between(family, i): what the program does before call i, outside the function.
    """
    name = f"inherited {next(_names)}"
    accelerated, plain, mine = accel.accelerate(work, name=name), Family(), Family()
    for i in range(calls):
        if between is not None:
            for family in (plain, mine):
                between(family, i)
        expected, found = play(work, (plain, some(i))), play(accelerated, (mine, some(i)))
        Twins(False).same(expected, found, f"call {i}")
        for kind, held, other in zip(plain.kinds, plain.held(), mine.held(), strict=True):
            assert list(held) == list(other), f"{kind.__name__} after call {i}"
            for key, value in held.items():
                Twins(False).same(value, other[key], f"{kind.__name__}.{key} after call {i}")
    judged(name, 0 if reason else replays, reason)
    return plain, mine


def test_a_counter_of_the_base_becomes_one_of_the_class_itself() -> None:
    def work(family: Any, x: Any) -> Any:
        family.low.bump()
        family.mid.bump_own()
        type(family.side).n += 2
        return x * family.low.n, family.mid.n, family.Side.n, family.base.n

    agree(work)


def test_the_base_is_assigned_and_read_through_all() -> None:
    def work(family: Any, x: Any) -> Any:
        family.Base.n = x[0]
        family.Base.scale = family.Base.scale + x.sum()
        return family.low.n, family.Low.n, family.mid.scale, family.side.scale, family.Side.scale

    agree(work)


def test_a_class_in_between_gets_its_own_by_the_program() -> None:
    """Between two calls: what was read of the base is the other's from then on."""

    def work(family: Any, x: Any) -> Any:
        family.Base.n = x[0]
        return x * family.low.n, family.Low.n, family.low.scale

    def between(family: Any, i: int) -> None:
        if i == 5:
            family.Mid.n = 100.0
        if i == 7:
            del family.Mid.n
            family.Low.scale = 7.0

    agree(work, between=between, calls=12, replays=2)


def test_a_class_in_between_gets_its_own_in_the_call() -> None:
    def work(family: Any, x: Any) -> Any:
        before = family.low.scale
        family.Mid.scale = x[0]
        middle = family.low.scale, family.Low.scale, family.base.scale
        family.Base.scale = x[1]
        return before, middle, family.low.scale, family.base.scale, family.side.scale

    agree(work)


def test_of_a_name_that_no_class_had() -> None:
    def work(family: Any, x: Any) -> Any:
        family.Mid.total = x.sum()
        family.Mid.total += 1.0
        return family.low.total * x, family.mid.total, hasattr(family.base, "total"), hasattr(family.low, "total")

    agree(work)


def test_a_name_that_was_missing_before_in_the_same_call() -> None:
    def work(family: Any, x: Any) -> Any:
        before = hasattr(family.low, "late"), hasattr(family.Low, "late"), getattr(family.low, "late", None)
        family.Base.late = x[0] * 2.0
        return before, family.low.late, family.Low.late * x, getattr(family.mid, "late", None)

    def between(family: Any, i: int) -> None:
        if "late" in vars(family.Base) and i % 3:
            del family.Base.late

    agree(work, between=between, calls=15, replays=2)


def test_made_once_and_used_from_then_on() -> None:
    def work(family: Any, x: Any) -> Any:
        if not hasattr(family.Mid, "table"):
            family.Mid.table = x * 2.0
        return family.low.table + x, family.Mid.table.sum()

    agree(work)


def test_arrays_are_the_same_ones() -> None:
    def work(family: Any, x: Any) -> Any:
        family.mid.field[0] += x[0]  # the base's
        family.Mid.field = family.Mid.field + x  # its own from now on
        family.low.field[1] = x[1]
        return family.low.field is family.Mid.field, family.base.field.copy(), family.low.field.copy()

    plain, mine = agree(work)
    assert mine.Mid.field is not mine.Base.field
    assert np.shares_memory(mine.Low.field, mine.Mid.field)
    np.testing.assert_allclose(mine.Mid.field, plain.Mid.field)


def test_a_view_held_by_one_and_its_array_by_the_other() -> None:
    def work(family: Any, x: Any) -> Any:
        whole = x * 1.0
        family.Mid.whole, family.Side.part = whole, whole[1:]
        family.side.part[0] = 5.0
        return family.mid.whole.copy(), family.side.part.copy()

    _, mine = agree(work)
    mine.Mid.whole[2] = -1.0
    assert mine.Side.part[1] == -1.0


def test_another_dtype_than_before() -> None:
    def work(family: Any, x: Any) -> Any:
        family.Low.n = family.Low.n + 1 if type(family.Low.n) is int else int(family.Low.n)
        family.Side.n = np.float32(x[0])
        return family.Low.n, type(family.Low.n) is int, family.Side.n.dtype == np.float32

    def between(family: Any, i: int) -> None:
        if i == 6:
            family.Low.n = 2.5

    agree(work, between=between, calls=14)


def test_an_object_that_has_its_own_hides_it() -> None:
    def work(family: Any, x: Any) -> Any:
        family.Mid.n = x[0]
        family.mid.n = 4.0
        family.Mid.n += 1.0
        return family.mid.n * x, family.low.n, family.Mid.n

    def between(family: Any, i: int) -> None:
        if i == 5:
            family.low.n = -3.0
        if i == 8:
            del family.low.n

    agree(work, between=between, calls=14, replays=2)


def test_what_an_object_had_itself_is_deleted() -> None:
    def work(family: Any, x: Any) -> Any:
        family.low.n = 9.0
        family.Mid.n = x[0]
        del family.low.n
        return family.low.n * x

    agree(work)


def test_an_error_after_the_assignment() -> None:
    def work(family: Any, x: Any) -> Any:
        family.low.bump()
        family.Side.made = x[0]
        if family.low.n % 3 == 0:
            raise ValueError(f"at {family.low.n}")
        return x * family.low.n, family.side.made

    agree(work, calls=15, replays=1)


def test_an_undone_recording_has_made_nothing() -> None:
    family = Family()

    def work(x: Any) -> Any:
        seen = hasattr(family.Mid, "made")
        family.Mid.made = x.sum()
        family.low.bump()
        return x * family.low.n + time.time() * 0.0, seen

    fast = accel.accelerate(work, name="undone, inherited")
    for i in range(1, 8):
        result, seen = fast(np.ones(2))
        np.testing.assert_array_equal(result, np.ones(2) * i)
        assert seen is (i > 1)
    assert (family.Low.n, family.Base.n) == (7, 0)
    assert open_ledger("undone, inherited").refusals


def test_on_one_side_of_a_branch() -> None:
    def work(family: Any, x: Any) -> Any:
        if x.sum() > 9.0:
            family.mid.bump()
            family.Low.seen = x[0]
        return x * 2.0, family.Mid.n, family.low.n, getattr(family.low, "seen", -1.0)

    agree(work, calls=24, replays=2)


def test_in_a_loop_whose_rounds_the_data_count() -> None:
    def work(family: Any, x: Any) -> Any:
        while x.sum() < 40.0:
            x = x * 1.5
            family.low.bump()
            family.Side.last = x[0]
        return x, family.low.n, family.Mid.n, getattr(family.side, "last", None)

    agree(work, calls=24, replays=1)


def test_no_round_of_a_loop_makes_nothing() -> None:
    def work(family: Any, x: Any) -> Any:
        y = x * 1.0
        while y.sum() < 9.0:
            y = y * 1.5
            family.Mid.made = y[0]
        return y, hasattr(family.low, "made")

    def between(family: Any, i: int) -> None:
        if "made" in vars(family.Mid):
            del family.Mid.made

    agree(work, between=between, calls=30, replays=1)


def test_super_looks_past_the_class() -> None:
    def work(family: Any, x: Any) -> Any:
        family.Low.scale = x[0]
        first = family.low.above(), family.low.above_mid()
        family.Mid.scale = x[1]
        second = family.low.above(), family.low.above_mid()
        family.Base.scale = x[2]
        return first, second, family.low.above(), family.low.above_mid()

    def between(family: Any, i: int) -> None:
        if i == 6:
            del family.Mid.scale

    agree(work, between=between, calls=12, replays=1)


def test_super_reads_of_a_class_that_has_got_its_own_since() -> None:
    def work(family: Any, x: Any) -> Any:
        return family.low.above_mid() * x

    def between(family: Any, i: int) -> None:
        if i == 6:
            family.Mid.scale = 50.0

    agree(work, between=between, calls=12)


def test_lists_that_classes_hold() -> None:
    def work(family: Any, x: Any) -> Any:
        family.Mid.log = (*family.Mid.log[-2:], x[0])
        family.Side.items = [x[1], x[2] * 2.0]
        family.side.items.append(x[0])
        return family.low.log, family.Side.items[0] * x, len(family.side.items)

    agree(work, calls=14)


def test_by_setattr_and_getattr() -> None:
    def work(family: Any, x: Any) -> Any:
        for position, name in enumerate(("a", "b")):
            setattr(family.Mid, name, x[position])
            setattr(family.Mid, name, getattr(family.low, name) * 2.0)
        return family.low.a + family.low.b

    agree(work)


def test_two_bases() -> None:
    class Left:
        rate = 1.0

    class Right:
        rate, extra = 2.0, 3.0

    class Both(Left, Right):
        pass

    def work(x: Any) -> Any:
        Right.extra = x[0]
        Both.extra = Both.extra + 1.0
        Left.rate = x[1]
        return Both.extra, Both().rate * x, Right.extra, Right.rate

    fast = accel.accelerate(work, name="two bases")
    for i in range(8):
        expected = work(some(i))
        for kind in (Left, Right, Both):
            if kind is Both:
                del Both.extra
        found = fast(some(i))
        np.testing.assert_allclose(np.hstack(found), np.hstack(expected), rtol=1e-12)
        del Both.extra
    assert open_ledger("two bases").compiled_calls


def test_an_object_of_a_dataclass() -> None:
    @dataclass
    class Point:
        x: Any = 1.0
        made = 0

    class Named(Point):
        pass

    def work(point: Any, x: Any) -> Any:
        type(point).made += 1
        Point.made += 10
        return point.x * x * type(point).made, Point.made

    fast = accel.accelerate(work, name="of a dataclass")
    for i in range(1, 9):
        result, made = fast(Named(2.0), some(i))
        np.testing.assert_allclose(result, 2.0 * some(i) * i, rtol=1e-12)
        assert (Named.made, Point.made, made) == (i, 10 * i, 10 * i)
    assert open_ledger("of a dataclass").compiled_calls


def test_several_threads() -> None:
    family = Family()

    def work(x: Any) -> Any:
        family.low.scale_of = x[0]
        family.Mid.last = x.sum()
        return x * family.Side.scale + family.base.n

    fast = accel.accelerate(work, name="in threads, inherited")
    wrong = []

    def calls(first: int) -> None:
        for i in range(first, first + 20):
            if not np.allclose(fast(some(i)), some(i) * 3.0):
                wrong.append(i)

    threads = [threading.Thread(target=calls, args=(first,)) for first in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert any(np.isclose(family.Low.last, some(i).sum()) for i in range(220))


def test_another_thread_assigns_in_between() -> None:
    """It is found out, and what the other has assigned is what the call sees."""
    family = Family()

    def work(x: Any, other: Any) -> Any:
        family.Mid.n = x[0]
        other()
        return family.low.n * x

    fast = accel.accelerate(work, name="from outside")
    for i in range(6):

        def other() -> None:
            thread = threading.Thread(target=lambda: setattr(family.Low, "n", 8.0))
            thread.start()
            thread.join()

        np.testing.assert_array_equal(fast(some(i), other), some(i) * 8.0)
        del family.Low.n


@pytest.mark.parametrize(
    "work",
    [
        lambda family, x: setattr(family.Mid, "bump", 3.0) or x * family.mid.bump,
        lambda family, x: setattr(family.Mid, "rate", property(lambda self: 2.0)) or x * family.mid.rate,
        lambda family, x: setattr(family.Mid, "rate", lambda self: 2.0) or x * family.mid.rate(),
        lambda family, x: setattr(family.Mid, "__len__", 3) or x * 2.0,
    ],
)
def test_what_changes_how_a_lookup_works_ends_the_tape(work: Any) -> None:
    agree(work, reason="effect.global")


class Counted:
    made: Any = 0
    scale = 2.0

    def __init__(self, x: Any) -> None:
        self.x = x
        self.__class__.made += 1

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


def compare(work: Any, *, replays: int = 3, reason: str | None = None) -> None:
    """Compare `work(x)` with its accelerated form, and what Counted and Other hold after each call."""
    name = f"class reads {next(_names)}"
    fast, found = accel.accelerate(work, name=name), []
    for function in (work, fast):
        Counted.made = 0
        if "made" in vars(Other):
            del Other.made
        found.append([(play(function, (some(i),)), Counted.made, Other.made) for i in range(10)])
    Twins(False).same(found[0], found[1], "all calls")
    judged(name, 0 if reason else replays, reason)


def test_class_of_self_counts_and_makes() -> None:
    def work(x: Any) -> Any:
        one, other = Counted(x).twice(), Other(x[:2]).twice()
        return one.x, other.x, type(other) is Other, Counted.made, Other.made

    compare(work)


def test_class_of_self_is_what_type_gives() -> None:
    def work(x: Any) -> Any:
        one, other = Counted(x), Other(x)
        return one.x * 2.0, one.facts(other), other.facts(one)

    compare(work)


@pytest.mark.parametrize(
    "work",
    [
        lambda x: (Counted(x).is_like(Other(x)), x * 2.0),
        lambda x: (Counted(x).rebound(), x * 2.0),
        lambda x: (Counted(x).nested(), x * 2.0),
        lambda x: (Counted(x).become(), x * 2.0),
    ],
)
def test_other_reads_of_a_class_stay_on_numpy(work: Any) -> None:
    compare(work, reason="code.unsupported")


def test_of_an_object_that_has_no_stand_in() -> None:
    pair = OfTuple((1, 2))

    def work(x: Any) -> Any:
        return pair.name(), x * 2.0

    compare(work, replays=0)


def test_of_the_object_of_a_context_manager() -> None:
    class Held:
        entered: Any = 0

        @contextmanager
        def open(self) -> Iterator[Any]:
            self.__class__.entered += 1
            yield self.__class__.entered

    held = Held()

    def work(x: Any) -> Any:
        with held.open() as entered:
            return x * entered

    fast = accel.accelerate(work, name="a context manager's class")
    for i in range(1, 8):
        np.testing.assert_array_equal(fast(some(i)), some(i) * i)
    assert Held.entered == 7


def test_deleting_ends_the_tape() -> None:
    def work(family: Any, x: Any) -> Any:
        family.Mid.scale = 5.0
        del family.Mid.scale
        return x * family.low.scale

    agree(work, reason="effect.global")
