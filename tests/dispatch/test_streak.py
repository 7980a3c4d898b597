"""Streaks: calls that go straight to the last ones' program are NumPy's, all counted, and end where they have to."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import numpy as np
import pytest

import accel
from accel.dispatch.replay import Variant
from accel.dispatch.streak import MISSED, Streak
from accel.platform import config
from accel.platform.ledger import open_ledger

pytestmark = pytest.mark.usefixtures("foreground")

LONG = 200
"""Number of calls after which a target is in a streak for most of its calls."""


class Model:
    def __init__(self) -> None:
        self.field = np.linspace(0.0, 1.0, 12).reshape(3, 4)
        self.weights = np.full((3, 4), 0.25)
        self.rate = 0.5
        self.count = 0

    def step(self, x: Any, flag: bool = True) -> Any:
        self.count += 1
        self.field = self.field + self.rate * (x - self.field) * self.weights
        if np.any(self.field > 100.0):
            self.field = np.minimum(self.field, 50.0)
        return np.sqrt(x) if flag else x + 1.0


def given(i: int) -> Any:
    return np.random.default_rng(i % 7).uniform(1.0, 2.0, (3, 4))


@pytest.fixture
def gone_straight(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each call that was offered to a streak, whether it has answered."""
    replay, answered = Streak.replay, list[bool]()

    def noted(self: Streak, args: Any, kwargs: Any) -> Any:
        result = replay(self, args, kwargs)
        answered.append(result is not MISSED)
        return result

    monkeypatch.setattr(Streak, "replay", noted)
    return answered


def warm(step: Any, model: Model) -> None:
    """Call until the next call is offered to a streak."""
    for i in range(LONG):
        step(model, given(i))
    for i in range(LONG):
        if step._self_target.streak.left > 0:
            return
        step(model, given(i))
    pytest.fail("there is no streak")


def test_most_calls_go_straight_and_all_are_counted(gone_straight: list[bool]) -> None:
    step = accel.accelerate(Model.step)
    mine, plain = Model(), Model()
    for i in range(LONG):
        np.testing.assert_array_equal(step(mine, given(i)), plain.step(given(i)))
        np.testing.assert_array_equal(mine.field, plain.field)
        assert mine.count == plain.count == i + 1
    assert len(gone_straight) > LONG / 2 and all(gone_straight)
    book = open_ledger(step._self_target.name)
    assert (book.calls, book.compiled_calls + book.numpy_calls) == (LONG, LONG)
    path = step._self_target.paths.programs[0].whole
    assert path.replays == book.compiled_calls, "comparisons are due by that"
    assert book.compiled_total_s > 0.0


def scalar(model: Model) -> None:
    model.rate = 0.75


def weights(model: Model) -> None:
    model.weights[1, 2] = 0.5


def no_number(model: Model) -> None:
    model.field[0, 0] = np.nan


def infinite(model: Model) -> None:
    model.field[2, 1] = np.inf


def above(model: Model) -> None:
    model.field[0, 0] = 1e3


def shape(model: Model) -> None:
    model.field = model.field[:, :1] * np.ones((3, 4), np.float32)


def alias(model: Model) -> None:
    model.weights = model.field


def readonly(model: Model) -> None:
    model.field.flags.writeable = False


def subclass(model: Model) -> None:
    model.field = np.matrix(model.field)  # type: ignore[assignment]


@pytest.mark.parametrize(
    "change",
    [scalar, weights, no_number, infinite, above, shape, alias, readonly, subclass],
    ids=lambda each: each.__name__,
)
def test_what_changes_meanwhile_is_seen_at_once(change: Callable[[Model], None], gone_straight: list[bool]) -> None:
    step = accel.accelerate(Model.step)
    mine = Model()
    warm(step, mine)
    plain = Model()
    plain.field, plain.count = mine.field.copy(), mine.count
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in (mine, plain):
            change(each)
        for i in range(LONG):
            if i == 60:  # and back
                for each in (mine, plain):
                    each.rate, each.field = 0.5, np.ones((3, 4))
            outcomes = [_outcome(each) for each in (lambda i=i: step(mine, given(i)), lambda i=i: plain.step(given(i)))]
            np.testing.assert_equal(*outcomes)
            np.testing.assert_equal(mine.field, plain.field)
            assert type(mine.field) is type(plain.field) and mine.field.dtype == plain.field.dtype
            assert mine.count == plain.count


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "changed",
    [
        lambda x: x.astype(np.float32),
        lambda x: x[:2, :4],
        lambda x: x.tolist(),
        lambda x: np.asfortranarray(x),
        lambda x: None,
    ],
    ids=["dtype", "shape", "list", "order", "None"],
)
def test_other_arguments_are_seen_at_once(changed: Callable[[Any], Any]) -> None:
    step = accel.accelerate(Model.step)
    mine = Model()
    warm(step, mine)
    plain = Model()
    plain.field, plain.count = mine.field.copy(), mine.count
    outcomes = [_outcome(lambda each=each: each(changed(given(1)))) for each in (lambda x: step(mine, x), plain.step)]
    np.testing.assert_equal(*outcomes)
    np.testing.assert_equal(mine.field, plain.field)
    np.testing.assert_equal(step(mine, given(2), flag=False), given(2) + 1.0)


class Traced:
    """A tracer that notes whether a function of the model's has run under it."""

    def __enter__(self) -> list[str]:
        self.before, names = sys.gettrace(), list[str]()
        sys.settrace(lambda frame, event, arg: names.append(frame.f_code.co_name))
        return names

    def __exit__(self, *exc: object) -> None:
        sys.settrace(self.before)


@pytest.mark.parametrize(
    "state",
    [
        lambda: np.errstate(invalid="raise"),
        Traced,
        lambda: config.override(mode="off"),
        lambda: config.override(enabled=False),
    ],
    ids=["errstate", "tracer", "off", "disabled"],
)
def test_what_keeps_calls_on_numpy_is_seen_at_once(state: Callable[[], AbstractContextManager[Any]]) -> None:
    step = accel.accelerate(Model.step)
    mine = Model()
    warm(step, mine)
    book = open_ledger(step._self_target.name)
    before = book.numpy_calls
    with state():
        step(mine, given(0))
    assert open_ledger(book.target).numpy_calls == before + 1


def failing(error: BaseException) -> AbstractContextManager[object]:
    """Let every run of a program raise."""
    return mock.patch.object(Variant, "run", side_effect=error)


def test_a_run_that_fails_is_no_call_of_the_programs() -> None:
    """NumPy answers it, once."""
    step = accel.accelerate(Model.step)
    mine = Model()
    warm(step, mine)
    count = mine.count
    with failing(RuntimeError("planted")):
        np.testing.assert_array_equal(step(mine, given(3)), np.sqrt(given(3)))
    assert mine.count == count + 1
    np.testing.assert_array_equal(step(mine, given(4)), np.sqrt(given(4)))
    assert mine.count == count + 2


def test_an_interrupt_is_the_programs() -> None:
    step = accel.accelerate(Model.step)
    mine = Model()
    warm(step, mine)
    count = mine.count
    with failing(KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        step(mine, given(3))
    assert mine.count == count
    step(mine, given(4))
    assert mine.count == count + 1


def test_calls_of_several_threads() -> None:
    step = accel.accelerate(Model.step)
    models = [Model() for _ in range(3)]
    warm(step, models[0])
    models[0] = Model()

    def work(model: Model) -> None:
        for i in range(LONG):
            step(model, given(i))

    threads = [threading.Thread(target=work, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    plain = Model()
    work_plain = [plain.step(given(i)) for i in range(LONG)]
    assert len(work_plain) == LONG
    for model in models:
        np.testing.assert_array_equal(model.field, plain.field)
        assert model.count == LONG


def test_calls_inside_another_targets_numpy_call_stay_part_of_it(gone_straight: list[bool]) -> None:
    inner = accel.accelerate(Model.step)
    mine = Model()
    warm(inner, mine)

    @accel.accelerate
    def outer(x: Any) -> Any:
        return inner(mine, x) * 2.0

    gone_straight.clear()
    np.testing.assert_array_equal(outer(given(1)), np.sqrt(given(1)) * 2.0)
    assert not any(gone_straight)


def test_with_alternating_paths_few_runs_are_in_vain(gone_straight: list[bool]) -> None:
    """Calls that take another path each time never make a streak."""

    @accel.accelerate
    def step(x: Any) -> Any:
        return np.sqrt(x) if np.sum(x) > 0.0 else x * 2.0

    for i in range(LONG):
        x = given(i) * (-1.0) ** i
        np.testing.assert_array_equal(step(x), np.sqrt(x) if i % 2 == 0 else x * 2.0)
    assert len(gone_straight) < LONG / 10


@pytest.mark.usefixtures("by_xla")
def test_runs_that_underflow_are_compared_as_often_as_without_streaks(gone_straight: list[bool]) -> None:
    """The first, second, fourth and eighth: each is counted once, by whomever it is answered."""

    @accel.accelerate
    def step(x: Any, scale: Any) -> Any:
        return np.sqrt(x) * scale * scale + 1.0

    book, compared, few = open_ledger(step._self_target.name), list[int](), np.full((3, 4), 1e-155)
    for i in range(1, 9):
        for j in range(LONG):
            step(given(j), np.ones((3, 4)))
            if j > LONG / 2 and step._self_target.streak.left > 0:
                break
        assert gone_straight and step._self_target.streak.left > 0
        before = book.comparisons
        step(given(i), few)
        compared += [i] * (book.comparisons - before)
    assert compared == [1, 2, 4, 8]
