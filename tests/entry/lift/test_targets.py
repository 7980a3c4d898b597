"""Lifted loops as targets: their iterations are compiled, and do what the program's own loop does."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import subprocess
import sys
import threading
import weakref
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import accel
from accel.catalogue import Catalogue, Row
from accel.platform.ledger import open_ledger
from tests.entry.lift.conftest import HEADER, assert_same

pytestmark = pytest.mark.usefixtures("foreground")


def test_rounds_are_compiled_across_calls_of_the_function(world: Any) -> None:
    made = world(
        HEADER + "def main(n, u):\n    total = 0.0\n    last = None\n    for i in range(n):\n"
        "        x = np.sin(u) * 0.5\n"
        "        u = u + 0.1 * x\n        total += float(x.mean())\n        if i % 5 == 3:\n            last = x\n"
        "    return total, last, u, i\n"
    )
    made.check(lambda planet: planet.main(12, np.linspace(0, 1, 20)), times=4)
    ledger = made.ledger(11)
    assert ledger.calls == 48
    assert ledger.compiled_calls > 24


def test_each_round_leaves_an_array_of_its_own(world: Any) -> None:
    made = world(
        HEADER + "def main(model, n, show):\n    for i in range(n):\n        model.u = model.u * 1.01\n"
        "        u = model.u\n"
        "        show(0) if i == 0 else None\n    return u\n"
    )

    def play(planet: ModuleType) -> Any:
        model, seen = planet.Model(), []
        model.u = np.ones(5)
        for _ in range(6):
            planet.main(model, 3, lambda _: None)
            seen.append(model.u)
        return [each.copy() for each in seen], len({id(each) for each in seen})

    made.check(play)


def test_locals_names_what_is_bound(world: Any) -> None:
    made = world(
        HEADER + "def main(u, early, late):\n    if early:\n        extra = 1.0\n    for i in range(8):\n"
        "        if 'extra' in locals() and extra is not None:\n            u = u + extra\n        else:\n"
        "            u = u * 1.5\n        if 'never' not in locals():\n            u = u + 0.5\n"
        "        if late and i == 3:\n            extra = 2.0\n    if u is None:\n        never = 1\n"
        "    return u, 'extra' in locals()\n"
    )
    for early, late in ((False, False), (True, False), (False, True), (True, True)) * 2:
        made.check(lambda planet, early=early, late=late: planet.main(np.arange(4.0), early, late), times=2)
    assert made.ledger(11).compiled_calls > 40


def test_a_variable_that_is_unbound_at_first(world: Any) -> None:
    made = world(
        HEADER + "def main(n, u):\n    for i in range(n):\n        if i > 2:\n            u = u + x\n"
        "        if i != 1:\n            x = u * 0.5\n        if i == n - 2:\n            del x\n    return u, i\n"
    )

    def play(planet: ModuleType) -> Any:
        try:
            return planet.main(9, np.ones(3))
        except UnboundLocalError as error:
            assert error.__traceback__.tb_next.tb_lineno == 11  # type: ignore[union-attr]
            return str(error)

    made.check(play, times=4)


def test_errors_in_the_middle_of_compiled_rounds(world: Any) -> None:
    made = world(
        HEADER + "def main(n, u, model):\n    for i in range(n):\n        model.u = model.u + u * 0.25\n"
        "        if model.u.max() > 6.0:\n            raise ValueError('too large', i)\n    return i\n"
    )

    def play(planet: ModuleType) -> Any:
        model = planet.Model()
        model.u = np.zeros(4)
        try:
            got = planet.main(20, np.arange(4.0), model)
        except ValueError as error:
            assert error.__traceback__.tb_next.tb_lineno == 12  # type: ignore[union-attr]
            assert error.__traceback__.tb_next.tb_next is None  # type: ignore[union-attr]
            got = error.args
        return got, model.u

    made.check(play, times=4)
    assert made.ledger(9).compiled_calls > 5


def test_what_mode_strict_raises_is_at_the_programs_line(world: Any) -> None:
    """Of accel's own frames it shows none: nothing of accel is at fault."""
    source = HEADER + "def main(x):\n    for i in range(9):\n        x = x + np.trim_zeros(x)\n    return x\n"
    planet = world(source).fast
    accel.install(Catalogue("test", (Row("planet", "main", "a test", loops=True),)), mode="strict")
    with pytest.raises(accel.Refused, match=r"shape\.dynamic") as caught:
        planet.main(np.ones(100_000))
    assert [(each.path.name, each.lineno + 1) for each in caught.traceback[1:]] == [("planet.py", 9)]


def test_bodies_and_what_they_hold_are_let_go(world: Any) -> None:
    made = world(
        HEADER + "def main(n, model):\n    for i in range(n):\n        model.u = model.u * 1.01 + np.sin(model.u)\n"
    )
    accel.install(Catalogue("test", (Row("planet", "main", "a test", loops=True),)))
    held = []
    for _ in range(4):
        model = made.fast.Model()
        model.u = np.ones(4)
        held.append(weakref.ref(model))
        made.fast.main(6, model)
        del model
    gc.collect()
    assert [each() for each in held] == [None] * 4


def test_two_threads(world: Any) -> None:
    made = world(
        HEADER + "def main(n, u, wait):\n    for i in range(n):\n        u = u * 0.99 + np.cos(u)\n        if i == 5:\n"
        "            wait()\n    return u\n"
    )

    def play(planet: ModuleType) -> Any:
        barrier, results = threading.Barrier(2), {}

        def work(k: int) -> None:
            results[k] = planet.main(12, np.full(4, float(k)), barrier.wait)

        threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2)]
        [each.start() for each in threads]
        [each.join() for each in threads]
        return [results[k] for k in (1, 2)]

    made.check(play)


def test_a_signal_handler_that_writes_between_rounds(world: Any) -> None:
    made = world(
        HEADER + "def main(source, model):\n    for i in source:\n        model.u = model.u * 1.01 + np.sin(model.u)\n"
        "    return i\n"
    )

    def play(planet: ModuleType) -> Any:
        model = planet.Model()
        model.u = np.ones(4)

        def handler(number: int, frame: Any) -> None:
            model.u = model.u[:3] if len(model.u) == 4 else np.zeros(4)

        before = signal.signal(signal.SIGUSR1, handler)
        try:
            rounds = (signal.raise_signal(signal.SIGUSR1) or i if i in (5, 8) else i for i in range(12))
            return planet.main(rounds, model), model.u
        finally:
            signal.signal(signal.SIGUSR1, before)

    made.check(play)


def test_an_iterator_that_reads_and_writes_the_state(world: Any) -> None:
    made = world(
        HEADER + "def main(model):\n    def source():\n        for k in range(10):\n            model.u[0] += 1.0\n"
        "            yield float(model.u.sum())\n    total = 0.0\n    for s in source():\n"
        "        model.u = np.sqrt(model.u + s)\n        total += s\n    return total, model.u\n"
    )

    def play(planet: ModuleType) -> Any:
        model = planet.Model()
        model.u = np.ones(4)
        return planet.main(model)

    made.check(play)
    assert made.ledger(14).compiled_calls > 15


def test_a_function_that_calls_itself_from_its_loop(world: Any) -> None:
    made = world(
        HEADER + "def main(n, u):\n    for i in range(n):\n        u = np.sin(u) + i\n        if i == 2 and n > 3:\n"
        "            u = u + main(n - 1, u)\n    return u\n"
    )
    made.check(lambda planet: planet.main(7, np.ones(3)), times=4)


def test_uninstalling_in_the_middle_of_a_running_loop(world: Any) -> None:
    made = world(
        HEADER + "def main(n, u, stop):\n    for i in range(n):\n        u = np.sin(u) + 1.0\n        if i == 5:\n"
        "            stop()\n    return u\n"
    )
    code = made.fast.main.__code__
    made.check(lambda planet: planet.main(9, np.ones(3), accel.uninstall))
    accel.uninstall()
    assert made.fast.main.__code__ is code


def test_a_module_that_is_loaded_again(world: Any) -> None:
    made = world(HEADER + "def main(n, u):\n    for i in range(n):\n        u = np.sin(u) + 1.0\n    return u\n")
    made.check(lambda planet: planet.main(9, np.ones(3)))
    first = made.fast.main
    importlib.reload(made.fast)
    assert made.fast.main is not first
    made.check(lambda planet: planet.main(9, np.ones(3)))
    assert made.ledger(9).compiled_calls > 30


def test_a_row_of_a_function_that_cannot_be_lifted_says_why(world: Any) -> None:
    made = world(HEADER + "def main(n):\n    for i in range(n):\n        exec('x = 1')\n    return i\n")
    made.check(lambda planet: planet.main(3))
    [refusal] = open_ledger("planet:main").refusals
    assert (refusal.reason, refusal.where) == ("lift.code", "planet.py:10")


def test_methods_and_globals(world: Any) -> None:
    made = world(
        "import numpy as np\n\ncount = 0\n\nclass Base:\n    def step(self, u):\n        return u * 1.5\n\n"
        "class Model(Base):\n    __rate = 0.1\n    def step(self, u):\n        return u - 1.0\n"
        "    def main(self, n, u):\n        global count\n        for i in range(n):\n"
        "            __x = np.cos(u) * self.__rate\n"
        "            u = super().step(u) + __x\n            count += 1\n        return u, __x, count\n",
        "Model.main",
    )
    made.check(lambda planet: planet.Model().main(8, np.ones(3)), times=3)
    assert made.ledger(15, "Model.main").compiled_calls > 12


def test_the_decorator_names_loops(world: Any) -> None:
    made = world(
        HEADER + "def main(n, u):\n    for i in range(n):\n        u = np.sin(u) + 1.0\n    return u\n\n\n"
        "def refused(n):\n    for i in range(n):\n        x = eval('i')\n    return x\n"
    )
    main = made.fast.main
    assert accel.accelerate(loops=True, name="mine")(main) is main
    for _ in range(3):
        assert_same(made.plain.main(9, np.ones(3)), main(9, np.ones(3)))
    assert open_ledger("mine:9").compiled_calls > 12
    assert accel.accelerate(made.fast.refused, loops=True)(3) == 2
    assert [each.reason for each in open_ledger("planet:refused").refusals] == ["lift.code"]
    with pytest.raises(TypeError, match="not int"):
        accel.accelerate(3, loops=True)  # type: ignore[type-var]


def test_functions_made_in_a_recorded_round_see_later_values(world: Any) -> None:
    made = world(
        HEADER + "def main(n, u, kept, show):\n    for i in range(n):\n        try:\n            u = u + np.sin(u)\n"
        "            last = float(u.sum())\n            kept.append(lambda k=0: (last + k, i))\n            show(i)\n"
        "        except KeyError:\n            pass\n    last = -1.0\n    return u\n"
    )

    def play(planet: ModuleType) -> Any:
        kept: list[Any] = []
        u = planet.main(5, np.ones(3), kept, lambda i: print(end=""))
        return u, [each() for each in kept]

    made.check(play)


def test_a_loop_in_a_script_that_runs_as_main(tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nu = np.linspace(0.0, 1.0, 9)\nfor i in range(30):\n    u = u + 0.1 * np.sin(u)\n"
        "print(u.round(12).tolist(), i, sorted(name for name in globals() if not name.startswith('__')))\n"
    )
    rows = tmp_path / "rows.py"
    rows.write_text(
        "from accel.catalogue import Catalogue, Row\n"
        "CATALOGUE = Catalogue('own', (Row('__main__', '<module>', 'a test', loops=True),))\n"
    )
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path)
    command = [sys.executable, "-m", "accel.run", "--catalogue", rows, "--report", tmp_path / "report.json", script]
    environment = {**os.environ, "QD_JAX_AOT": "0", "QD_JAX_CACHE_DIR": "off"}
    fast = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert fast.stdout == plain.stdout
    assert '"target": "__main__:3"' in (tmp_path / "report.json").read_text()
    command[3:5] = ["--auto"]
    fast = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert fast.stdout == plain.stdout
    assert '"target": "__main__:3"' in (tmp_path / "report.json").read_text()


def test_a_function_is_recorded_as_it_is_written_while_its_loops_are_lifted(world: Any) -> None:
    made = world(
        HEADER + "def settle(u):\n    n = 0\n    while u.max() > 0.1:\n        half = u * 0.5\n"
        "        u = u - 0.3 * half\n"
        "        n += 1\n    return u, n\n\n\ndef main(u):\n    for i in range(12):\n"
        "        v, n = settle(u * (i + 1.0))\n        u = u + 0.01 * v\n    return u, n\n",
        "main",
        "settle",
    )
    made.check(lambda planet: planet.main(np.linspace(0.5, 1.0, 20)))
    ledger = made.ledger(18)
    # each of its iterations calls `settle`, whose own loop makes another number of them each time
    assert ledger.compiled_calls > 24
    assert len(open_ledger("planet:main:18").describe()) == 1
