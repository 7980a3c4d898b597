"""Compiling in the background: what waits, in which order, and what an abandoned worker leaves behind."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accel
from accel.backend.job import samples_of
from accel.backend.underway import pending, queues, supervisor
from accel.compiler.lower import Known
from accel.ir.fingerprint import Indescribable
from accel.platform import config
from accel.policy import prices
from accel.record import record
from accel.rules.rule import Unsupported
from tests.conftest import is_idle


class Named(str):
    """Stands in for a compiled program. key: the disk cache is off."""

    key = None


class Bench:
    """Stands in for the compiler: notes what it is given, and waits where it is told to."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.go_on = threading.Event()
        self.started = threading.Event()

    def compile(self, name: Any, known: Any, samples: Any) -> Any:
        self.seen.append(name)
        if name == "slow":
            self.started.set()
            assert self.go_on.wait(20)
        if name == "broken":
            raise ValueError("no such operation")
        return Named(name.upper())


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench()
    monkeypatch.setattr(pending, "compile_trace", made.compile)
    monkeypatch.setattr(pending, "has_worker", lambda: False)
    monkeypatch.setattr(pending.cache, "is_used", lambda: False)
    yield made
    made.go_on.set()


class Trace(str):
    """Stands in for a trace. Its name is all that the compiler is told of it."""

    tape = SimpleNamespace(nodes=[None])


def submit(name: str, missed_s: float, operations: int = 1) -> Any:
    trace = Trace(name)
    trace.tape = SimpleNamespace(nodes=[None] * operations)
    return queues.compile_in_background(pending.PendingProgram((trace, None, None), missed_s))  # type: ignore[arg-type]


def test_what_calls_do_without_is_compiled_before_what_they_did_without(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "HALF_LIFE_S", 0.05)
    submit("slow", 1.0)
    assert bench.started.wait(20)
    early, late = submit("early", 8.0), submit("late", 1.0)
    time.sleep(0.5)  # ten half-lives
    late.add_missed(0.1)
    assert 8.0 * 0.5**10 < 0.1
    bench.go_on.set()
    for job in (early, late):
        job.result(20)
    assert bench.seen == ["slow", "late", "early"]


def test_what_nobody_has_begun_can_be_withdrawn(bench: Bench) -> None:
    slow = submit("slow", 1.0)
    assert bench.started.wait(20)
    waiting, last = submit("waiting", 2.0), submit("last", 1.0)
    assert waiting.withdraw()
    assert not slow.withdraw(), "it is too late for that"
    bench.go_on.set()
    assert last.result(20) == "LAST"
    assert bench.seen == ["slow", "last"]
    assert not last.withdraw()
    assert waiting.cancelled() or isinstance(waiting.exception(0), CancelledError)
    assert is_idle()


def test_what_is_missed_most_for_each_operation_is_compiled_first(bench: Bench) -> None:
    first = submit("slow", 1.0)
    assert bench.started.wait(20)
    others = [submit("small", 0.1), submit("large", 9.0, 3), submit("middle", 1.0), submit("long", 10.0, 100)]
    assert queues.busy()
    began = time.monotonic()
    while len(queues._compiling._waiting) < len(others):  # each is looked for on disk first, in another thread
        assert time.monotonic() < began + 20
        time.sleep(0.01)
    bench.go_on.set()
    assert [future.result(20) for future in (first, *others)] == ["SLOW", "SMALL", "LARGE", "MIDDLE", "LONG"]
    assert bench.seen == ["slow", "large", "middle", "long", "small"]
    assert is_idle()


def test_what_is_compiled_holds_nothing_of_the_call() -> None:
    arguments = np.arange(6.0).reshape(2, 3)[:, ::2], np.float32(3.0), np.array(2)
    trace = record(lambda x, scale, y: x * scale + y, arguments, {}, max_nodes=100).trace
    assert trace is not None
    values, failed = trace.inputs.fetch(arguments, {})
    assert failed is None
    like = samples_of(trace)
    assert sum(isinstance(value, np.ndarray) for value in values) == 2
    assert not any(isinstance(value, np.ndarray) for value in values[len(like) :])
    for value, other in zip(values[: len(like)], like, strict=True):
        if isinstance(value, np.ndarray):
            assert (other.shape, other.dtype, other.nbytes) == (value.shape, value.dtype, value.nbytes)
            assert not np.shares_memory(other, value)
        else:
            assert other is None


def test_an_array_can_be_resized_while_its_program_is_compiled(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "burden_s", lambda compile_s: 0.0)
    submit("slow", 9.0)
    assert bench.started.wait(20)
    fast = accel.accelerate(lambda x: x + 1.0)
    x = np.ones(10)
    with warnings.catch_warnings(), config.override(ahead_of_time=True, cache_dir=None):
        warnings.simplefilter("ignore", RuntimeWarning)
        for _ in range(6):
            fast(x)
        (path,) = fast._self_target.paths
        pending = path.program.pending
        assert pending is not None and not pending.done()
        x.resize(20)


def test_a_failure_is_the_futures_and_the_worker_goes_on(bench: Bench) -> None:
    broken, fine = submit("broken", 2.0), submit("fine", 1.0)
    assert fine.result(20) == "FINE"
    with pytest.raises(ValueError, match="no such operation"):
        broken.result(20)


def test_what_waited_behind_an_abandoned_compile_is_compiled(bench: Bench) -> None:
    stuck = submit("slow", 1.0)
    assert bench.started.wait(20)
    waiting = submit("waiting", 1.0)
    assert stuck.seconds() > 0.0
    assert waiting.seconds() == 0.0, "waiting is not compiling"
    queues.abandon(stuck)
    assert waiting.result(20) == "WAITING", "without another one having to ask for it"
    assert submit("next", 1.0).result(20) == "NEXT"
    assert not stuck.done()
    assert not queues.busy(), "what was given up is waited for no longer"
    bench.go_on.set()
    assert stuck.result(20) == "SLOW"


def test_what_a_step_hands_on_after_the_end_is_dropped() -> None:
    """A thread that began then would be in JAX's code while Python ends, which crashes the process."""
    began, go_on, seen = threading.Event(), threading.Event(), []
    loading = queues.Queue("loading", seen.append)

    def compile_one(waiting: Any) -> None:
        began.set()
        assert go_on.wait(20)
        loading.add(waiting)

    compiling = queues.Queue("compiling", compile_one)
    compiling.add(SimpleNamespace(urgency=0.0, is_for_this_run=True))  # type: ignore[arg-type]
    assert began.wait(20)
    compiling.leave()
    assert loading.close() == []
    (at_work,) = compiling.close()
    go_on.set()
    at_work.join(20)
    assert not at_work.is_alive()
    assert seen == [] and loading.close() == []


# -- the worker --------------------------------------------------------------------------------------------------------


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Workers of the test's own, and programs that nothing else has compiled."""
    made = supervisor.Supervisor()
    for module in (supervisor, pending, queues):
        monkeypatch.setattr(module, "supervisor", made)
    with config.override(ahead_of_time=True, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield made
    made.end_worker()


def made(job: Any) -> Any:
    return job.result(60)


def test_a_worker_compiles_and_is_no_child_of_ours(workers: Any) -> None:
    made(compiled(lambda x: x * 3.0))
    assert workers._worker is not None
    with pytest.raises(ChildProcessError):
        os.waitpid(workers._worker._pid, os.WNOHANG)


def test_a_worker_that_ends_takes_one_program_with_it_and_the_next_is_another(workers: Any) -> None:
    made(compiled(lambda x: x * 5.0))
    first = workers._worker._pid
    os.kill(first, signal.SIGKILL)
    lost = compiled(lambda x: x * 7.0)
    with pytest.raises(Unsupported, match="ended"):
        made(lost)
    made(compiled(lambda x: x * 9.0))
    assert workers._worker._pid != first


def test_after_too_many_nothing_is_compiled_any_more(workers: Any) -> None:
    workers._lost = supervisor.MAX_LOST
    refused = compiled(lambda x: x * 11.0)
    with pytest.raises(Unsupported, match="the compiling process ended 3 times"):
        made(refused)


def test_without_a_worker_this_process_compiles(workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    made(compiled(lambda x: x * 13.0))
    assert not workers.can_start


def test_a_path_that_no_other_process_could_find_has_a_whole_job_all_the_same(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def indescribable(job: Any) -> str:
        raise Indescribable("a function of its own")

    monkeypatch.setattr("accel.backend.job.path_key_of", indescribable)
    monkeypatch.setattr(pending.cache, "is_used", lambda: True)
    monkeypatch.setattr(pending.devices, "plan_threads", lambda *_: 3)
    one = program_of(lambda x: x * 5.0)
    one.prepare()
    assert one._job is not None
    assert one._job.settings["threads"] == 3
    assert not one.load_from_disk()


def program_of(function: Any) -> pending.PendingProgram:
    """A function of one array, to be compiled."""
    x = np.arange(4.0)
    trace = record(function, (x,), {}, max_nodes=100).trace
    assert trace is not None
    return pending.PendingProgram((trace, Known(), samples_of(trace)), 1.0)


def compiled(function: Any) -> pending.PendingProgram:
    return queues.compile_in_background(program_of(function))


def test_the_clock_of_a_program_may_stop_while_another_thread_reads_it() -> None:
    class Stopping(pending.PendingProgram):
        """Its start is there when it is read first, and no longer when it is read again."""

        @property
        def _began(self) -> float | None:  # type: ignore[override]
            return starts.pop() if starts else None

        @_began.setter
        def _began(self, value: float | None) -> None: ...

    starts = [0.0]
    assert Stopping((None, None, [])).seconds() > 0.0  # type: ignore[arg-type]
    assert not starts
