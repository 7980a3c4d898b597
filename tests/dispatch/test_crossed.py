"""Combinations of branches that were never recorded: how few recordings a function with many branches needs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accel
from accel.dispatch.target import Target
from accel.reports.ledger import open_ledger
from tests.merge.runs import assert_same

pytestmark = pytest.mark.usefixtures("foreground")


def program_of(branches: int, start: str, taken: str, end: str) -> Callable[..., Any]:
    """A function with so many branches on data. start, taken, end: lines before, in and after them."""
    lines = ["def branching(a, x):", f"    {start}"]
    for number in range(branches):
        lines += [f"    if a[{number}].mean() > 0.5:", f"        {taken}", f"        x = np.sin(x) + {number}.5"]
        lines += ["    else:", f"        x = x * 0.{number + 1}"] if number % 2 else []
    namespace: dict[str, Any] = {"np": np, "__name__": "branching"}
    exec("\n".join([*lines, f"    {end}", "    return x"]), namespace)
    return namespace["branching"]  # type: ignore[no-any-return]


def call_of(bits: tuple[int, ...]) -> tuple[Any, Any]:
    return np.array(bits, float)[:, None] * np.ones((1, 6)), np.linspace(0.0, 1.0, 30).reshape(5, 6)


def play(function: Callable[..., Any], fast: Any, branches: int, calls: int) -> Target:
    """Some calls at random, then each combination once; all of them are compared with NumPy."""
    draw = random.Random(0)
    combinations = list(itertools.product((0, 1), repeat=branches))
    order = [draw.choice(combinations) for _ in range(calls)] + draw.sample(combinations, len(combinations))
    for bits in order:
        assert_same(fast(*call_of(bits)), function(*call_of(bits)))
    target: Target = fast._self_target
    return target


def test_eight_branches_need_few_recordings_and_one_program() -> None:
    function = program_of(8, "pass", "pass", "pass")
    target = play(function, accel.accelerate(function, name="eight"), 8, 60)
    assert len(target.paths) <= 12
    assert target.recordings.count <= 12
    assert open_ledger("eight").variants == 1
    (program,) = target.paths.describe()
    assert program["paths"] + program["crossed"] > 200
    assert f"of {program['paths']} paths and {program['crossed']} more combinations" in " ".join(
        accel.report(full=True).split()
    )
    # what crosses is compared where no call crossed before, and not on each of its first calls
    assert open_ledger("eight").comparisons < 120
    for branch in program["branches"]:
        assert set(branch["sides"]) == {"True", "False"}


def test_a_count_of_the_branches_taken_is_recorded_until_it_is_known() -> None:
    function = program_of(4, "n = 0", "n += 1", "x = x + 100.0 if n == 2 else x")
    target = play(function, accel.accelerate(function, name="counted"), 4, 200)
    joint = target.paths.joint
    assert joint is not None
    assert len(joint.members) + len(joint.crossed) >= 14


def test_a_wrong_crossing_is_found_and_dissolves_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """What crosses is compared with NumPy the first times: here a state that leaves out flags and counts."""
    from accel.merge import certificates
    from accel.record.state.joins import ConstantKey

    form = certificates.form

    def without_literals(template: Any, leaf: Any, kinds: Any) -> Any:
        return form(template, lambda each: None if isinstance(each, ConstantKey) else leaf(each), kinds)

    monkeypatch.setattr(certificates, "form", without_literals)

    def counted(a: Any, x: Any) -> Any:
        n = 0
        if a[0].any():
            n += 1
        if a[1].any():
            n += 1
        x = np.sin(x)
        if n == 2:
            x = x + 100.0
        return x

    fast = accel.accelerate(counted, name="planted")
    for bits in [(0, 0), (1, 0), (0, 1)] * 12:
        assert_same(fast(*call_of(bits)), counted(*call_of(bits)))
    target = fast._self_target
    assert target.paths.joint is not None
    assert_same(fast(*call_of((1, 1))), counted(*call_of((1, 1))))
    assert target.paths.joint is None
    assert any(path.apart.startswith("together they differ from NumPy") for path in target.paths)
