"""Whatever goes wrong with kernels, calls give NumPy's results or XLA's, and no error of accel's."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel.backend.disk import cache
from accel.compiler.kernels import machine_code, segments
from accel.platform import config, forks

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("foreground")

X = np.linspace(-1.0, 2.0, 60).reshape(6, 10)


def stencil(x: Any) -> Any:
    return np.roll(x, 1, axis=1) - 2.0 * x + np.roll(x, -1, axis=1), np.sqrt(np.abs(x)), x[::-1].sum()


def raises(error: Exception) -> Callable[..., Any]:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error

    return fail


PLANTED: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "LLVM refuses the code": (machine_code, "object_of", raises(RuntimeError("LLVM IR parsing error"))),
    "llvmlite is missing": (machine_code, "binding", raises(ImportError("No module named 'llvmlite'"))),
    "llvmlite is too old": (machine_code, "target", raises(AttributeError("get_host_cpu_features"))),
    "the object is not loaded": (machine_code, "Loaded", raises(RuntimeError("damaged, or for another processor"))),
    "no memory for results": (segments, "aligned_array", raises(MemoryError())),
    "no memory while generating": (machine_code, "object_of", raises(MemoryError())),
    "the nest is too large": (machine_code, "object_of", raises(RecursionError())),
}


def assert_right(function: Callable[..., Any], calls: int = 5) -> None:
    """Calls give NumPy's results, within what XLA rounds otherwise."""
    for number in range(calls):
        for mine, theirs in zip(function(X + number), stencil(X + number), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-14, atol=1e-14)


@pytest.fixture
def cached(tmp_path: Path) -> Iterator[Path]:
    """A folder for the disk cache."""
    with config.override(cache_dir=tmp_path):
        yield tmp_path


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_from_the_start_leaves_right_results(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[fault])
    machine_code.problem.cache_clear()
    try:
        assert_right(accel.accelerate(stencil))
    finally:
        monkeypatch.undo()
        machine_code.problem.cache_clear()


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_in_a_later_run_leaves_right_results(fault: str, cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = accel.accelerate(stencil)
    assert_right(fast)
    with monkeypatch.context() as patched:
        patched.setattr(*PLANTED[fault])
        assert_right(fast)
        assert_right(accel.accelerate(stencil, name="again"))
    assert_right(fast)


def test_a_full_disk_keeps_no_object(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", raises(OSError(errno.ENOSPC, "No space left on device")))
    assert_right(accel.accelerate(stencil))
    assert not [path for path in cached.rglob("*") if path.suffix == cache.SUFFIX]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda stored: b"",
    "cut": lambda stored: stored[: len(stored) // 2],
    "a bit is another": lambda stored: stored[:-100] + bytes([stored[-100] ^ 1]) + stored[-99:],
    "of another program": lambda stored: b"\0" * len(stored),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_object_on_disk_is_made_again(damage: str, cached: Path) -> None:
    assert_right(accel.accelerate(stencil))
    stored = [path for path in cached.rglob("*") if path.suffix == cache.SUFFIX]
    assert stored
    for path in stored:
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    assert_right(accel.accelerate(stencil, name="again"))


def test_an_object_of_another_processor_is_not_loaded(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_right(accel.accelerate(stencil))
    with monkeypatch.context() as patched:
        patched.setattr(machine_code, "target", lambda: ("", ""))
        assert_right(accel.accelerate(stencil, name="elsewhere"))
    assert_right(accel.accelerate(stencil, name="again"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning")
def test_a_forked_child_computes_what_its_parent_does() -> None:
    fast = accel.accelerate(stencil)
    assert_right(fast)
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            assert_right(fast)
            status = 0
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert_right(fast)


def test_an_interrupt_in_a_long_kernel_is_raised_and_leaves_right_results() -> None:
    fast = accel.accelerate(stencil)
    assert_right(fast)
    running = threading.Event()
    large = np.zeros((2000, 1500))

    def interrupt() -> None:
        running.wait()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            running.set()
            fast(large)
    thread.join()
    assert_right(fast)


def test_threads_that_share_a_function_have_right_results() -> None:
    fast = accel.accelerate(stencil)
    assert_right(fast)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            assert_right(fast, 50)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_fork_waits_while_llvm_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child destroyed a module that the thread of a compile had half built: LLVM ended it."""
    machine_code.target()
    llvm, free = machine_code.binding(), []

    def look() -> None:
        free.append(forks._lock.acquire(blocking=False))

    def binding() -> object:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        return llvm

    monkeypatch.setattr(machine_code, "binding", binding)
    machine_code.Loaded(machine_code.object_of("define void @run() {\nret void\n}"))
    assert free == [False, False]
