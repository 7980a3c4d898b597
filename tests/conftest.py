"""What every test can rely on: default settings, nothing installed, and books of its own where it asks for them."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

from accel.backend import compile as compiling
from accel.backend.options import options_for
from accel.backend.underway import queues
from accel.dispatch import late
from accel.entry.hook import patching
from accel.platform import config, gain, ledger
from accel.policy import account, budget, rest, speed
from accel.transform.ensembles import batch
from tests.helpers import LONG
from tests.xla_options import quickest_options_for

BUDGET = {name: getattr(budget, name) for name in ("FIXED_S", "TARGET_FIXED_S")}
ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("accel", settings.default, deadline=None)  # no test depends on time
settings.load_profile("accel")


def pytest_configure() -> None:
    """Have tests and what they start heed Ctrl-C, which a background job of a shell ignores, and what that starts.

    And have what they start leave nothing behind that compiles. The garbage collector seldom looks through what
    thousands of tests share, which took a tenth of the time.
    """
    gc.set_threshold(10_000, 10, 100)
    os.environ["QD_JAX_FINISH_S"] = "0"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def is_idle(seconds: float = 10.0) -> bool:
    """Whether nothing is under way any more; who waits for a result may have it a moment earlier."""
    deadline = time.monotonic() + seconds
    while queues.busy() and time.monotonic() < deadline:
        time.sleep(0.001)
    return not queues.busy()


@pytest.fixture(autouse=True)
def default_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start from accel's defaults, whatever the machine's environment says, and leave nothing installed.

    Functions of tests are small and called a few times: that does not keep them from being compiled. No worker starts
    early: while one does, calls of the next test would not be timed. Nor does one test's recording put off the next's,
    or what one has lost overdraw the budget of the next.
    """
    config.set_current(config.Settings(quiet=True))
    for name in BUDGET:
        monkeypatch.setattr(budget, name, float("inf"))
    monkeypatch.setattr(gain, "COMPILE_GAIN_S", 0.0)
    monkeypatch.setattr(gain, "ONE_PROCESSOR_GAIN_S", 0.0)
    monkeypatch.setattr(rest, "SMALL_CALL_S", 0.0)
    monkeypatch.setattr(account, "RELIABLE_CALL_S", 0.0)
    monkeypatch.setattr(account, "BURST_S", float("inf"))
    monkeypatch.setattr(rest, "MAX_REST", 0)
    monkeypatch.setattr(late, "was_prestarted", True)
    monkeypatch.setattr(gain, "IMPORT_GAIN_S", 0.0)
    if not LONG:
        # XLA's compiler takes most of the time of the suite, and the larger part of that is LLVM's
        for module in (compiling, batch):
            monkeypatch.setattr(module, "options_for", quickest_options_for)
    yield
    patching.uninstall()
    config.set_current(None)


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget that programs have; other tests have all that they need."""
    for name, seconds in BUDGET.items():
        monkeypatch.setattr(budget, name, seconds)


@pytest.fixture
def books() -> Iterator[ModuleType]:
    """Empty ledgers, before and after."""
    ledger.reset()
    yield ledger
    ledger.reset()


@pytest.fixture
def foreground(books: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compile in the calling thread, keep no program on disk, and give nothing up for its speed on tiny arrays.

    Warnings are errors in tests, and accel leaves a call to NumPy where a floating-point event would raise one.
    """
    monkeypatch.setattr(speed, "SPEED_SAMPLES", 10**9)
    monkeypatch.setattr(speed, "MAX_LOSS_S", float("inf"))
    with config.override(ahead_of_time=False, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@pytest.fixture
def optimized(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have XLA compile as for users, also in the short form of the tests."""
    for module in (compiling, batch):
        monkeypatch.setattr(module, "options_for", options_for)


@pytest.fixture
def by_xla() -> Iterator[None]:
    """Have XLA compile everything: for tests of what its programs take and give."""
    with config.override(kernels=False):
        yield


WriteModules = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def write_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteModules]:
    """Give a function that writes {relative path: source} to a folder on sys.path; what it holds is forgotten after."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)

    def write(sources: Mapping[str, str]) -> Path:
        for name, source in sources.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source, encoding="utf-8")
        importlib.invalidate_caches()
        return tmp_path

    yield write
    patching.uninstall()
    for name in set(sys.modules) - before:
        origin = getattr(sys.modules[name], "__file__", None) or ""
        if origin.startswith(str(tmp_path)):
            del sys.modules[name]
