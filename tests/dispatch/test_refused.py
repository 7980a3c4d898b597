"""Recordings that ended at a limit: later runs do not make them again, unless something has changed or they are long.

Two targets of one function, with nothing between them but the disk, stand for two runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pytest

from accel.backend.disk import cache, references, refused
from accel.backend.disk.refused import RefusedRecordings
from accel.dispatch import Target
from accel.platform import config
from accel.platform.reasons import Refusal
from accel.policy import budget
from accel.policy.parts import Parts

KEY = "ab" * 20
WHY = Refusal("limit.nodes", "f.py:3", "more than 10 operations")
LONG_S = 1e6


@pytest.fixture(autouse=True)
def _on_disk(foreground: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache of its own. All files are older than this process."""
    monkeypatch.setattr(references, "STARTED_S", time.time() + 1e6)
    references._hash_of.cache_clear()
    with config.override(cache_dir=tmp_path, ahead_of_time=True, max_nodes=40):
        yield
    references._hash_of.cache_clear()


def long_way(x: np.ndarray[Any, Any], steps: int) -> np.ndarray[Any, Any]:
    for step in range(steps):
        x = np.sin(x) + step
    return x


def other_way(x: np.ndarray[Any, Any], steps: int) -> np.ndarray[Any, Any]:
    for step in range(steps):
        x = np.cos(x) - step
    return x


def run(
    function: Callable[..., Any] = long_way,
    calls: int = 6,
    steps: int = 100,
    total_s: float = 0.0,
    in_parts: CodeType | None = None,
) -> tuple[Target, int]:
    """A run of so many calls after some that took `total_s`: its target, and the recordings that it has begun."""
    target = Target(function, f"{__name__}:refused", None, "auto", in_parts=in_parts)
    target.account.total_s = total_s
    x = np.linspace(0.0, 1.0, 5000)
    for _ in range(calls):
        np.testing.assert_allclose(target.answer((x, steps), {}), function(x, steps), rtol=1e-12)
    return target, target.recordings.count


def test_a_later_run_does_not_record_it_again() -> None:
    assert run()[1] > 0
    target, count = run()
    assert count == 0
    refusal = target._refusals.last
    assert refusal is not None and refusal.reason == "limit.nodes" and "test_refused.py" in refusal.where


def opaque_way(x: np.ndarray[Any, Any], steps: int) -> np.ndarray[Any, Any]:
    for _ in range(steps // 4):
        x = np.sin(x)
    return x + np.ma.array(x).sum()


@pytest.mark.parametrize("is_long", [True, False])
def test_a_refusal_that_took_long_is_noted_whatever_the_reason(is_long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused, "LONG_S", -LONG_S if is_long else LONG_S)
    monkeypatch.setattr(refused, "SIZE_FACTOR", 1e9)  # calls of a microsecond vary on a busy machine
    opaque_way(np.ones(3), 100)  # the first of a process takes far longer
    assert run(opaque_way)[1] > 0
    target, count = run(opaque_way)
    assert (count == 0) is is_long
    assert target._refusals.last is not None and target._refusals.last.reason == "array.masked"


def test_a_run_that_is_long_enough_does() -> None:
    run()
    assert run(total_s=LONG_S)[1] > 0


def test_one_more_in_vain_makes_later_runs_wait_longer() -> None:
    run()
    key = run()[0]._earlier._key
    assert key is not None
    before = refused.read(key).seconds
    assert before > 0.0
    run(total_s=LONG_S)
    assert refused.read(key).seconds > before


def test_another_limit_on_operations_is_another_matter() -> None:
    run()
    with config.override(max_nodes=41):
        assert run()[1] > 0
    with config.override(max_nodes=1000):
        target, _ = run()
    assert target.paths


def test_what_has_succeeded_since_is_not_in_vain() -> None:
    run()
    run(steps=2, total_s=LONG_S)
    assert run()[1] > 0


def test_a_single_round_of_a_loop_is_not_what_later_runs_go_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be one that prints, or plots: every run records one, until two have been recorded in refused."""
    monkeypatch.setattr(Parts, "come_first", False)
    monkeypatch.setattr(Parts, "pay_for_a_retry", property(lambda parts: not parts._refused))
    in_parts = long_way.__code__
    assert [run(in_parts=in_parts)[1] for _ in range(3)] == [1, 1, 0]


def test_other_code_is_another_matter() -> None:
    run()
    assert run(other_way)[1] > 0


def test_changed_files_are_another_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    with monkeypatch.context() as patch:
        patch.setattr(references, "_hash_of", lambda file: "another")
        assert run()[1] > 0


def test_a_file_that_is_newer_than_the_run_is_not_vouched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "STARTED_S", 0.0)
    run()
    assert run()[1] > 0


def test_a_process_that_compiles_for_later_runs_records_it_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    monkeypatch.setattr(budget, "for_later_runs", True)
    assert run()[1] > 0


def test_without_a_disk_cache_nothing_is_known() -> None:
    with config.override(cache_dir=None):
        assert run()[1] > 0
        assert run()[1] > 0


def test_what_is_damaged_is_not_read(tmp_path: Path) -> None:
    run()
    for file in tmp_path.rglob(f"*{cache.REFUSED}"):
        file.write_bytes(b"not this")
    assert run()[1] > 0


def test_the_cache_knows_its_files(tmp_path: Path) -> None:
    run()
    assert any(entry.path.suffix == cache.REFUSED for entry in cache.entries(tmp_path))
    cache.clear(tmp_path)
    assert not list(tmp_path.rglob(f"*{cache.REFUSED}"))


@pytest.mark.parametrize(
    ("call_s", "total_s", "holds"),
    [(1.0, 5.0, True), (1.0, 100.0, False), (0.1, 5.0, False), (30.0, 5.0, False), (20.0, 5.0, True), (0.3, 5.0, True)],
)
def test_it_holds_for_calls_of_its_size_in_short_runs(call_s: float, total_s: float, holds: bool) -> None:
    assert RefusedRecordings(1, 2.0, 1.0, 3.0, WHY).holds(call_s, total_s) is holds


def test_nothing_known_never_holds() -> None:
    assert not refused.NONE.holds(1.0, 0.0)
    assert refused.read(KEY) == refused.NONE


def test_what_is_kept_is_found_again() -> None:
    known = refused.NONE.with_another(2.0, 0.5, WHY).with_another(1.0, 0.4, WHY)
    refused.save(KEY, known, [__file__])
    assert refused.read(KEY) == known == RefusedRecordings(2, 3.0, 0.4, 0.5, WHY)
    refused.forget(KEY)
    assert refused.read(KEY) == refused.NONE
