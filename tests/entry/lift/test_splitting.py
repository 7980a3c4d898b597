"""Functions and loops that are refused at one line: what stands around it is compiled, and all else is as before."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import accel
from accel.dispatch import recordings
from accel.entry.lift import iterations
from accel.entry.lift.lifting import lift_function
from accel.entry.lift.source import NotLiftable
from accel.platform.ledger import current_run, ledgers, open_ledger
from accel.record import record
from tests.conftest import WriteModules

HEADER = "import numpy as np\n\n\n"  # the first line after it is 4

Made = Callable[[str], ModuleType]


@pytest.fixture
def module(write_modules: WriteModules, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Give a function that imports a source as the module `planet`."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(recordings, "LIFTED_CALL_S", 0.0)
    monkeypatch.setattr(iterations, "LEAST_SHARE", 0.0)  # whatever the parts take

    def make(source: str) -> ModuleType:
        write_modules({"planet.py": HEADER + source})
        return importlib.import_module("planet")

    return make


def compiled_parts() -> set[str]:
    return {book.target.partition(":")[2] for book in ledgers() if book.compiled_calls}


def split_at(function: Any, *stops: int) -> list[str]:
    """Split a function and turn its parts on. Returns their places."""
    made = lift_function(function, stops=dict.fromkeys(stops, ""))
    for switch in made.lifted.switches:
        switch.on = True
    return [switch.place for switch in made.lifted.switches]


@pytest.mark.usefixtures("foreground")
def test_both_sides_of_a_refused_line_are_compiled(module: Made, tmp_path: Any) -> None:
    planet = module(
        "def step(u, path):\n    w = np.sin(u) * 0.5\n    u = u + 0.1 * w\n"
        "    path.write_text('x')\n    v = np.cos(u)\n    return u + 0.1 * v\n"
    )
    plain = importlib.import_module("planet").step
    code, path = plain.__code__, tmp_path / "log"
    fast = accel.accelerate(planet.step)
    expected = u = np.linspace(0, 1, 50_000)
    for _ in range(30):
        w = np.sin(expected) * 0.5
        expected = expected + 0.1 * w
        v = np.cos(expected)
        expected = expected + 0.1 * v
        u = fast(u, path)
    np.testing.assert_allclose(u, expected, rtol=1e-12)
    assert path.read_text() == "x"
    assert compiled_parts() == {"step:5-6", "step:8-9"}
    assert plain.__code__ is not code


@pytest.mark.usefixtures("foreground")
def test_a_function_whose_loops_are_outlined_already_is_split(module: Made, tmp_path: Any) -> None:
    planet = module(
        "def step(u, path):\n    w = np.sin(u) * 0.5\n    path.write_text('x')\n    v = np.cos(u)\n"
        "    for k in range(2):\n        v = v + np.sin(v + k)\n    return u + w + 0.1 * v\n"
    )
    plain = FunctionType(planet.step.__code__, planet.step.__globals__)
    made = lift_function(planet.step)
    fast = accel.accelerate(planet.step)
    u, path = np.linspace(0, 1, 50_000), tmp_path / "log"
    for _ in range(30):
        np.testing.assert_allclose(fast(u, path), plain(u, path), rtol=1e-12)
    assert {part.rpartition(":")[2] for part in compiled_parts()} == {"5-5", "7-10"}
    assert [switch.place for switch in made.lifted.switches] == ["8"]


@pytest.mark.usefixtures("foreground")
def test_the_body_of_a_loop_that_runs_is_split(module: Made, tmp_path: Any) -> None:
    planet = module(
        "def main(n, u, path):\n    for i in range(n):\n        w = np.sin(u) * 0.5\n        u = u + 0.1 * w\n"
        "        if i == n - 2:\n            continue\n"
        "        path.write_text('x')\n        v = np.cos(u)\n        u = u + 0.1 * v\n"
        "    return u, i, v\n"
    )
    main = accel.accelerate(planet.main, loops=True)
    u = np.linspace(0, 1, 50_000)
    got = main(40, u, tmp_path / "log")
    for i in range(40):
        u = u + 0.1 * (np.sin(u) * 0.5)
        if i != 38:
            v = np.cos(u)
            u = u + 0.1 * v
    np.testing.assert_allclose(got[0], u, rtol=1e-12)
    np.testing.assert_allclose(got[2], v, rtol=1e-12)
    assert got[1] == 39
    assert {"main:6-9", "main:11-12"} <= compiled_parts()


@pytest.mark.usefixtures("foreground")
def test_parts_that_take_too_little_leave_the_program_as_it_was(
    module: Made, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iterations, "LEAST_SHARE", 1.1)  # none takes enough
    planet = module(
        "def main(n, u, path):\n    for i in range(n):\n        w = np.sin(u)\n        u = u + w\n"
        "        path.write_text('x')\n        v = np.cos(u)\n        u = u + v\n    return u\n"
    )
    code = planet.main.__code__
    main = accel.accelerate(planet.main, loops=True)
    assert planet.main.__code__ is not code
    u = np.linspace(0, 1, 50_000)
    expected = FunctionType(code, planet.main.__globals__)(40, u, tmp_path / "log")
    np.testing.assert_array_equal(main(40, u, tmp_path / "log"), expected)
    assert planet.main.__code__ is code


@pytest.mark.usefixtures("foreground")
def test_a_generator_is_compiled_between_its_yields(module: Made) -> None:
    planet = module(
        "def model(u, n):\n    for i in range(n):\n        w = np.sin(u) * 0.5\n        u = u + 0.1 * w\n"
        "        got = yield u, i\n        if got:\n            return 'stopped', u\n        u = u - 0.01 * np.cos(u)\n"
    )
    plain = [each[0] for each in planet.model(np.linspace(0, 1, 50_000), 30)]
    fast = accel.accelerate(planet.model, loops=True)
    made = fast(np.linspace(0, 1, 50_000), 30)
    for expected, (u, _) in zip(plain, made, strict=True):
        np.testing.assert_allclose(u, expected, rtol=1e-12)
    assert "model:6-7" in compiled_parts()
    stopped = fast(np.ones(3), 5)
    next(stopped)
    with pytest.raises(StopIteration) as caught:
        stopped.send(True)
    assert caught.value.value[0] == "stopped"


def test_a_loop_in_the_else_of_another_is_outlined_too(module: Made) -> None:
    planet = module(
        "def play(u):\n    stop = 1\n    for i in range(2):\n        u = u + [i]\n"
        "    else:\n        for j in range(9, 11):\n            u = u + [j]\n        stop = 2\n    return u\n"
    )
    assert split_at(planet.play, 5, 11) == ["6", "9"]
    assert planet.play([]) == [0, 1, 9, 10]


def test_what_a_variable_holds_lives_as_long_as_the_function(module: Made) -> None:
    """As a temporary folder does, which is deleted with the object that stands for it."""
    planet = module(
        "import weakref\nclass Folder: pass\ndef play(u):\n    folder = Folder()\n    alive = weakref.ref(folder)\n"
        "    stop = 1\n    return alive() is not None, sum(u)\n"
    )
    assert split_at(planet.play, 9) == ["7-8", "10-10"]
    assert planet.play([1, 2]) == (True, 3)


def test_who_looks_at_its_callers_variables_finds_them(module: Made) -> None:
    planet = module(
        "import sys\ndef evaluate(text):\n    frame = sys._getframe(1)\n"
        "    return eval(text, frame.f_globals, frame.f_locals)\n"
        "def play(u, v):\n    w = 3\n    stop = 1\n    return evaluate('u + v * w + stop')\n"
    )
    assert split_at(planet.play, 10) == ["11-11"]
    assert planet.play(1, 2) == 8


def test_warnings_name_the_callers_line(module: Made) -> None:
    planet = module(
        "import warnings\ndef play(u):\n    a = u + 1\n    warnings.warn('old', stacklevel=2)\n    b = a + u\n"
        "    stop = 1\n    return b * 2\ndef caller():\n    return play(1)\n"
    )
    assert split_at(planet.play, 9) == ["6-6", "8-8", "10-10"]
    with pytest.warns(UserWarning, match="old") as caught:
        assert planet.caller() == 6
    assert [each.lineno for each in caught] == [12]


@pytest.mark.parametrize("body", ["    print(locals())\n", "    exec('u = 2')\n", "    vars()\n"])
def test_a_function_that_looks_at_its_variables_is_not_split(module: Made, body: str) -> None:
    planet = module("def play(u):\n    u = u + 1\n" + body + "    return u * 2\n")
    with pytest.raises(NotLiftable):
        lift_function(planet.play, stops={6: ""})


@pytest.mark.usefixtures("foreground")
def test_a_loop_over_single_elements_is_left_whole_and_the_rest_compiled(module: Made) -> None:
    planet = module(
        "def sweep(u):\n    w = np.sin(u) * 0.5\n    u = u + 0.1 * w\n    for i in range(1, 2000):\n"
        "        u[i] = 0.5 * (u[i] + u[i - 1])\n    v = np.cos(u)\n    return u + 0.1 * v\n"
    )
    fast = accel.accelerate(planet.sweep)
    for _ in range(20):
        u = np.linspace(0, 1, 5000)
        expected = u + 0.05 * np.sin(u)
        for i in range(1, 2000):
            expected[i] = 0.5 * (expected[i] + expected[i - 1])
        np.testing.assert_allclose(fast(u), expected + 0.1 * np.cos(expected), rtol=1e-12)
    assert {each.reason for each in open_ledger("planet:sweep").refusals} >= {"code.elements"}
    assert "sweep:8" not in compiled_parts()
    assert compiled_parts() >= {"sweep:5-6", "sweep:9-10"}


@pytest.mark.parametrize(
    "statement", ["u[i] = u[i, :] @ u[:, i]", "u[i] += u[i - 1] * 0.5", "w = u[i].sum() + u[0, 0] + w"]
)
def test_loops_that_compute_with_rows_are_recorded(statement: str) -> None:
    names: dict[str, Any] = {"np": np}
    exec(f"def sweep(u, w):\n    for i in range(300):\n        {statement}\n    return u, w\n", names)
    recorded = record(names["sweep"], (np.ones((300, 300)), 0.0), {}, max_nodes=10**6)
    assert recorded.refusal is None


@pytest.mark.usefixtures("foreground")
def test_a_part_that_takes_little_is_left_alone(module: Made, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    planet = module(
        "def step(u, path):\n    k = u[0] * 2\n    path.write_text('x')\n"
        "    for _ in range(4):\n        u = np.sin(u) + np.cos(u)\n    return u + k\n"
    )
    monkeypatch.setattr(iterations, "LEAST_SHARE", 1e9)
    fast = accel.accelerate(planet.step)
    for _ in range(16):
        fast(np.linspace(0, 1, 1000), tmp_path / "log")
    notes = [each for each in current_run().notes if "is split at line 6" in each]
    assert len(notes) == 2 and all(
        each.endswith(("line 5, too little to be compiled", "lines 7-9, too little to be compiled")) for each in notes
    )
    assert not open_ledger("planet:step:5-5").calls and not open_ledger("planet:step:7-9").calls
