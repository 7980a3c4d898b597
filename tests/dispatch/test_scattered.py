"""Numbers that are others in each call: a few recordings show that, and no more are made."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import accel
from accel.backend.underway import queues
from accel.dispatch import compiling, recordings
from accel.dispatch.paths import known
from accel.entry.lift import iterations
from accel.platform import gain
from accel.platform.ledger import Ledger, ledgers, open_ledger
from accel.policy import account, prices, rest
from tests.conftest import WriteModules


@pytest.fixture
def at_once(
    books: None, in_background: None, unchecked: None, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """The budget holds, but covers everything, and no call is too short to be looked at."""
    for name in ("IMPORT_GAIN_S", "COMPILE_GAIN_S"):
        monkeypatch.setattr(gain, name, 0.0)
    monkeypatch.setattr(account, "RELIABLE_CALL_S", 0.0)
    monkeypatch.setattr(rest, "SMALL_CALL_S", 0.0)
    monkeypatch.setattr(rest, "MAX_REST", 0)


@pytest.fixture
def free(at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling costs nothing and ends at once, whatever other tests have measured."""
    monkeypatch.setattr(prices, "burden_s", lambda compile_s: 0.0)
    monkeypatch.setattr(account, "LAUNCH_S", 0.0)
    monkeypatch.setattr(queues, "compile_in_background", queues.compile_now)


def least(x: Any, limit: float) -> Any:
    """Of a selection in a shape that makes its length part of the path."""
    return np.sort(x[x > limit]).reshape(1, -1)[0, 0]


def play(name: str, limits: Callable[[int], float]) -> tuple[Any, Ledger]:
    """Sixty calls, compared with NumPy. Returns the known paths, and the ledger."""
    fast: Any = accel.accelerate(least, name=name)
    x = np.random.default_rng(0).normal(size=2000)
    for i in range(60):
        assert fast(x, limits(i)) == least(x, limits(i))
    return fast._self_target.paths, open_ledger(name)


@pytest.mark.usefixtures("at_once")
def test_lengths_that_differ_in_each_call_are_recorded_a_few_times_only() -> None:
    paths, ledger = play("scattered", lambda i: 0.02 * i)
    assert len(paths) == known.MOST_APART and not paths.with_program, "no number has come twice"
    (refusal,) = (each for each in ledger.refusals if each.reason == "shape.scattered")
    assert refusal.detail.startswith("line ")
    assert refusal.detail.count(",") == known.MOST_APART - 1


@pytest.mark.usefixtures("at_once")
def test_the_statements_around_such_a_length_are_targets(
    write_modules: WriteModules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "LIFTED_CALL_S", 0.0)
    monkeypatch.setattr(iterations, "LEAST_SHARE", 0.0)
    source = (
        "import numpy as np\n\n\ndef step(x, limit):\n    y = np.sin(x) * 2.0\n    z = np.cos(y) + x\n"
        "    low = np.sort(y[y > limit]).reshape(1, -1)[0, 0]\n    w = z * low\n    return np.sqrt(w * w + 1.0)\n"
    )
    write_modules({"scattered_step.py": source})
    step = importlib.import_module("scattered_step").step
    plain = FunctionType(step.__code__, step.__globals__)
    fast = accel.accelerate(step)
    x = np.random.default_rng(0).normal(size=2000)
    for i in range(60):
        np.testing.assert_allclose(fast(x, 0.02 * i), plain(x, 0.02 * i), rtol=1e-12)
    parts = {"scattered_step:step:5-6", "scattered_step:step:8-9"}
    assert parts <= {book.target for book in ledgers() if book.calls}


@pytest.mark.usefixtures("free")
def test_a_length_that_stays_is_recorded_twice_and_compiled() -> None:
    paths, ledger = play("constant", lambda i: 0.5)
    assert len(paths) == 1 and ledger.compiled_calls > 20


@pytest.mark.usefixtures("free")
def test_a_length_that_python_knows_does_not_delay_a_program() -> None:
    fast: Any = accel.accelerate(lambda x, n: np.sin(x) * 2.0 if len(x) == n else x, name="known")
    x = np.linspace(0.0, 1.0, 20_000)
    paths = fast._self_target.paths
    for _ in range(30):
        np.testing.assert_allclose(fast(x, 20_000), np.sin(x) * 2.0, rtol=1e-12)
    assert not any(map(paths.may_scatter, paths))
    assert len(paths) == 1 and fast._self_target.recordings.count == 1 and open_ledger("known").compiled_calls > 10


@pytest.mark.usefixtures("free")
@pytest.mark.parametrize(("most", "delays"), [(3, False), (300, True)])
def test_a_small_count_does_not_delay_a_program(most: int, delays: bool) -> None:
    """Substeps are counted anew in each call, and mostly are as many."""

    def step(x: Any) -> Any:
        for _ in range(max(1, min(int(np.abs(x).max() * 1e4), most))):
            x = np.sin(x) * 0.5
        return x

    name = f"substeps {most}"
    fast: Any = accel.accelerate(step, name=name)
    x = np.random.default_rng(0).normal(size=2000)
    paths, i = fast._self_target.paths, 0
    while not paths:
        np.testing.assert_allclose(fast(x + i), step(x + i), rtol=1e-12)
        i += 1
    assert [paths.may_scatter(path) for path in paths] == [delays]
    for more in range(12):
        np.testing.assert_allclose(fast(x + more), step(x + more), rtol=1e-12)
    assert open_ledger(name).compiled_calls > 5


@pytest.mark.usefixtures("at_once")
def test_lengths_that_come_again_are_all_recorded() -> None:
    paths, ledger = play("again", lambda i: 0.02 * (i // 2 % 6))
    assert len(paths) == 6
    assert "shape.scattered" not in {each.reason for each in ledger.refusals}


TURNED = """import numpy as np
from scipy import ndimage


def step(x, n):
    y = np.sin(x) * 2.0
    z = np.cos(y) + x
    low = {line}
    w = z * low
    return np.sqrt(w * w + 1.0)
"""
LINES = {
    "an angle": "ndimage.rotate(y, 0.5 * n, reshape=False, order=1)",
    "a shift": "np.roll(y, n, axis=0)",
    "a count": "np.full(int((y > 0.02 * n).sum()), 1.0).sum()",
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.usefixtures("at_once")
def test_a_number_that_no_two_recordings_share_splits_the_function_without_a_program(
    write_modules: WriteModules, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(recordings, "LIFTED_CALL_S", 0.0)
    monkeypatch.setattr(recordings, "FIRST_AGAIN", 1)
    monkeypatch.setattr(iterations, "LEAST_SHARE", 0.0)
    monkeypatch.setattr(compiling, "OBSERVED", 10**9)  # none is compiled
    module = "turned_" + name.split()[1]
    write_modules({f"{module}.py": TURNED.format(line=LINES[name])})
    step = importlib.import_module(module).step
    plain = FunctionType(step.__code__, step.__globals__)
    fast = accel.accelerate(step)
    x = np.random.default_rng(0).normal(size=(30, 30))
    for i in range(1, 60):
        np.testing.assert_allclose(fast(x, i), plain(x, i), rtol=1e-12)
    assert "shape.scattered" in {each.reason for each in open_ledger(f"{module}:step").refusals}
    parts = {f"{module}:step:6-7", f"{module}:step:9-10"}
    assert parts <= {book.target for book in ledgers() if book.calls}
