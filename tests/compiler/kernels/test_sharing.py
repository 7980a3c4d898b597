"""Kernels that several threads compute: NumPy's bits whatever the number of threads and whenever they come."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from accel.compiler.kernels import helpers, sharing
from accel.compiler.kernels.segments import Kernel
from accel.platform import clocks, config
from tests.compiler.kernels.programs import SHAPES, random_program
from tests.compiler.kernels.test_random_programs import PROGRAMS, RESULTS, SEED, tried
from tests.compiler.kernels.test_segments import built, executable_of

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("foreground")

X = np.random.default_rng(0).normal(size=(301, 400))


@pytest.fixture
def team(monkeypatch: pytest.MonkeyPatch) -> helpers._Team:
    """Helpers of this test's own, for arrays of a test's size."""
    monkeypatch.setattr(sharing, "_CHUNK_COST", 50_000)
    made = helpers._Team()
    monkeypatch.setattr(helpers, "team", made)
    return made


@pytest.fixture(params=[2, 3, 7])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    with config.override(threads=request.param):
        yield request.param


@pytest.fixture
def tiny_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share whatever has two rows."""
    monkeypatch.setattr(sharing, "_CHUNK_COST", 1)
    monkeypatch.setattr(helpers, "_LEAST_CHUNKS", 1)


def chunks_in(made: Any) -> int:
    return sum(each.size.chunks for each in made.compiled.segments if isinstance(each, Kernel))


def diffused(x: Any) -> Any:
    for _ in range(3):
        flux = np.roll(x, 1, axis=0) + np.roll(x, -1, axis=0) + np.roll(x, 2, axis=1) - 3.0 * x
        x = x + 0.1 * np.sqrt(np.abs(flux)) * np.where(x > 0.0, x, -flux)
        x[1:-1, 0] = flux[2:, 1] / 3.0
    return x, x.sum(axis=1), x.max()


def flat(x: Any) -> Any:
    y = x.ravel()
    return np.sqrt(np.abs(y[1:] - y[:-1])) / (1.0 + y[1:] * y[1:]), np.roll(y, 3) - y


@pytest.mark.parametrize("function", [diffused, flat])
def test_results_are_numpys_bits(function: Callable[..., Any], threads: int, team: helpers._Team) -> None:
    made = executable_of(function, X.copy())
    assert chunks_in(made) >= 2 * helpers._LEAST_CHUNKS
    expected = function(X.copy())
    for _ in range(20):
        (arrays, packs) = made([X], {})
        for one, other in zip(arrays, expected, strict=False):
            np.testing.assert_array_equal(one, other)
    assert team._started == min(threads, chunks_in(made) // helpers._LEAST_CHUNKS) - 1
    if function is diffused:
        assert packs["f"][-1] == expected[-1]


@pytest.mark.usefixtures("team", "tiny_chunks")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_programs_that_are_shared_give_numpys_bits(shape: tuple[int, ...]) -> None:
    count = max(4, PROGRAMS // (2 * len(SHAPES)))
    with config.override(threads=3):
        for number in range(count):
            tried(random_program(random.Random(f"{SEED} shared {shape} {number}"), shape, RESULTS), shape)


def test_who_runs_a_kernel_waits_for_no_helper(team: helpers._Team, tiny_chunks: None) -> None:
    """They are all busy; what they find later has been computed."""
    made = executable_of(diffused, X.copy())
    busy, free = threading.Barrier(2), threading.Event()

    def other(table: bytes, number: int, threads: int) -> None:
        if number:
            busy.wait()
            free.wait()

    with config.override(threads=2):
        team.run(other, b"", 2, None)
        busy.wait()
        (first, *_), _ = made([X], {})
        (second, *_), _ = made([X + 1.0], {})
        free.set()
    np.testing.assert_array_equal(first, diffused(X.copy())[0])
    deadline = time.monotonic() + 30.0
    while not team._runs.empty():
        assert time.monotonic() < deadline
        time.sleep(0.001)
    np.testing.assert_array_equal(second, diffused(X + 1.0)[0])


@pytest.mark.usefixtures("team", "tiny_chunks")
def test_threads_of_the_program_run_one_kernel_at_once() -> None:
    made = executable_of(diffused, X.copy())
    found: dict[int, Any] = {}

    def play(number: int) -> None:
        with config.override(threads=3):
            for _ in range(20):
                found[number] = made([X + number], {})[0][0]

    players = [threading.Thread(target=play, args=(number,)) for number in range(4)]
    for each in players:
        each.start()
    for each in players:
        each.join()
    for number, array in found.items():
        np.testing.assert_array_equal(array, diffused(X + number)[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.usefixtures("team", "tiny_chunks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning")
def test_a_forked_child_has_helpers_of_its_own() -> None:
    made = executable_of(diffused, X.copy())
    with config.override(threads=2):
        (expected, *_), _ = made([X], {})
        child = os.fork()
        if not child:
            status = 1
            try:
                (found, *_), _ = made([X], {})
                status = int(not (np.array_equal(found, expected) and helpers.team._started == 1))
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_freed_kernel_leaves_its_helpers_in_order(team: helpers._Team) -> None:
    with config.override(threads=2):
        for scale in range(3):
            made = built(lambda x, scale=scale: [x * scale + x.T.T / 3.0 for _ in range(30)], X)
            assert made([X], [], {})[0][0][1, 1] == X[1, 1] * scale + X[1, 1] / 3.0
            del made
    assert team._started <= 1


@pytest.mark.parametrize(("chunks", "expected"), [(0, 1), (23, 1), (24, 2), (60, 5), (10_000, 6)])
def test_the_number_of_threads_is_that_of_the_work_and_of_the_processors(
    chunks: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "_free", helpers._Free())
    monkeypatch.setattr(helpers.processors, "usable", lambda: 6)
    monkeypatch.setattr(os, "getloadavg", lambda: (1.0, 0.0, 0.0))
    assert helpers.threads_for(chunks) == expected
    with config.override(threads=2):
        assert helpers.threads_for(chunks) == min(expected, 2)


def test_processors_at_which_other_programs_work_have_no_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is only the load to tell, its own threads are part of it."""
    monkeypatch.setattr(helpers.processors, "idle_s", lambda: None)
    free, load, now = helpers._Free(), [1.0], [0.0]
    monkeypatch.setattr(helpers.processors, "usable", lambda: 4)
    monkeypatch.setattr(os, "getloadavg", lambda: (load[0], 0.0, 0.0))
    monkeypatch.setattr(clocks.time, "monotonic", lambda: now[0])
    found = []
    for load[0] in (1.0, 4.0, 6.0, 4.0, 9.0, 2.0):
        now[0] += 2.0
        found.append(free.count())
    assert found == [4, 4, 2, 2, 1, 3]
    load[0] = 0.0
    assert free.count() == 3  # it has just looked


def test_what_has_just_ended_leaves_its_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    free, now, had = helpers._Free(), [0.0], [0.0]
    monkeypatch.setattr(helpers.processors, "usable", lambda: 4)
    monkeypatch.setattr(helpers.processors, "idle_s", lambda: had[0])
    monkeypatch.setattr(os, "getloadavg", lambda: (9.0, 0.0, 0.0))
    monkeypatch.setattr(clocks.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(clocks.time, "process_time", lambda: 0.0)
    found = []
    for each in (0.0, 4.0, 2.3, 0.2, 5.0):  # processors that were free in the last two seconds
        now[0] += 2.0
        had[0] += 2.0 * each
        found.append(free.count())
    assert found == [1, 4, 2, 1, 4]


@pytest.mark.usefixtures("team", "tiny_chunks")
def test_rows_whose_ends_are_copied_are_not_divided() -> None:
    def wrapped(x: Any) -> Any:
        y = np.sqrt(np.abs(x[0] * x[1]))
        return np.roll(y, 1) - y + np.roll(y, -1)

    wide = np.random.default_rng(1).normal(size=(2, 4_000))
    made = executable_of(wrapped, wide)
    with config.override(threads=2):
        ((found,), _) = made([wide], {})
    np.testing.assert_array_equal(found, wrapped(wide))
