"""Vast arrays: what of them is copied, journalled, compared and taken for constant. Here all arrays are vast."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accel
from accel.compiler.lower import written
from accel.compiler.lower.written import Written
from accel.dispatch.comparing import policy
from accel.dispatch.comparing.snapshot import Snapshot
from accel.ir import vast
from accel.platform.ledger import open_ledger
from accel.policy.call import Call

pytestmark = pytest.mark.usefixtures("foreground")


@pytest.fixture(autouse=True)
def _all_are_vast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vast, "VAST", 1)
    monkeypatch.setattr(written, "LEAST_SPARED", 1)


def fields(i: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(i).random((5, 4, 6))


WAYS: dict[str, Callable[[Any], Any]] = {
    "item": lambda a: a.__setitem__((1, 2, 3), 7.0),
    "slice": lambda a: a.__setitem__((1, slice(1, 3)), 7.0),
    "mask": lambda a: a.__setitem__(a > 0.5, 7.0),
    "rows": lambda a: a.__setitem__(([0, 0, 2], 1), 7.0),
    "out": lambda a: np.multiply(a[2], 2.0, out=a[0]),
    "in place": lambda a: a[3].__iadd__(1.0),
    "fill": lambda a: a[1].fill(3.0),
    "sort": lambda a: a[1].sort(axis=0),
    "copyto": lambda a: np.copyto(a[1], a[2]),
    "twice": lambda a: (a.__setitem__(0, 1.0), a[0].__imul__(2.0), a.__setitem__((slice(None), 0), 5.0)),
    "out of sight": lambda a: (a.__setitem__(0, 1.0), memoryview(np.asarray(a)), a.__setitem__(1, 2.0)),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_an_undone_recording_has_written_is_put_back(check: Any, way: str) -> None:
    write = WAYS[way]

    def work(a: Any) -> Any:
        before = a.sum()
        write(a)
        try:
            [].pop()
        except IndexError:
            pass
        return before

    check(work, lambda i: (fields(i),), replays=0)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "out of sight"])
def test_what_is_written_is_what_numpy_writes(check: Any, way: str) -> None:
    write = WAYS[way]

    def work(a: Any, x: Any) -> Any:
        write(a)
        return a[2] * x

    check(work, lambda i: (fields(i), np.linspace(0.0, i + 1.0, 6)))


class Forced:
    """A model that takes one field of a data set in each step."""

    def __init__(self) -> None:
        self.data = fields(0)
        self.n = 0

    def step(self, x: Any) -> Any:
        self.n += 1
        return x + self.data[self.n % 5].mean()


def test_they_are_never_taken_for_constant() -> None:
    fast = accel.accelerate(Forced.step, name="forced")
    plain, quick = Forced(), Forced()
    for i in range(30):
        if i == 20:  # which a constant would not show
            plain.data[...] = quick.data[...] = fields(1)
        np.testing.assert_allclose(fast(quick, np.ones(3)), plain.step(np.ones(3)), rtol=1e-12)
    programs = [path.program.variant.executable for path in fast._self_target.paths]
    assert programs and all(not each.program.known.arrays for each in programs)


def test_a_comparison_copies_what_the_call_changes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Snapshot, Any]] = []

    class Seen(Snapshot):
        def __init__(self, staged: Any, *, whole: bool) -> None:
            super().__init__(staged, whole=whole)
            seen.append((self, staged))

    monkeypatch.setattr("accel.dispatch.comparing.snapshot.Snapshot", Seen)
    monkeypatch.setattr(policy.Comparisons, "is_due", lambda self, path, mode: True)

    def work(log: Any, data: Any, n: int) -> None:
        log[n] = data[n] * 2.0

    fast, log, data = accel.accelerate(work, name="logged"), fields(0), fields(1)
    for n in range(5):
        fast(log, data, n)
    before = log.copy()
    fast(log, data, 1)
    snapshot, staged = seen[-1]
    ours, theirs = (next(s for s, value in enumerate(staged.values) if value is each) for each in (log, data))
    assert snapshot.values[ours] is log and snapshot.values[theirs] is data
    (contents,) = staged.changed
    assert isinstance(contents, Written) and [each.shape for each in contents.contents] == [(4, 6)]
    (function,) = json.loads(accel.report("json"))["functions"]
    bytes_each = function["transfers"]["fetched"]["log"] / function["transfers"]["launches"]
    assert bytes_each == 8 * 4 * 6
    log[1] += 1.0
    snapshot.complete()
    assert np.array_equal(snapshot.values[ours], before)


def test_a_difference_in_a_view_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    amount = [0.0]

    def work(log: Any, x: Any, n: int) -> None:
        log[n] = x * 2.0

    fast, log = accel.accelerate(work, name="wrong"), fields(0)
    for n in range(5):
        fast(log, fields(n)[0], n)
    (path,) = fast._self_target.paths
    run = path.program.variant.run

    def wrong(values: Any) -> Any:
        staged = run(values)
        staged.changed[0].contents = [staged.changed[0].contents[0] + amount[0]]
        return staged

    monkeypatch.setattr(path.program.variant, "run", wrong)
    monkeypatch.setattr(policy.Comparisons, "is_due", lambda self, path, mode: True)
    fast(log, fields(1)[0], 1)
    assert not open_ledger("wrong").refusals
    amount[0] = 1e-3
    fast(log, fields(1)[0], 1)
    (refusal,) = open_ledger("wrong").refusals
    assert refusal.reason == "verify.mismatch" and "log[1, :, :][1, 3]: NumPy " in refusal.detail
    np.testing.assert_array_equal(log[1], fields(1)[0] * 2.0)


@pytest.mark.parametrize("mode", ["auto", "verify"])
def test_verify_sees_what_else_numpy_changes(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    strays: list[Any] = []

    def work(log: Any, data: Any, n: int) -> None:
        log[n] = data[n] * 2.0

    fast, log, data = accel.accelerate(work, name="strays", mode=mode), fields(0), fields(1)

    def answer(call: Any, run: Any = Call.run, **how: Any) -> Any:
        for array in strays:
            array[4, 3, 5] += 1.0
        return run(call, **how)

    for n in range(4):
        fast(log, data, n)
    monkeypatch.setattr(Call, "run", answer)
    monkeypatch.setattr(policy.Comparisons, "is_due", lambda self, path, mode: True)
    strays += [log, data]
    fast(log, data, 1)
    found = {refusal.reason for refusal in open_ledger("strays").refusals}
    assert found == ({"verify.mismatch"} if mode == "verify" else set())
