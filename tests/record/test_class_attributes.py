"""Attributes of classes that recorded code assigns: counters and totals that all objects share."""

from __future__ import annotations

import itertools
import time
from abc import ABC
from typing import Any

import numpy as np

import accel
from accel.platform.ledger import open_ledger
from tests.helpers import some
from tests.record.conftest import Twins, judged, play

_names = itertools.count()


def agree(make: Any, work: Any, *, calls: int = 9, replays: int = 4, reason: str | None = None) -> None:
    """Compare `work(kind(), x)` with its accelerated form, with a class of its own for each. make: makes the class."""
    name = f"class attributes {next(_names)}"
    accelerated, plain, mine = accel.accelerate(work, name=name), make(), make()
    for i in range(calls):
        if i == 6 and "steps" in vars(plain) and reason is None:
            plain.steps = mine.steps = 1000  # by the program, between two calls
        expected, found = play(work, (plain(), some(i, 4) + 3.0)), play(accelerated, (mine(), some(i, 4) + 3.0))
        Twins(False).same(expected, found, f"call {i}")
        for key, value in vars(plain).items():
            if not key.startswith("_") and not hasattr(value, "__get__"):
                Twins(False).same(value, vars(mine)[key], f"{key} after call {i}")
    judged(name, 0 if reason else replays, reason)


def counted() -> Any:
    class Base(ABC):  # noqa: B024  # a metaclass that sets attributes as usual
        steps = 0
        scale = 2.0

        @classmethod
        def bump(cls) -> None:
            cls.steps += 1

    return Base


def test_a_counter_by_a_method_of_the_class() -> None:
    def work(one: Any, x: Any) -> Any:
        before = one.steps
        one.bump()
        type(one).steps = type(one).steps + 2
        return x * one.steps, before, one.steps, type(one).steps

    agree(counted, work)


def test_numbers_and_arrays_that_a_run_computes() -> None:
    def made() -> Any:
        class Total:
            total: Any = 0.0
            last: Any = None
            field = np.zeros(4)

        return Total

    def work(one: Any, x: Any) -> Any:
        kind = type(one)
        kind.total += x.sum()
        kind.last = x * 2.0
        kind.field += x
        one.field[0] = 1.0
        return kind.total, one.last, one.last is kind.last, kind.field.copy()

    agree(made, work)


def test_what_an_object_has_itself_hides_it() -> None:
    def work(one: Any, x: Any) -> Any:
        one.scale = 5.0
        type(one).scale = x[0]
        return x * one.scale, type(one).scale, one.scale

    agree(counted, work)


def test_only_on_one_side_of_a_branch() -> None:
    def work(one: Any, x: Any) -> Any:
        if x.sum() > 12.0:
            type(one).steps += 1
        return x * 2.0, type(one).steps

    agree(counted, work, calls=16, replays=2)


def test_in_a_loop_whose_rounds_the_data_count() -> None:
    def work(one: Any, x: Any) -> Any:
        while x.sum() < 100.0:
            x = x * 1.5
            type(one).steps += 1
            type(one).scale = x[0]
        return x, type(one).steps, one.scale

    agree(counted, work, calls=20, replays=1)


def test_an_error_after_the_assignment() -> None:
    def work(one: Any, x: Any) -> Any:
        type(one).steps += 1
        if type(one).steps % 3 == 0:
            raise ValueError(f"at {type(one).steps}")
        return x * one.steps

    agree(counted, work, replays=1)


def test_a_recording_that_is_undone_has_assigned_nothing() -> None:
    kind = counted()

    def work(x: Any) -> Any:
        kind.steps += 1
        return x * kind.steps + time.time() * 0.0

    fast = accel.accelerate(work, name="undone")
    for i in range(1, 8):
        np.testing.assert_array_equal(fast(np.ones(2)), np.ones(2) * i)
    assert kind.steps == 7
    assert open_ledger("undone").refusals


class Strict(type):
    def __setattr__(cls, name: str, value: object) -> None:
        super().__setattr__(name, value)


def test_what_changes_a_lookup_ends_the_tape() -> None:
    def with_metaclass() -> Any:
        class Own(metaclass=Strict):
            steps = 0

        return Own

    def of_property() -> Any:
        class Computed:
            @property
            def steps(self) -> int:
                return 1

        return Computed

    def work(one: Any, x: Any) -> Any:
        type(one).steps = 3
        return x * one.steps

    for make in (with_metaclass, of_property):
        agree(make, work, reason="effect.global")

    def method(one: Any, x: Any) -> Any:
        type(one).scale = lambda self: 2.0
        return x * one.scale()

    agree(counted, method, reason="effect.global")
