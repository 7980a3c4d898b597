"""The static scan: what the text of a program tells, and that nothing of the program is imported or run."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from accel.inspect import programs
from accel.inspect.doctor import write
from accel.inspect.doctor.command import main
from accel.inspect.doctor.scan import scan, verdict
from accel.inspect.sources import functions_of, parse, sources_of

PROGRAM = """
import math
import time
import numpy as np
import numpy.linalg as la
import pandas
from numpy import where, save as keep
from scipy.ndimage import gaussian_filter
from scipy import signal

def plain(x):
    return where(x > 0.0, np.sin(x) + math.sqrt(2.0), gaussian_filter(x, 1.0))

def effects(x):
    print(x)
    open("f")
    time.time()
    np.random.seed(0)
    np.random.normal()
    keep("f", x)

def missing(x):
    return np.fromiter(x, float) + np.busday_count(x) + la.eig(x)[0] + signal.remez(x) + pandas.DataFrame(x)

def local(x):
    from time import perf_counter as now
    return x + now()

def shadowed(np):
    return np.trim_zeros(3)

def cells(x):
    for i in range(3):
        for j in range(3):
            x[i, j] += 1.0

def one_loop(x):
    for i in range(3):
        x[i] += 1.0

def generator(x):
    yield x

def writes_global(x):
    global state
    state = x

async def later(x):
    return x

def outer(x):
    def inner(y):
        return np.fromiter(y, float)
    return inner(x)

class Thing:
    def method(self, x):
        return x.sum() + self.other(x)

    def other(self, x):
        return np.exp(x)

raise RuntimeError("this must never run")
"""

EXPECTED = {
    "plain": [],
    "effects": ["effect.print", "effect.file", "effect.clock", "effect.random", "effect.file"],
    "missing": ["call.opaque", "call.opaque", "call.opaque", "rule.missing"],
    "local": ["effect.clock"],
    "shadowed": [],
    "cells": ["code.elements"],
    "one_loop": [],
    "generator": ["call.generator"],
    "writes_global": [],
    "later": ["call.generator"],
    "outer": ["call.opaque"],
    "outer.<locals>.inner": ["call.opaque"],
    "Thing.method": [],
    "Thing.other": [],
}


@pytest.fixture
def scans(tmp_path: Any) -> dict[str, Any]:
    """Every function's scan, by name."""
    (tmp_path / "program.py").write_text(PROGRAM)
    source = parse(str(tmp_path / "program.py"))
    return {function.qualname: scan(function, frozenset({"program"})) for function in functions_of(source)}


def test_every_function_is_found(scans: dict[str, Any]) -> None:
    assert list(scans) == list(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_may_stop_a_function(scans: dict[str, Any], name: str) -> None:
    assert [finding.reason for finding in scans[name].findings] == EXPECTED[name]


def test_findings_name_the_line_and_the_call(scans: dict[str, Any]) -> None:
    first = scans["effects"].findings[0]
    assert (PROGRAM.splitlines()[first.line - 1].strip(), first.detail) == ("print(x)", "print()")


def test_array_work_is_counted(scans: dict[str, Any]) -> None:
    assert (scans["plain"].array_calls, scans["plain"].arithmetic) == (3, 1)
    assert scans["Thing.method"].array_calls == 1
    assert scans["Thing.method"].calls == {"program.Thing.other"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("numpy.sin", None),
        ("numpy.float64", None),
        ("numpy.errstate", None),
        ("numpy.frexp", None),
        ("numpy.nope", None),
        ("numpy.random.default_rng", None),
        ("numpy.random.normal", None),
        ("numpy.random.seed", "effect.random"),
        ("random.gauss", None),
        ("random.shuffle", "effect.random"),
        ("numpy.loadtxt", "effect.file"),
        ("numpy.trim_zeros", "shape.dynamic"),
        ("numpy.fromiter", "call.opaque"),
        ("scipy.ndimage.convolve", None),
        ("scipy.optimize.minimize", "call.opaque"),
        ("os.environ.get", None),
        ("os.getenv", None),
        ("os.remove", "effect.file"),
        ("os.path.join", None),
        ("os.path.exists", "effect.file"),
        ("builtins.print", "effect.print"),
        ("builtins.len", None),
        ("logging.info", "effect.print"),
        ("datetime.datetime.now", "effect.clock"),
        ("netCDF4.Dataset", "call.opaque"),
    ],
)
def test_verdicts_on_names(name: str, reason: str | None) -> None:
    assert verdict(name) == reason


def test_modules_of_the_user_s_own_are_followed(write_modules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("verdict_helpers.py", "site-packages/verdict_library.py")
    folder = write_modules(dict.fromkeys(names, "def scaled(x): return x * 2.0\n"))
    monkeypatch.syspath_prepend(folder / "site-packages")
    assert verdict("verdict_helpers.scaled") is None
    assert verdict("verdict_library.scaled") == "call.opaque"


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_package_is_read_with_its_subpackages(climate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(climate.folder)
    by_folder = {source.module: source.problem for source in sources_of("climate")}
    assert by_folder == {
        "climate": "",
        "climate.broken": "line 1: SyntaxError: invalid syntax",
        "climate.core": "",
        "climate.physics": "",
        "climate.physics.radiation": "",
        "climate.run": "",
    }
    assert [source.module for source in sources_of("climate/physics/radiation.py")] == ["climate.physics.radiation"]


def test_a_file_that_is_no_text_is_told(tmp_path: Any) -> None:
    (tmp_path / "odd.py").write_bytes(b"x = '\xff'\n")
    assert (
        "codec can't decode" in parse(str(tmp_path / "odd.py")).problem
        or "utf-8" in parse(str(tmp_path / "odd.py")).problem
    )
    (tmp_path / "null.py").write_bytes(b"x = 1\0\n")
    assert "null byte" in parse(str(tmp_path / "null.py")).problem


def test_functions_defined_twice_are_two(climate: Any) -> None:
    source = parse(str(climate.folder / "climate/physics/radiation.py"))
    assert [function.qualname for function in functions_of(source)].count("scale") == 2


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def told(climate: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Give `told(*args)`: exit code and output of the command in the package's folder."""
    monkeypatch.chdir(climate.folder)
    monkeypatch.syspath_prepend(str(climate.folder))

    def run(*args: str) -> tuple[int, str, str]:
        code = main(args)
        out, err = capsys.readouterr()
        assert not {name for name in sys.modules if name.split(".")[0] == "climate"}, "the program was imported"
        return code, out, err

    return run


def test_the_text_says_what_is_worth_trying_and_what_to_do_next(told: Any) -> None:
    code, out, err = told("climate")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 100
    assert "note: climate/broken.py was left out: line 1: SyntaxError: invalid syntax" in out
    candidates, *_ = out.partition("candidates")[2].partition("\n\n")
    for name in ("core:Model.step", "core:Model.diffuse", "physics.radiation:net", "physics.radiation:scale"):
        assert f"climate.{name}" in candidates
    assert "climate.physics.radiation:cells: code.elements at line 20" in out
    assert "accel doctor climate --run PROGRAM" in out


def test_the_json_holds_everything(told: Any) -> None:
    code, out, _ = told("climate", "--format", "json")
    account = json.loads(out)
    by_name = {each["target"]: each for each in account["functions"]}
    assert (code, account["schema"], account["run"], account["files"]) == (0, 1, None, 6)
    assert [each["why"] for each in account["problems"]] == ["line 1: SyntaxError: invalid syntax"]
    assert by_name["climate.physics.radiation:rows"]["verdict"] == "stopped"
    assert by_name["climate.physics.radiation:made.<locals>.inner"]["verdict"] == "unreachable"
    assert by_name["climate.core:Model.__post_init__"]["verdict"] == "rare"
    assert by_name["climate.core:Model.step"]["verdict"] == "row"
    assert by_name["climate.core:Model.of_size"]["verdict"] == "no arrays"
    assert by_name["climate.core:Model.tell"]["may_stop"][0]["id"] == "effect.print"
    assert by_name["climate.core:Model.tell"]["calls"] is None


def test_each_key_of_the_json_is_explained(told: Any) -> None:
    account = json.loads(told("climate", "--format", "json")[1])
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    section = page.partition("\n## accel doctor\n")[2].partition("\n## ")[0]
    names = [line.partition(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    assert set(account) | set(account["functions"][0]) == set(re.findall(r"`(\w+)`", " ".join(names)))


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (
            "for i in range(3):\n    print(i)\n",
            "no catalogue is needed: accel run --auto flat.py compiles the rounds of",
        ),
        ("", "there is nothing to accelerate: no functions, and no loops outside of them"),
        ("def f(x):\n    return x\n", "measure: accel doctor flat.py --run PROGRAM times these functions"),
    ],
)
def test_the_next_step_for_a_script(
    text: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "flat.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["flat.py"]) == 0
    assert f"\nnext - {step}" in capsys.readouterr().out.replace("next\n  - ", "next - ")


def test_what_a_program_raises_is_printed_without_what_started_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "raises.py").write_text("def f():\n    1 / 0\n\nf()\n", encoding="utf-8")
    with pytest.raises(ZeroDivisionError) as caught:
        programs.ProgramToRun("script", str(tmp_path / "raises.py")).run()
    programs.print_error(caught.value.with_traceback(caught.tb.tb_next))
    places = re.findall(r'File "(.*)", line (\d+)', capsys.readouterr().err)
    assert [(Path(file).name, line) for file, line in places] == [("raises.py", "4"), ("raises.py", "2")]


def test_markdown_has_a_row_for_each_function(told: Any) -> None:
    code, out, _ = told("climate", "--format", "markdown")
    assert code == 0 and "| `climate.core:Model.step` | row |" in out and "| `call.opaque` |" in out


PACKAGES = "a package or module that python -m would find, a folder, or a .py file"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("", f"PACKAGE_OR_FILE='' is missing; expected: {PACKAGES}"),
        ("weather", f"PACKAGE_OR_FILE='weather' does not exist; expected: {PACKAGES}"),
        ("sys", f"PACKAGE_OR_FILE='sys' is not written in Python; expected: {PACKAGES}"),
        ("climate --format xml", "--format='xml' cannot be used; expected: text, json, markdown"),
        ("climate --run weather", "--run='weather' does not exist; expected: a dotted module such as "
         "scripts.run_simulation, a script file, or module:callable"),
        ("climate --run climate.run:walk", "--run='climate.run:walk' names nothing in climate.run; "
         "expected: Model, main, radiation, sys"),
        ("climate --run", "--run='' is missing its program; expected: a dotted module such as "
         "scripts.run_simulation, a script file, or module:callable"),
        ("climate --catalogue a-b.py",
         "--catalogue='a-b.py' cannot be imported as a module; expected: a name such as heat_rows.py"),
        ("climate --catalogue climate/run.py",
         "--catalogue='climate/run.py' exists already; expected: the name of a new file"),
        ("climate --catalogue none/rows.py", "--catalogue='none/rows.py' cannot be written; "
         "expected: a file in a folder that exists and is writable"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(told: Any, args: str, says: str) -> None:
    assert told(*args.split()) == (2, "", f"accel: {says}\n")


def test_a_single_file_that_is_broken_is_bad_input(told: Any) -> None:
    code, out, err = told("climate/broken.py")
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "is broken: line 1: SyntaxError: invalid syntax" in err


def test_an_empty_folder_is_bad_input(told: Any, tmp_path: Any) -> None:
    code, out, err = told(str(tmp_path))
    assert (code, out) == (2, "")
    assert err == f"accel: PACKAGE_OR_FILE='{tmp_path}' contains no .py file; expected: {PACKAGES}\n"


def test_drawing_random_arrays_is_array_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
        def noisy(a, rng): return a + rng.standard_normal(a.shape)
        def sized(a, rng): return a + rng.uniform(0.0, 1.0, size=3)
        def chosen(menu, rng): return menu + rng.choice(menu)
    """
    (tmp_path / "noise.py").write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    functions = functions_of(parse("noise.py"))
    assert {each.qualname: scan(each, frozenset()).array_calls for each in functions} == {
        "noisy": 1,
        "sized": 1,
        "chosen": 0,
    }


def test_the_commands_that_it_prints_work_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my models"
    folder.mkdir()
    (folder / "heat.py").write_text("import numpy as np\ndef step(x): return np.sin(x) + np.cos(x)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["my models/heat.py", "--catalogue", "my models/rows.py"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "doctor 'my models/heat.py' --run PROGRAM" in out
    assert "run with it: accel run --catalogue 'my models/rows.py' PROGRAM" in out
    assert "accel.install(load('my models/rows.py'))" in out
    for module, target in (("heat", "'my models/heat.py:step'"), ("noise_of_nobody", "'my models/heat.py:step'")):
        function = {"module": module, "qualname": "step", "file": str((folder / "heat.py").resolve())}
        assert write._target(function) == target
    monkeypatch.syspath_prepend(str(folder))
    assert write._target(function | {"module": "heat"}) == "heat:step"


def test_the_functions_of_a_script_have_rows_too() -> None:
    row = {"verdict": "row", "main": True, "catalogued": False, "local": False, "target": "go:step"}
    row |= {"module": "go", "qualname": "step", "mutates": False, "outer": True}
    account = {"target": "go.py", "run": "go.py", "functions": [row]}
    first, last = write._next(account, None)
    assert first.startswith("catalogue: accel doctor go.py --catalogue NAME.py --run go.py ")
    assert last.startswith("or without a catalogue: accel run --auto go.py ")
    assert write._row(row, "a test").startswith('Row("__main__", "step", "a test"')
