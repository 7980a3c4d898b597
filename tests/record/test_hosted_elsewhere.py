"""Calls on the host away from one program in float64: other precisions, divided devices, batches, threads and forks."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import ndimage, signal

import accel
from accel.platform import config, processors
from accel.platform.ledger import open_ledger
from accel.transform.ensembles import batch
from tests.backend.test_shards import said


def fields(i: int, shape: tuple[int, ...] = (12, 16)) -> Any:
    return np.random.default_rng(i).random(shape)


def work(x: Any) -> Any:
    y = x * 2.0 + np.roll(x, 1, 0)
    regions, count = ndimage.label(y > 1.5)
    a = x @ x.T + np.triu(x[:, : len(x)])
    peaks, _ = signal.find_peaks(np.sin(np.arange(16.0)) + 0.1 * x[0, 0])
    return regions * x, regions, count, np.sort(np.abs(np.linalg.eigvals(a))) * 2.0, peaks


def error(found: Any, expected: Any) -> float:
    """The largest difference, relative; types, lengths and dtypes have to be equal."""
    worst = 0.0
    for one, other in zip(found, expected, strict=True):
        assert type(one) is type(other)
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype and one.shape == other.shape
        worst = max(worst, float(np.abs(one - other).max() / np.abs(other).max()))
    return worst


@pytest.mark.parametrize("precision", ["float32", "mixed"])
def test_in_another_precision(precision: Any) -> None:
    """What rounds is arithmetic before and after the call. Labels and positions are whole numbers, and stay so."""
    with config.override(precision=precision, mode="verify"):
        fast = accel.accelerate(work, name=f"hosted {precision}")
        for i in range(10):
            found, expected = fast(fields(i)), work(fields(i))
            assert error(found, expected) < 1e-5
            for at in (1, 2, 4):
                np.testing.assert_array_equal(found[at], expected[at])
    ledger = open_ledger(f"hosted {precision}")
    assert ledger.compiled_calls > 4 and not ledger.refusals


def test_on_divided_devices() -> None:
    """XLA has no partition for such a call, and gathers what it is given."""
    code = """
from scipy import ndimage
def work(x):
    y = x * 2.0 + np.roll(x, 1, 0)
    regions, count = ndimage.label(y > 1.5)
    return regions * x, regions, count, np.sort(np.abs(np.linalg.eigvals(x @ x.T + np.triu(x[:, : len(x)])))) * 2.0
fast, worst = accel.accelerate(work, name="work"), 0.0
for i in range(9):
    x = np.random.default_rng(i).random((16, 24))
    worst = max(worst, *errors(fast(x), work(x)))
(program,) = open_ledger("work").describe()
print(json.dumps([worst, program["devices"], program["undivided"], open_ledger("work").compiled_calls]))
"""
    worst, devices, undivided, calls = said(code, devices="2", virtual=2)
    assert worst < 1e-12 and (devices, undivided) == (2, None) and calls > 3


def test_in_a_batch() -> None:
    given = np.array([fields(i) for i in range(4)])
    found = accel.vmap(work)(given)
    for member, x in enumerate(given):
        assert error([np.asarray(each[member]) for each in found], [np.asarray(each) for each in work(x)]) < 1e-12


class Pond:
    def __init__(self, size: int) -> None:
        self.u, self.n, self.s = fields(1, (size, size)), 0, np.zeros(size)

    def step(self, dt: float) -> None:
        self.u = self.u + dt * (np.roll(self.u, 1, 0) - self.u)
        regions, self.n = ndimage.label(self.u > 0.5)
        self.u = np.where(regions == 1, self.u * 0.99, self.u)
        self.s = np.sort(np.abs(np.linalg.eigvals(self.u @ self.u.T)))


@pytest.mark.parametrize("together", [10**9, 100])
def test_in_an_ensemble(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    """Members all together, or in as many threads as divide them, which call Python at the same time."""
    monkeypatch.setattr(batch, "TOGETHER", together)
    monkeypatch.setattr(processors, "usable", lambda: 2)
    ponds = [Pond(10) for _ in range(4)]
    ensemble = accel.ensemble(
        ponds[0].step,
        0.1,
        members=4,
        perturb=lambda state, member, _: state.update({"self.u": fields(member, (10, 10))}),
    )
    ensemble.step(6)
    for member, pond in enumerate(ponds):
        pond.u = fields(member, (10, 10))
        for _ in range(6):
            pond.step(0.1)
    assert ensemble.alone == 0
    for name in ("u", "n", "s"):
        wanted = np.array([getattr(pond, name) for pond in ponds])
        np.testing.assert_allclose(ensemble.state[f"self.{name}"], wanted, rtol=1e-12, atol=1e-12)


def exit_code_of(task: Callable[[], int]) -> int | None:
    """That of a child that is forked and does this; None if it did not even return from `os.fork`.

    CPython 3.11 hangs there where a thread of XLA's is about to enter Python: it waits for a lock that thread has held.
    """
    ours, its = os.pipe()
    if not (child := os.fork()):
        code = 99
        try:
            os.write(its, b".")
            code = task()
        finally:
            os._exit(code)
    os.close(its)
    begun = select.select([ours], [], [], 30.0)[0]
    os.close(ours)
    if not begun:
        os.kill(child, 9)  # SIGKILL: `signal` is SciPy's here
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if begun else None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_beside_forks_and_in_threads(bare_speed: None) -> None:
    """A child that is forked while another thread is in such a program stays on NumPy, and ends; the parent goes on."""
    fast = accel.accelerate(work, name="forked")

    def wrong(numbers: range) -> list[int]:
        return [i for i in numbers if error(fast(fields(i)), work(fields(i))) > 1e-12]

    assert wrong(range(8)) == []
    going, found = True, []

    def go_on() -> None:
        while going:
            found.extend(wrong(range(3)))

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        codes = [exit_code_of(lambda: len(wrong(range(8, 11)))) for _ in range(5)]
    finally:
        going = False
        thread.join()
    assert 0 in codes and {*codes} <= {0, None}
    before = open_ledger("forked").compiled_calls
    assert found == [] and wrong(range(11, 15)) == []
    assert open_ledger("forked").compiled_calls == before + 4


@pytest.fixture
def bare_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is given up for its speed."""
    from accel.policy import speed

    monkeypatch.setattr(speed, "SPEED_SAMPLES", 10**9)
    monkeypatch.setattr(speed, "MAX_LOSS_S", float("inf"))
