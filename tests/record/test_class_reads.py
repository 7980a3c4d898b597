"""What is asked of a class itself: its methods by its own name, special attributes, its bases."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

from tests.record.conftest import Check, Checked

gain = 2.0


class Base:
    """With special methods that read a global name, and a special attribute of the program's own."""

    __scale__ = 1.0

    def __init__(self, u: Any) -> None:
        self.u = u * gain

    def __call__(self, x: Any) -> Any:
        return self.u * gain + x

    def __getitem__(self, i: int) -> Any:
        return self.u[i] * gain


class Middle(Base):
    """Between the two."""


class Last(Middle):
    """Calls its base by name, as one does without `super()`."""

    def __init__(self, u: Any) -> None:
        Base.__init__(self, u)
        self.v = u

    def __call__(self, x: Any) -> Any:
        return Base.__call__(self, x) + Base.__getitem__(self, 1)


class Colour(enum.Enum):
    """With two members."""

    RED = 1
    BLUE = 2


ONE = Last(np.ones(3))


def made(x: Any) -> Any:
    one = Last(x)
    return one.u, one.v


def called(x: Any) -> Any:
    return ONE(x)


def scaled(x: Any) -> Any:
    order: Any = Last.__mro__
    return x * Base.__scale__, x * Last.__scale__, [x * each.__scale__ for each in order[:2]]


def of_bases(x: Any) -> Any:
    last = type(ONE)
    order = 2.0 if last.__mro__[1] is Middle else 3.0
    base = 2.0 if last.__base__ is Middle else 3.0
    return x * order, x * base, x * (2.0 if last.__bases__[0] is Middle else 3.0), last.__mro__[-1] is object


def of_names(x: Any) -> Any:
    return x * len(Last.__name__), Last.__qualname__, Base.__doc__, [each.__name__ for each in Last.__mro__]


def of_members(x: Any) -> Any:
    return x * sum(each.value for each in Colour.__members__.values())


def changed(i: int) -> tuple[Any, ...]:
    """The argument of a call, and what a program changes meanwhile."""
    global gain
    gain = 2.0 + i // 4
    Base.__scale__ = 1.0 + i // 3
    return (np.linspace(0.0, 1.0 + i, 3),)


@pytest.fixture
def unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back what a test changes."""
    monkeypatch.setattr(Base, "__scale__", 1.0)
    monkeypatch.setitem(globals(), "gain", 2.0)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("function", [made, called, scaled, of_bases, of_names, of_members])
def test_what_a_class_is_asked_for_is_followed_or_guarded(check: Check, function: Any) -> None:
    checked: Checked = check(function, changed)
    assert checked.ledger.compiled_calls > 0


def test_subclasses_are_not_looked_into(check: Check) -> None:
    def work(x: Any) -> Any:
        return x * len(Middle.__subclasses__()), Middle.__subclasses__()

    check(work, changed, reason="call.opaque")


def test_a_method_that_comes_before_the_one_that_super_found(check: Check) -> None:
    class Root:
        def step(self, x: Any) -> Any:
            return x * 2.0

    class Between(Root):
        pass

    class Model(Between):
        def __init__(self) -> None:
            super().__init__()
            self.made = 1

        def step(self, x: Any) -> Any:
            return super().step(x) + 1.0

    one = Model()

    def work(x: Any) -> Any:
        return one.step(x), getattr(Model(), "given", 0.0) * x

    def before(i: int) -> None:
        if i == 5:
            Between.step = lambda self, x: x * 100.0  # type: ignore[method-assign]
            Between.__init__ = lambda self: setattr(self, "given", 3.0)  # type: ignore[method-assign]

    check(work, lambda i: (np.linspace(0.0, 1.0 + i, 3),), before=before, calls=12, replays=3)
