"""Functions that accel begins to accelerate while others that call them have programs: those stay in use."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import accel
from accel.dispatch import Target
from accel.platform.own_code import function_of, is_alike
from accel.record.state.inputs import is_same

pytestmark = pytest.mark.usefixtures("foreground")

CALLS = 12


def scaled(x: Any) -> Any:
    return x * 2.0


class Field:
    factor = 0.5

    def slope(self, x: Any) -> Any:
        return np.roll(x, 1) - x

    @staticmethod
    def bounded(x: Any) -> Any:
        return np.clip(x, -0.9, 0.9)

    @classmethod
    def weighted(cls, x: Any) -> Any:
        return cls.factor * x

    @property
    def offset(self) -> Any:
        return np.linspace(0.0, 1.0, 50)

    @functools.cached_property
    def window(self) -> Any:
        return np.linspace(1.0, 2.0, 50)

    def step(self, x: Any) -> Any:
        return self.bounded(self.slope(scaled(x))) + self.weighted(np.sin(x)) * self.window + self.offset


def wrap(holder: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accelerate what stands there, as the import hook does."""
    entry = vars(holder)[name]
    if isinstance(entry, (staticmethod, classmethod)):
        monkeypatch.setattr(holder, name, type(entry)(accel.accelerate(entry.__func__)))
    elif isinstance(entry, property):
        monkeypatch.setattr(holder, name, property(accel.accelerate(entry.fget)))
    else:
        monkeypatch.setattr(holder, name, accel.accelerate(entry))


def begun() -> tuple[Target, Field]:
    """A target that has run, with one program."""
    target, field = Target(Field.step, "tests:step", None, "strict"), Field()
    assert field.window is field.window  # it is there from now on
    run(target, field, 0)
    return target, field


def run(target: Target, field: Field, first: int) -> None:
    for number in range(first, first + CALLS):
        x = np.linspace(0.0, 0.1 * number + 1.0, 50)
        np.testing.assert_allclose(target.answer((field, x), {}), Field.step(field, x), rtol=1e-12)


@pytest.mark.parametrize("name", ["slope", "bounded", "weighted", "offset", "scaled"])
def test_a_program_is_in_use_when_what_it_calls_is_accelerated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, field = begun()
    (path,) = target.paths
    replays = path.replays
    with monkeypatch.context() as patch:
        if name == "scaled":
            patch.setitem(globals(), name, accel.accelerate(scaled))
        else:
            wrap(Field, name, patch)
        run(target, field, CALLS)
        assert list(target.paths) == [path]
        assert path.replays >= replays + CALLS - 1
    # and when it no longer is
    run(target, field, 2 * CALLS)
    assert list(target.paths) == [path]


@pytest.mark.parametrize("name", ["slope", "bounded", "weighted", "offset", "scaled"])
def test_another_function_in_its_place_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, field = begun()

    def other(*args: Any) -> Any:
        return np.cos(args[-1]) if isinstance(args[-1], np.ndarray) else np.ones(50)

    if name == "scaled":
        monkeypatch.setitem(globals(), name, accel.accelerate(other))
    else:
        kinds = {"bounded": staticmethod, "weighted": classmethod, "offset": property}
        monkeypatch.setattr(Field, name, kinds.get(name, accel.accelerate)(other))
    run(target, field, CALLS)


class Lazy:
    """An object that does something when it is asked for its class."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("it is not loaded yet")


class Cached(property):
    """The program's own, which may hold more than a function."""


def test_only_functions_and_python_s_own_entries_may_have_other_wrappers() -> None:
    for other in (Lazy(), Cached(scaled), 1.0, None):
        assert is_same(other) == ("x is {0}", (other,), None)
        assert not is_alike(other, scaled)
    assert not is_alike(Cached(scaled), Cached(scaled))
    assert function_of(Cached(scaled)) is function_of(staticmethod(accel.accelerate(scaled))) is scaled
    assert is_alike(property(scaled), property(accel.accelerate(scaled)))
    assert not is_alike(property(scaled), property(scaled, lambda self, value: None))
    assert not is_alike(staticmethod(scaled), classmethod(scaled))
