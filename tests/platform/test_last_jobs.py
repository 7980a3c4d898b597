"""What is being compiled when a program ends is finished for the next run: when, when not, and who waits for it."""

from __future__ import annotations

import os
import pickle
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accel.backend.disk import cache, experience, products
from accel.backend.disk.products import Place
from accel.backend.job import Product
from accel.backend.underway import last, queues
from accel.backend.underway.last import LastJobs
from accel.platform import clocks, config, pickling
from tests.processes import ROOT, Done, without_settings

PROGRAM = """
import atexit, os, sys, time
import numpy as np
import accel
from accel.backend.underway import queues
from accel.policy import budget

budget.FIXED_S = budget.TARGET_FIXED_S = 1e9
atexit.register(lambda: print(accel.summary_line(), file=sys.stderr))

@accel.accelerate
def waves(x):
    for k in range(20):
        x = np.sin(x) + np.cos(x * k)
    return x

x, until = np.ones((300, 300)), time.monotonic() + 100.0
while not any(each.key_at_work for each in queues._under_way.copy()):
    waves(x)
    assert time.monotonic() < until, "it was never to be compiled"
    if waves._self_target.paths.with_program:
        print("found")
        break
"""
ENDS = {
    "normally": "",
    "by an exit code": "sys.exit(3)",
    "by an error": "raise ValueError(3)",
    "interrupted": "raise KeyboardInterrupt",
    "killed": "os.kill(os.getpid(), 9)",
}


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Done]:
    """Runs the program, ending in one of these ways, over one cache folder."""
    script = tmp_path / "program.py"

    def run(end: str = "normally", **environment: str) -> Done:
        script.write_text(PROGRAM + ENDS[end])
        # XLA takes long enough for a run to end, or to begin, while it compiles
        usual = {"QD_JAX_KERNELS": "0", "QD_JAX_CACHE_DIR": str(tmp_path / "cache"), "QD_JAX_FINISH_S": "100"}
        settings = {**usual, **environment}
        done = subprocess.run(
            [sys.executable, str(script)],
            env={**without_settings(), **settings, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=200.0,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


def kept(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.rglob(f"*{suffix}"))


def until(holds: Callable[[], object], seconds: float = 120.0) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.1)
    return bool(holds())


@pytest.mark.parametrize("end", ["normally", "by an exit code", "by an error"])
def test_what_is_being_compiled_at_the_end_is_there_in_the_next_run(
    run: Callable[..., Done], tmp_path: Path, end: str
) -> None:
    first = run(end)
    assert (first.code, first.out) == ({"normally": 0, "by an exit code": 3}.get(end, 1), "")
    assert "1 program being finished for later runs" in first.err
    (announced,) = kept(tmp_path, cache.COMING)
    assert until(lambda: not announced.exists())
    assert kept(tmp_path, cache.BEGUN) == []
    (product,) = kept(tmp_path, cache.TRACE)
    assert product.stem == announced.stem
    second = run()
    assert second.out == "found\n"
    assert "later runs" not in second.err
    assert kept(tmp_path, cache.TRACE) == [product], "nothing else was compiled"


def test_a_run_that_starts_meanwhile_waits_for_it(run: Callable[..., Done], tmp_path: Path) -> None:
    run()
    before = kept(tmp_path, cache.COMING)
    assert run().out == "found\n"
    assert [path.stem for path in kept(tmp_path, cache.TRACE)] == [path.stem for path in before]


@pytest.mark.parametrize(
    ("end", "settings"),
    [
        ("interrupted", {}),
        ("killed", {}),
        ("normally", {"QD_JAX_FINISH_S": "0"}),
        ("normally", {"QD_JAX_CACHE_DIR": "off"}),
    ],
)
def test_where_it_is_not_wanted_the_worker_ends_with_the_program(
    run: Callable[..., Done], tmp_path: Path, end: str, settings: dict[str, str]
) -> None:
    done = run(end, **settings)
    assert "later runs" not in done.err
    assert kept(tmp_path, cache.COMING) == []
    time.sleep(3.0)  # a second is needed to see that the program is gone
    assert kept(tmp_path, cache.TRACE) == []


def test_a_folder_that_is_gone_is_not_made_again(run: Callable[..., Done], tmp_path: Path) -> None:
    run()
    process = left_behind(tmp_path)
    shutil.rmtree(tmp_path / "cache")
    assert until(lambda: not lives(process))
    assert not (tmp_path / "cache").exists()


def test_it_takes_no_longer_than_allowed(run: Callable[..., Done], tmp_path: Path) -> None:
    run(QD_JAX_FINISH_S="0.01")
    process = left_behind(tmp_path)
    assert until(lambda: not lives(process))
    assert kept(tmp_path, cache.TRACE) == []
    (announced,) = kept(tmp_path, cache.COMING)
    with config.override(cache_dir=tmp_path / "cache"):
        for _ in range(products.MOST_TRIES):  # it began, and had no time to end
            products.note_begun(announced.stem)
    assert "later runs" not in run().err, "it would never be finished"


def left_behind(folder: Path) -> int:
    """The id of the process that a run has left behind."""
    (announced,) = kept(folder, cache.COMING)
    process: int = pickle.loads(announced.read_bytes()[cache._DIGEST_SIZE :])[1]
    return process


def lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


# -- who waits ---------------------------------------------------------------------------------------------------------

KEY = "cd" * 20


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with config.override(cache_dir=tmp_path, ahead_of_time=True, finish_s=60.0):
        yield tmp_path


@pytest.mark.parametrize(
    ("node", "process", "seconds", "comes"),
    [
        (platform.node(), os.getpid(), 60.0, True),
        (platform.node(), os.getpid(), -1.0, False),
        (platform.node(), 2**22 + 1, 60.0, False),
        ("another", os.getpid(), 60.0, False),
    ],
    ids=["lives", "has had its time", "has ended", "is on another machine"],
)
def test_only_a_process_that_can_still_finish_it_is_waited_for(
    folder: Path, node: str, process: int, seconds: float, comes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not products.is_coming(KEY)
    with monkeypatch.context() as patch:
        patch.setattr(platform, "node", lambda: node)
        then = time.time() + seconds - config.current().finish_s
        patch.setattr(clocks.time, "time", lambda: then)
        products.announce([KEY], process)
    assert products.is_coming(KEY) is comes
    products.have_come([KEY])
    assert not products.is_coming(KEY)


@pytest.mark.parametrize("is_there", [True, False])
def test_what_another_run_does_not_finish_after_all_is_compiled(
    monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    compiling: list[Any] = []
    monkeypatch.setattr(queues, "LOOKED_S", 0.01)
    monkeypatch.setattr(queues, "_compiling", SimpleNamespace(add=compiling.append))
    monkeypatch.setattr(queues, "_coming", SimpleNamespace(add=queues._wait, closed=threading.Event()))
    looks = iter([True, True, True, False])
    coming = property(lambda _: next(looks))
    pending = type("Coming", (), {"is_coming": coming, "done": bool, "load_from_disk": lambda _: is_there})()
    queues._compile(pending)
    assert compiling == ([] if is_there else [pending])
    assert next(looks, None) is None, "it was waited for"


# -- in the worker -----------------------------------------------------------------------------------------------------


class Ended(BaseException):
    """In the place of the end of this process."""


@pytest.fixture
def jobs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> LastJobs:
    def end(code: int) -> None:
        raise Ended

    monkeypatch.setattr(last.os, "_exit", end)
    monkeypatch.setattr(cache, "makes_folders", True)  # put back afterwards
    monkeypatch.setattr(last.threading, "Timer", lambda *_: SimpleNamespace(start=lambda: None))
    monkeypatch.setattr(last, "give_way", lambda: None)  # it would slow down this session of processes for good
    cache.save(KEY, b"")
    return LastJobs()


PRODUCT = Product(program={}, key=KEY, unkept="", payload=None, seconds=1.0, needs_jax=True)


def test_without_a_job_it_ends_with_the_program(jobs: LastJobs) -> None:
    jobs.may_be_finished = True
    with pytest.raises(Ended):
        jobs.go_on_alone()


def test_a_job_is_not_finished_unless_the_program_has_said_so(jobs: LastJobs) -> None:
    jobs.come()
    with pytest.raises(Ended):
        jobs.go_on_alone()


def test_an_answer_is_sent_while_the_program_is_there(jobs: LastJobs) -> None:
    jobs.come()
    jobs.begin(Place(KEY))
    assert jobs.end(PRODUCT)
    assert cache.read(KEY, cache.TRACE) is None


def test_all_that_has_come_is_finished_and_then_it_ends(jobs: LastJobs, folder: Path) -> None:
    other = "ef" * 20
    products.announce([KEY, other], os.getpid())
    jobs.come()
    jobs.come()
    jobs.may_be_finished = True
    jobs.begin(Place(KEY, "12" * 20, ("34" * 20,)))
    jobs.go_on_alone()
    jobs.go_on_alone()  # it is told by two threads
    assert kept(folder, cache.BEGUN)
    assert not jobs.end(PRODUCT)
    assert not kept(folder, cache.BEGUN)
    assert cache.read(KEY, cache.TRACE) == pickling.dumps(PRODUCT)
    assert experience.read("34" * 20).together == {"12" * 20: {"34" * 20}}
    assert not products.is_coming(KEY) and products.is_coming(other)
    jobs.begin(Place(other))
    with pytest.raises(Ended):
        jobs.end(ValueError("it cannot be compiled"))
    assert cache.read(other, cache.TRACE) is None and not products.is_coming(other)
    assert products.is_worth_a_try(other)
    products.note_begun(other)
    assert not products.is_worth_a_try(other), "that was the last time"
