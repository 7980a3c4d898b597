"""A new program is first run by the worker: what crashes, hangs or differs there is never run by the program."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accel
from accel.backend.compile import compile_trace
from accel.backend.disk import cache, products
from accel.backend.job import samples_of
from accel.backend.underway import pending, queues, supervisor
from accel.compiler.lower import Known
from accel.dispatch.comparing import first_run
from accel.dispatch.comparing.errors import Tolerance
from accel.dispatch.paths.path import RecordedPath
from accel.dispatch.paths.stages import Stage
from accel.platform import config
from accel.platform.reasons import Refusal
from accel.policy import prices
from accel.record import record
from accel.rules.rule import RULES, Unsupported
from tests.backend import faulty
from tests.processes import ROOT, without_settings

X = np.linspace(0.0, 1.0, 1000)


@pytest.fixture(autouse=True)
def workers(books: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[supervisor.Supervisor]:
    """Workers of the test's own. Compiling begins at once, in the background."""
    made = supervisor.Supervisor()
    for module in (supervisor, pending, queues):
        monkeypatch.setattr(module, "supervisor", made)
    monkeypatch.setattr(prices, "burden_s", lambda compile_s: 0.0)
    faulty.add_rows()
    with config.override(ahead_of_time=True, cache_dir=tmp_path), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield made
    made.end_worker()
    for each in faulty.FUNCTIONS:
        del RULES[each]


def settled(function: Callable[..., Any], *args: Any) -> tuple[RecordedPath, Refusal | None]:
    """The path of a function once it has a program, or none for good, and why. Results are NumPy's at each call."""
    fast, ends = accel.accelerate(function), time.monotonic() + 120.0
    while time.monotonic() < ends:
        np.testing.assert_array_equal(fast(*args), function(*args))
        paths = list(fast._self_target.paths)
        if paths and paths[0].stage not in (Stage.OBSERVING, Stage.PENDING):
            return paths[0], fast._self_target._refusals.last
        time.sleep(0.02)
    raise AssertionError("nothing was compiled in two minutes")


def crashing(x: Any) -> Any:
    return faulty.crash(x) * 2.0


def hanging(x: Any) -> Any:
    return faulty.hang(x) * 2.0


def dying(x: Any) -> Any:
    return faulty.die(x) * 2.0


def differing(x: Any) -> Any:
    return faulty.differ(x) * 2.0


@pytest.mark.parametrize(
    ("function", "detail"),
    [
        (crashing, "it crashed"),
        (differing, "NumPy np.float64(2.0), the program np.float64(2.002), relative error 0.001"),
    ],
)
def test_what_fails_in_the_worker_stays_on_numpy_and_later_runs_know(
    function: Callable[..., Any], detail: str, workers: supervisor.Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_run, "LEAST_S", 2.0)
    monkeypatch.setattr(first_run, "CALLS_S", 0.0)
    path, refusal = settled(function, X)
    assert path.stage is Stage.GIVEN_UP and not path.program.has_program
    assert refusal == Refusal("compile.trial", "", detail)
    workers.end_worker()
    workers.can_start = False
    monkeypatch.setattr(pending, "compile_trace", lambda *_: pytest.fail("compiled again"))
    path, refusal = settled(function, X)
    assert path.stage is Stage.GIVEN_UP and not path.program.has_program
    assert refusal == Refusal("compile.trial", "", detail)


@pytest.mark.parametrize(("function", "detail"), [(hanging, "it took more than 2 s"), (dying, "it was killed")])
def test_what_the_machine_may_have_ended_is_tried_again_in_later_runs(
    function: Callable[..., Any], detail: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(first_run, "LEAST_S", 2.0)
    monkeypatch.setattr(first_run, "CALLS_S", 0.0)
    for tries in range(1, products.MOST_TRIES + 1):
        path, refusal = settled(function, X)
        assert path.stage is Stage.GIVEN_UP and not path.program.has_program
        assert refusal == Refusal("compile.unfinished", "", detail)
        assert len(list(tmp_path.rglob(f"*{cache.TRACE}"))) == (tries == products.MOST_TRIES)
    monkeypatch.setattr(supervisor.Worker, "compile", lambda *_: pytest.fail("tried again"))
    assert settled(function, X)[1] == refusal


def test_a_worker_that_is_ended_on_purpose_in_a_trial_says_nothing_of_the_program(
    workers: supervisor.Supervisor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    began: list[float] = []

    def stopped(trying: Any) -> None:
        began.append(trying.limit_s)
        workers.end_worker()

    tried = supervisor.Worker._tried
    monkeypatch.setattr(supervisor.Worker, "_tried", lambda self, trying: (stopped(trying), tried(self, trying))[1])
    path, refusal = settled(hanging, X)
    assert began and path.stage is Stage.GIVEN_UP
    assert refusal is not None and refusal.reason == "compile.failed"
    assert not list(tmp_path.rglob(f"*{cache.TRACE}"))


def drawing(x: Any, generator: np.random.Generator) -> Any:
    return x * 2.0 + generator.normal(size=x.shape)


def changing(x: Any) -> Any:
    y = x.copy()
    y[2:] += y[:-2].sum()
    x[:5] = 0.0
    return y if y.mean() > 0.5 else -y


@pytest.mark.parametrize("function", [drawing, changing])
def test_a_first_run_compares_draws_and_changed_arrays(function: Callable[..., Any]) -> None:
    args = (X.copy(), *([np.random.default_rng(1)] if function is drawing else ()))
    trace = record(function, args, {}, max_nodes=100).trace
    assert trace is not None
    values, _ = trace.inputs.fetch(args, {})
    run = first_run.first_run(trace, values, 0.0, Tolerance(1e-9))
    assert run is not None and not np.shares_memory(run.values[trace.array_slots[0]], args[0])
    with config.override(kernels=False):  # XLA's, whose program takes the place of another one below
        executable = compile_trace(trace, Known(), samples_of(trace))
    assert run.problem(executable, trace, lambda seconds: nullcontext()) == ""  # type: ignore[arg-type]
    right = executable.compiled
    executable.compiled = lambda *given: ([each + 1e-3 for each in right(*given)[0]], right(*given)[1])
    assert "relative error" in run.problem(executable, trace, lambda seconds: nullcontext())  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("RESOURCE_EXHAUSTED: Out of memory")])
def test_too_little_memory_for_a_first_run_says_nothing_of_the_program(error: Exception) -> None:
    trace = record(changing, (X.copy(),), {}, max_nodes=100).trace
    assert trace is not None
    values, _ = trace.inputs.fetch((X.copy(),), {})
    run = first_run.first_run(trace, values, 0.0, Tolerance(1e-9))
    assert run is not None
    executable = compile_trace(trace, Known(), samples_of(trace))

    def compiled(*given: Any) -> Any:
        raise error

    executable.compiled = compiled
    with pytest.raises(Unsupported) as refused:
        run.problem(executable, trace, lambda seconds: nullcontext())  # type: ignore[arg-type]
    assert refused.value.reason == "compile.unfinished"


@pytest.mark.parametrize(
    "args",
    [(np.zeros(first_run.MOST_BYTES // 8 + 1),), (np.array([X, X[:1]], dtype=object),)],
    ids=["large", "objects"],
)
def test_what_cannot_be_copied_is_not_tried(args: Any) -> None:
    trace = SimpleNamespace(draws=[], tape=SimpleNamespace(nodes=[]), array_slots=[0], scalar_slots=[])
    assert first_run.first_run(trace, args, 0.0, Tolerance(1e-9)) is None  # type: ignore[arg-type]


# -- in processes of their own -----------------------------------------------------------------------------------------

PROGRAM = """
import sys, time
import numpy as np, accel
from accel.dispatch.paths.stages import Stage
from accel.policy import budget, prices, rest, speed
from accel.platform import gain
from tests.backend import faulty, reductions

faulty.add_rows()

prices.burden_s = lambda compile_s: 0.0
budget.FIXED_S = budget.TARGET_FIXED_S = speed.MAX_LOSS_S = float("inf")
gain.COMPILE_GAIN_S = gain.ONE_PROCESSOR_GAIN_S = gain.IMPORT_GAIN_S = rest.SMALL_CALL_S = 0.0
rest.MAX_REST, speed.SPEED_SAMPLES = 0, 10**9

def crashing(a, b):
    return faulty.crash(a) * b

def summed(a, b):
    return (reductions.same(a) * b).sum(3)

function = {"crashing": crashing, "summed": summed}[sys.argv[1]]
draw = np.random.default_rng(0)
a, b = (draw.random((3, 1, 2, 2, 8, 8, 8)).astype(np.float32) for _ in range(2))
fast, ends, after = accel.accelerate(function), time.monotonic() + 120.0, 0
while after < 200 and time.monotonic() < ends:
    np.testing.assert_allclose(fast(a, b), function(a, b), rtol=1e-6)
    paths = list(fast._self_target.paths)
    after += bool(paths) and paths[0].stage not in (Stage.OBSERVING, Stage.PENDING)
    time.sleep(0.0 if after else 0.02)
from accel.backend.underway.supervisor import supervisor
refusal = fast._self_target._refusals.last
print(paths[0].stage.value, refusal and refusal.reason, supervisor._lost)
"""


@pytest.mark.parametrize("name", ["crashing", "summed"])
def test_a_program_that_crashes_does_not_crash_the_process(name: str, tmp_path: Path) -> None:
    settings = {"PYTHONPATH": str(ROOT), "QD_JAX_CACHE_DIR": str(tmp_path), "QD_JAX_QUIET": "1"}
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, name],
            env={**without_settings(), **settings},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.strip())
    # the second process knows, and does not try it again
    crashed = ["given up compile.trial 1", "given up compile.trial 0"]
    # not every jaxlib has the fault
    assert said == crashed or (name == "summed" and said == ["compiled None 0"] * 2)
