"""The compiling process lets the program go first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from accel.backend.underway import worker
from accel.backend.underway.worker import NICENESS, Worker
from benchmarks import share


@pytest.mark.skipif(not Path(worker._GROUP).exists(), reason="this system has no groups of sessions")
def test_the_worker_s_session_has_its_niceness_and_the_program_s_has_not() -> None:
    """Its process's own niceness means nothing beside another session's."""
    before = Path(worker._GROUP).read_text(encoding="ascii")
    its = Worker()
    try:
        group = Path(f"/proc/{its.process}/autogroup").read_text(encoding="ascii")
        assert group.split()[-2:] == ["nice", str(NICENESS)]
        assert os.getpriority(os.PRIO_PROCESS, its.process) == NICENESS
        assert Path(worker._GROUP).read_text(encoding="ascii") == before
    finally:
        its.stop()


@pytest.mark.parametrize("failures", [0, 2, 100])
def test_a_session_s_niceness_that_cannot_be_written_yet_is_written_later(
    failures: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    group, tries = tmp_path / "autogroup", []
    group.write_text("", encoding="ascii")

    def opened(*args: str, encoding: str) -> object:
        tries.append(args)
        if len(tries) <= failures:
            raise BlockingIOError
        return open(*args, encoding=encoding)

    monkeypatch.setattr(worker, "_GROUP", str(group))
    monkeypatch.setattr(worker, "open", opened, raising=False)
    monkeypatch.setattr(worker.time, "sleep", lambda _: None)
    monkeypatch.setattr(os, "nice", lambda _: 0, raising=False)
    worker._give_way()
    assert group.read_text(encoding="ascii") == ("" if failures > 5 else str(NICENESS))
    assert len(tries) == min(failures + 1, 5)


def test_a_system_without_groups_of_sessions_starts_the_worker_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(worker, "_GROUP", str(tmp_path / "none"))
    monkeypatch.setattr(os, "nice", lambda _: 0, raising=False)
    worker._give_way()
    assert not (tmp_path / "none").exists()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processors can be chosen on Linux alone")
def test_the_benchmark_measures_a_share(capsys: pytest.CaptureFixture[str]) -> None:
    share.main(["--seconds", "0.5"])
    assert " of one processor beside a busy program; limit 20%" in capsys.readouterr().out
