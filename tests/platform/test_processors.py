"""Processors: how many this process may keep busy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from accel.platform import processors


@pytest.mark.parametrize(
    ("quota", "count"),
    [
        ("max 100000\n", 4),
        ("100000 100000\n", 1),
        ("250000 100000\n", 2),
        ("50000 100000\n", 1),
        ("900000 100000\n", 4),
    ],
)
def test_a_container_may_grant_less_than_the_machine_has(
    quota: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(processors, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3}, raising=False)
    assert processors.usable() == count


def test_where_nothing_is_said_all_of_them_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "_QUOTA", tmp_path / "none")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3}, raising=False)
    assert processors.usable() == 1


def test_the_time_for_which_processors_were_idle_grows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = processors.idle_s()
    assert before is None or processors.idle_s() >= before >= 0.0  # type: ignore[operator]
    monkeypatch.setattr(processors, "_TIMES", tmp_path / "stat")
    assert processors.idle_s() is None
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2}, raising=False)
    lines = ["cpu  9 9 9 9 9 9", "cpu0 1 2 3 400 50 6 7", "cpu1 1 2 3 9000 0 6 7", "cpu2 1 2 3 40 5 6 7", "intr 1 2"]
    (tmp_path / "stat").write_text("\n".join(lines))
    assert processors.idle_s() == 495 / os.sysconf("SC_CLK_TCK")
