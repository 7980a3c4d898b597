"""The compiling process has the program's priority, and a low one once the program has ended."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel.backend.underway import priority
from accel.backend.underway.priority import NICENESS, give_way
from accel.backend.underway.worker import Worker
from benchmarks import share


@pytest.fixture
def affinity() -> Iterator[set[int]]:
    """This process's processors, put back afterwards."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("processors can be chosen on Linux alone")
    before = os.sched_getaffinity(0)
    yield before
    os.sched_setaffinity(0, before)


def _niceness_of(process: int) -> tuple[int, int | None]:
    """Of the process, and of its session, where this system has groups of these."""
    try:
        group = int(Path(f"/proc/{process}/autogroup").read_text(encoding="ascii").split()[-1])
    except (OSError, IndexError):  # it is empty where the kernel puts this process in no group
        group = None
    return os.getpriority(os.PRIO_PROCESS, process), group


def _of_a_worker() -> tuple[int, int | None]:
    worker = Worker()
    try:
        return _niceness_of(worker.process)
    finally:
        worker.stop()


@pytest.mark.parametrize("processors", [1, 2])
def test_the_worker_has_the_program_s_own_priority(processors: int, affinity: set[int]) -> None:
    """A compile costs a program on one processor as much at any priority: it should be there soon."""
    if len(affinity) < processors:
        pytest.skip("this machine has one processor")
    os.sched_setaffinity(0, set(sorted(affinity)[:processors]))
    own, group = _of_a_worker()
    assert own == os.getpriority(os.PRIO_PROCESS, 0) and group in (0, None)


@pytest.mark.skipif(not Path("/proc").exists(), reason="the niceness of sessions is Linux's")
def test_once_the_program_has_ended_the_worker_s_session_has_its_niceness_and_the_program_s_has_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its process's own niceness means nothing beside another session's."""
    monkeypatch.setenv("QD_JAX_CACHE_DIR", str(tmp_path))  # without one nobody would find what it finishes
    monkeypatch.setenv("QD_JAX_FINISH_S", "60")
    before, its = _niceness_of(os.getpid()), Worker()
    its.wait_until_ready()
    process = its.process
    its._send(pickle.dumps(share.Busy(time.monotonic() + 60.0)))
    try:
        assert its.leave(())
        given = time.monotonic() + 60.0
        while (found := _niceness_of(process)) not in {(NICENESS, NICENESS), (NICENESS, None)}:
            assert time.monotonic() < given, found
            time.sleep(0.01)
        assert _niceness_of(os.getpid()) == before
    finally:
        os.kill(process, signal.SIGKILL)


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

    monkeypatch.setattr(priority, "_GROUP", str(group))
    monkeypatch.setattr(priority, "open", opened, raising=False)
    monkeypatch.setattr(priority.time, "sleep", lambda _: None)
    monkeypatch.setattr(os, "setpriority", lambda *_: None, raising=False)
    give_way()
    assert group.read_text(encoding="ascii") == ("" if failures > 5 else str(NICENESS))
    assert len(tries) == min(failures + 1, 5)


def test_a_system_without_groups_of_sessions_lowers_the_threads_priority(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lowered = []
    monkeypatch.setattr(priority, "_GROUP", str(tmp_path / "none"))
    monkeypatch.setattr(os, "setpriority", lambda *given: lowered.append(given), raising=False)
    monkeypatch.setattr(os, "getpriority", lambda *_: 0, raising=False)
    give_way()
    assert not (tmp_path / "none").exists()
    assert lowered and {niceness for _, _, niceness in lowered} == {NICENESS}


def test_a_priority_that_is_lower_already_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = []
    monkeypatch.setattr(priority, "_GROUP", str(tmp_path / "none"))
    monkeypatch.setattr(os, "setpriority", lambda *each: given.append(each), raising=False)
    monkeypatch.setattr(os, "getpriority", lambda *_: NICENESS + 5, raising=False)
    give_way()
    assert given and {niceness for _, _, niceness in given} == {NICENESS + 5}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processors can be chosen on Linux alone")
def test_the_benchmark_measures_a_share(capsys: pytest.CaptureFixture[str]) -> None:
    share.main(["--seconds", "0.5"])
    assert " of one processor beside the next program; limit 20%" in capsys.readouterr().out
