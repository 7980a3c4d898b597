"""Experience: what one process found out about a path decides what the next one looks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel.backend.disk import experience
from accel.backend.disk.experience import Experience
from accel.platform import config
from accel.policy import budget, speed

KEY = "ab" * 20


@pytest.fixture(autouse=True)
def folder(foreground: None, tmp_path: Path) -> Iterator[Path]:
    """A cache folder of its own."""
    with config.override(cache_dir=tmp_path):
        yield tmp_path


@pytest.fixture
def for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the process of `accel compile`."""
    monkeypatch.setattr(budget, "for_later_runs", True)


class Model:
    """Its factor changes whenever somebody says so; its field does not."""

    def __init__(self) -> None:
        self.factor = 2.0
        self.field = np.arange(6.0)


def step(model: Model, x: Any) -> Any:
    return x**model.factor + model.field


def run(function: Any, factors: list[float]) -> list[dict[str, Any]]:
    """The programs of a fresh target after a call for each factor."""
    fast, model = accel.accelerate(function, name="m.step"), Model()
    for factor in factors:
        model.factor = factor
        np.testing.assert_array_equal(fast(model, np.ones(6)), function(model, np.ones(6)))
    described: list[dict[str, Any]] = fast._self_target.paths.describe()
    return described


def test_what_is_known_is_found_again(folder: Path) -> None:
    assert experience.read(KEY) == Experience()
    known = Experience(frozenset({3, 1}), 0)
    experience.save(KEY, known)
    assert experience.read(KEY) == known
    assert [path.suffix for path in folder.rglob("*.*")] == [".path"]


def test_a_number_that_changed_in_one_run_is_constant_in_none_after_it() -> None:
    (first,) = run(step, [2.0] * 8)
    assert first["constants"] == ["model.factor", "model.field"]
    assert not first["found_on_disk"]
    (same,) = run(step, [2.0] * 8)
    assert same["constants"] == ["model.factor", "model.field"]
    assert same["found_on_disk"]
    (changed,) = run(step, [2.0] * 8 + [3.0] * 4)
    assert changed["constants"] == ["model.field"]
    (after,) = run(step, [2.0] * 8)
    assert after["constants"] == ["model.field"], "the field has never changed"
    assert after["found_on_disk"]


def test_an_array_that_changed_in_one_run_is_constant_in_none_after_it() -> None:
    def calls(changes: bool) -> dict[str, Any]:
        fast, model = accel.accelerate(step, name="m.step"), Model()
        for number in range(12):
            if changes and number == 8:
                model.field = np.arange(6.0) + 1.0
            np.testing.assert_array_equal(fast(model, np.ones(6)), step(model, np.ones(6)))
        (program,) = fast._self_target.paths.describe()
        return program

    assert calls(changes=False)["constants"] == ["model.factor", "model.field"]
    assert calls(changes=True)["constants"] == ["model.factor"]
    after = calls(changes=False)
    assert after["constants"] == ["model.factor"] and after["found_on_disk"]


def test_programs_name_what_holds_them_on_disk() -> None:
    (kept,) = run(step, [2.0] * 8)
    assert kept["kept_bytes"] > 0
    assert kept["unkept"] is None
    with config.override(cache_dir=None):
        (lost,) = run(step, [2.0] * 8)
    assert (lost["kept_bytes"], lost["unkept"]) == (None, "the disk cache is off")


# -- compiling for later runs ------------------------------------------------------------------------------------------


def test_nothing_is_given_up_for_its_speed(for_later: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed.Speed, "evidence_of_slowness", lambda self: "it is slow")
    (program,) = run(step, [2.0] * 40)
    assert program["state"] == "in use"


def test_a_nested_target_gets_a_program_of_its_own(for_later: None) -> None:
    inner = accel.accelerate(lambda x: x * 2.0 + 1.0, name="m.inner")
    outer = accel.accelerate(lambda x: inner(x) - x, name="m.outer")
    for _ in range(20):
        outer(np.ones(6))
    for target in (inner, outer):
        assert len(target._self_target.paths.describe()) == 1


def test_a_rare_path_is_found_while_another_one_is_watched(for_later: None) -> None:
    fast = accel.accelerate(lambda x: x * 3.0 if x[0] > 1.0 else x * 2.0, name="m.branching")
    values = [0.0] * 3 + [2.0] + [0.0] * 8
    for value in values:
        fast(np.full(6, value))
    assert len(fast._self_target.paths) == 2


def test_a_path_that_differs_in_its_guards_alone_gets_a_program(for_later: None) -> None:
    fast = accel.accelerate(lambda x, t: np.sin(x + t), name="m.timed")
    x = np.linspace(0.0, 1.0, 6)
    for t in [0.0, 0.0] + [np.float64(number) for number in range(8)]:
        np.testing.assert_array_equal(fast(x, t), np.sin(x + t))
    assert [program["state"] for program in fast._self_target.paths.describe()] == ["in use"]


def test_at_the_end_what_was_called_too_few_times_is_compiled(for_later: None) -> None:
    fast = accel.accelerate(step, name="m.step")
    for _ in range(3):
        fast(Model(), np.ones(6))
    target = fast._self_target
    assert target.paths.describe() == []
    target.compile_remaining()
    (program,) = target.paths.describe()
    assert program["kept_bytes"] > 0


def test_at_the_end_what_changed_on_one_path_is_constant_on_none(for_later: None) -> None:
    def branching(model: Model, x: Any) -> Any:
        return x**model.factor if x[0] > 1.0 else x - x**model.factor

    fast, model = accel.accelerate(branching, name="m.branching"), Model()
    for value in [0.0] * 8 + [2.0] * 8:
        fast(model, np.full(6, value))
    model.factor = 5.0
    for _ in range(4):
        fast(model, np.full(6, 2.0))
    constants = [program["constants"] for program in fast._self_target.paths.describe()]
    assert sorted(constants) == [[], ["model.factor"]]
    fast._self_target.compile_remaining()
    assert [program["constants"] for program in fast._self_target.paths.describe()] == [[], []]
