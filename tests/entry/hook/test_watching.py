"""`--auto`: which functions are chosen, and how they are accelerated while the program runs."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel.catalogue import Catalogue, Row
from accel.entry.hook import patching, watching
from accel.entry.hook.watching import Watch
from accel.platform import config
from accel.platform.ledger import State, current_run, open_ledger
from tests.conftest import WriteModules

Looks = list[Row]


def watch_for(chosen: Looks) -> Watch:
    return Watch(threading.get_ident(), lambda row: chosen.append(row) is None, "a test")


class Hot:
    """Functions that look at themselves, as the thread would."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def often(self, looks: int) -> None:
        for _ in range(looks):
            self.watch.look(sys._getframe())

    def once(self, calls: int, looks: int) -> None:
        def nested() -> None:
            self.often(looks)

        for _ in range(calls):
            nested()


def test_what_holds_the_time_is_chosen_but_for_nested_functions() -> None:
    chosen: Looks = []
    Hot(watch_for(chosen)).once(20, watching.LOOKS // 10)
    names = {row.qualname for row in chosen if row.module == __name__}
    assert {"Hot.often", "Hot.once"} <= names
    assert not any("<locals>" in name for name in names)
    assert len(chosen) == len(set(chosen)), "once is enough"


def test_what_takes_little_is_not() -> None:
    chosen: Looks = []
    hot = Hot(watch_for(chosen))
    hot.often(1)
    for _ in range(3 * watching.LOOKS):
        hot.watch.look(None)
        hot.watch.look(sys._getframe())
    assert not any(row.qualname.startswith("Hot") for row in chosen)


SOURCE = """
import numpy as np
class Model:
    def step(self, x):
        return np.sin(x) * 2.0
def plain(x):
    return x + 1.0
"""


@pytest.mark.usefixtures("foreground")
def test_a_function_is_added_to_what_is_installed_and_put_back(write_modules: WriteModules) -> None:
    write_modules({"added.py": SOURCE, "importing.py": "from added import plain\n"})
    added, importing = importlib.import_module("added"), importlib.import_module("importing")
    before = added.plain, added.Model.step
    accel.install(Catalogue("test", ()))
    installed = patching._current
    assert installed is not None
    assert installed.add(Row("added", "Model.step", "a test"))
    assert installed.add(Row("added", "plain", "a test"))
    assert not installed.add(Row("added", "plain", "a test")), "it is there"
    assert not installed.add(Row("added", "missing", "a test"))
    assert not installed.add(Row("nowhere", "plain", "a test"))
    for _ in range(8):
        assert np.allclose(added.Model().step(np.arange(3.0)), np.sin(np.arange(3.0)) * 2.0)
        assert importing.plain(np.ones(2)).tolist() == [2.0, 2.0]
    assert open_ledger("added:Model.step").compiled_calls
    assert open_ledger("added:plain").compiled_calls
    accel.uninstall()
    assert (added.plain, added.Model.step) == before
    assert importing.plain is before[0]


REFUSED = """
import time
import numpy as np
def relax(x, n):
    started = time.time()
    for _ in range(n):
        x = np.tanh(x) * 1.01
    return x, started > 0.0
"""


@pytest.mark.usefixtures("foreground")
def test_a_function_that_is_refused_as_a_whole_has_its_loops_lifted(write_modules: WriteModules) -> None:
    write_modules({"refused.py": REFUSED})
    module: Any = importlib.import_module("refused")
    code = module.relax.__code__
    x = np.linspace(-1.0, 1.0, 7)
    expected, late = module.relax(x, 20)
    accel.install(Catalogue("test", (Row("refused", "relax", "a test"),)))
    for _ in range(6):
        given, is_late = module.relax(x, 20)
        np.testing.assert_allclose(given, expected, rtol=1e-12)
        assert is_late is late
    book = open_ledger("refused:relax")
    assert (book.state, book.compiled_calls) == (State.NUMPY, 0)
    assert open_ledger("refused:relax:6").compiled_calls > 20
    accel.uninstall()
    assert module.relax.__code__ is code


@pytest.mark.usefixtures("foreground")
def test_so_has_a_decorated_function(write_modules: WriteModules) -> None:
    write_modules({"decorated.py": "import accel\n" + REFUSED.replace("def relax", "@accel.accelerate\ndef relax")})
    module: Any = importlib.import_module("decorated")
    x = np.linspace(-1.0, 1.0, 7)
    results = [module.relax(x, 20) for _ in range(6)]
    expected = x
    for _ in range(20):
        expected = np.tanh(expected) * 1.01
    for given, is_late in results:
        np.testing.assert_allclose(given, expected, rtol=1e-12)
        assert is_late is True
    assert open_ledger("decorated:relax:8").compiled_calls > 20


@pytest.mark.usefixtures("foreground")
@pytest.mark.parametrize("options", ["mode='verify'", "mode='verify', loops=True"])
def test_lifted_loops_have_the_decorators_mode(write_modules: WriteModules, options: str) -> None:
    source = "import accel\n" + REFUSED.replace("def relax", f"@accel.accelerate({options})\ndef relax")
    write_modules({"checked.py": source})
    module: Any = importlib.import_module("checked")
    for _ in range(6):
        module.relax(np.linspace(-1.0, 1.0, 7), 20)
    book = open_ledger("checked:relax:8")
    assert book.comparisons == book.compiled_calls > 20


@pytest.mark.usefixtures("foreground")
@pytest.mark.parametrize("way", ["decorator", "row"])
def test_lifted_loops_may_leave_text_to_numpy(
    write_modules: WriteModules, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    mark = "@accel.accelerate(loops=True, effects=False)\n" if way == "decorator" else "\n"
    write_modules(
        {
            "telling.py": "import accel\nimport numpy as np\n" + mark + "def show(x):\n    for i in range(9):\n"
            "        x = np.tanh(x) + 1.0\n        print(x.sum() > 0.0, i)\n"
        }
    )
    module: Any = importlib.import_module("telling")
    if way == "row":
        accel.install(Catalogue("test", (Row("telling", "show", "a test", loops=True, effects=False),)))
    for _ in range(3):
        module.show(np.ones(5))
    book = open_ledger("telling:show:5")
    assert (book.calls > 0, book.compiled_calls) == (True, 0)
    assert [each.reason for each in book.refusals] == ["effect.print"]
    assert capsys.readouterr().out == "".join(f"True {i}\n" for i in range(9)) * 3


SCRIPT = """
import numpy as np
def work(x):
    return np.sqrt(np.abs(np.sin(x))) + 1.0
u = np.linspace(0.0, 1.0, 50_000)
for n in range(150):
    u = 0.5 * (u + work(u))
print(f"{u.sum():.9f}")
"""


def test_a_catalogue_may_name_functions_of_the_script_itself(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    rows = 'CATALOGUE = Catalogue("one", (Row("__main__", "work", "a test"),))'
    (tmp_path / "named.py").write_text(f"from accel.catalogue import Catalogue, Row\n{rows}\n")
    command = [sys.executable, "-m", "accel.run", "--catalogue", "named.py", "--report", "report.json", "script.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    assert '"calls": 0' not in (tmp_path / "report.json").read_text().split('"__main__:work"')[1][:400]


def test_loops_of_the_script_are_outlined_once_and_those_of_the_command_never(tmp_path: Path) -> None:
    """The command has a function `main`, too. `work` is defined last: names are looked up once more then."""
    main = "def main(u):\n    for n in range(150):\n        u = 0.5 * (u + work(u))\n    print(u.sum())\n"
    work = SCRIPT[SCRIPT.index("def work") : SCRIPT.index("u = ")]
    (tmp_path / "script.py").write_text(f"import numpy as np\n{main}{work}main(np.linspace(0.0, 1.0, 50_000))\n")
    rows = 'Row("__main__", "main", "a test", loops=True), Row("__main__", "work", "a test")'
    (tmp_path / "named.py").write_text(
        f"from accel.catalogue import Catalogue, Row\nCATALOGUE = Catalogue('one', ({rows}))\n"
    )
    command = [sys.executable, "-m", "accel", "run", "--catalogue", "named.py", "--report", "report.json", "script.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    functions = {each["target"]: each for each in json.loads((tmp_path / "report.json").read_text())["functions"]}
    assert functions["__main__:main:3"]["calls"] == 150
    assert not [why["id"] for each in functions.values() for why in each["reasons"] if why["id"].startswith("lift.")]


def _look_from_library(watch: Watch, looks: int) -> None:
    """Have a watch look while a solver of SciPy's, by its name, is on top."""
    names: dict[str, Any] = {"__name__": "scipy.sparse.linalg._dsolve.linsolve", "watch": watch, "sys": sys}
    text = "def spsolve(n):\n    for _ in range(n):\n        watch.look(sys._getframe())\n"
    exec(compile(text, "<a library>", "exec"), names)
    names["spsolve"](looks)


def test_compiled_code_that_takes_most_of_the_time_is_told_once() -> None:
    told: list[tuple[str, float]] = []
    watch = Watch(threading.get_ident(), lambda row: True, "a test", lambda *what: told.append(what))
    _look_from_library(watch, watching.MOST_AFTER - 1)
    assert not told
    _look_from_library(watch, 2 * watching.LOOKS)
    assert told == [("scipy.sparse.linalg.spsolve", 1.0)]


def test_a_program_that_spends_most_of_its_time_itself_goes_on() -> None:
    told: list[tuple[str, float]] = []
    watch = Watch(threading.get_ident(), lambda row: True, "a test", lambda *what: told.append(what))
    for _ in range(4):
        _look_from_library(watch, watching.MOST_AFTER // 2)
        Hot(watch).often(watching.MOST_AFTER // 2)
    assert not told


def test_a_later_run_of_such_a_program_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_modules: WriteModules
) -> None:
    program = tmp_path / "solving.py"
    program.write_text("solve()\n")
    monkeypatch.setattr(sys, "argv", [str(program), "--fine"])
    write_modules({"planet.py": "def step(u):\n    return u + 1\n"})
    planet = importlib.import_module("planet")
    plain = planet.step
    accel.install(Catalogue("test", (Row("planet", "step", "a test"),)))
    assert planet.step is not plain
    with config.override(cache_dir=tmp_path / "cache"):
        patching._note_hopeless("scipy.sparse.linalg.spsolve", 0.92)
        assert planet.step is plain
        accel.install(Catalogue("test", (Row("planet", "step", "a test"),)))
        patching.watch()
        assert planet.step is plain
        sentence = "92% of the time is in scipy.sparse.linalg.spsolve, which accel cannot make faster"
        assert [each for each in current_run().notes if "spsolve" in each] == [
            sentence,
            f"{sentence}, in an earlier run",
        ]
        monkeypatch.setattr(sys, "argv", [str(program), "--coarse"])
        assert patching.known_hopeless() is None
