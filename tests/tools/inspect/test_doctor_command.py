"""The doctor's command: the files that it reads, what it refuses, and what it says of the next steps."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from accel.tools.inspect.doctor import write
from accel.tools.inspect.doctor.command import main
from accel.tools.inspect.sources import functions_of, parse, sources_of

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


def test_a_file_without_a_package_around_it_has_the_name_that_imports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spaced" / "inner").mkdir(parents=True)
    (tmp_path / "spaced" / "inner" / "model.py").write_text("def step(): pass\n")
    monkeypatch.chdir(tmp_path)
    assert [source.module for source in sources_of("spaced/inner/model.py")] == ["model"]
    monkeypatch.syspath_prepend(tmp_path)
    assert [source.module for source in sources_of("spaced/inner/model.py")] == ["spaced.inner.model"]
    assert [source.module for source in sources_of("spaced")] == ["spaced.inner.model"]


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
        try:
            code: Any = main(args)
        except SystemExit as ended:
            code = ended.code
        out, err = capsys.readouterr()
        assert not {name for name in sys.modules if name.split(".")[0] == "climate"}, "the program was imported"
        return code, out, err

    return run


PROGRAMS = "a module such as scripts.run_simulation, a script, a folder or zip file with __main__.py, -c CODE, or -"
PACKAGES = "a package or module that python -m would find, a folder, or a .py file"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("", "the following arguments are required: PACKAGE_OR_FILE"),
        ("weather", f"PACKAGE_OR_FILE='weather' does not exist; expected: {PACKAGES}"),
        ("sys", f"PACKAGE_OR_FILE='sys' is not written in Python; expected: {PACKAGES}"),
        ("climate --format xml", "argument --format: invalid choice: 'xml'"),
        ("climate --run weather", f"--run='weather' does not exist; expected: {PROGRAMS}"),
        ("climate", f"--run='' is missing its program; expected: {PROGRAMS}, or module:callable"),
        ("climate --run", f"--run='' is missing its program; expected: {PROGRAMS}, or module:callable"),
        ("climate --catalogue a-b.py",
         "--catalogue='a-b.py' cannot be imported as a module; expected: a name such as heat_rows.py"),
        ("climate --catalogue climate/run.py",
         "--catalogue='climate/run.py' exists already; expected: the name of a new file"),
        ("climate --catalogue none/rows.py", "--catalogue='none/rows.py' cannot be written; "
         "expected: a file in a folder that exists and is writable"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(told: Any, args: str, says: str) -> None:
    code, out, err = told(*args.split())
    assert (code, out) == (2, "") and err.startswith(f"accel: {says}") and err.count("\n") == 1


def test_a_single_file_that_is_broken_is_bad_input(told: Any) -> None:
    code, out, err = told("climate/broken.py")
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "is broken: line 1: SyntaxError: invalid syntax" in err


def test_an_empty_folder_is_bad_input(told: Any, tmp_path: Any) -> None:
    code, out, err = told(str(tmp_path))
    assert (code, out) == (2, "")
    assert err == f"accel: PACKAGE_OR_FILE='{tmp_path}' contains no .py file; expected: {PACKAGES}\n"


def test_the_commands_that_it_prints_work_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my models"
    folder.mkdir()
    (folder / "heat.py").write_text("import numpy as np\ndef step(x): return np.sin(x) + np.cos(x)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for module, target in (("heat", "'my models/heat.py:step'"), ("noise_of_nobody", "'my models/heat.py:step'")):
        function = {"module": module, "qualname": "step", "file": str((folder / "heat.py").resolve())}
        assert write._target(function) == target
    monkeypatch.syspath_prepend(str(folder))
    assert write._target(function | {"module": "heat"}) == "heat:step"


def test_the_functions_of_a_script_have_rows_too() -> None:
    row = {"verdict": "row", "main": True, "catalogued": False, "local": False, "target": "go:step"}
    row |= {"module": "go", "qualname": "step", "mutates": False, "outer": True}
    account = {"target": "go.py", "run": "go.py", "functions": [row]}
    _, second, *_ = write._next(account, "my models/rows.py")
    assert second == "run with it: accel run --catalogue 'my models/rows.py' go.py"
    first, last = write._next(account, None)
    assert first.startswith("catalogue: accel doctor go.py --catalogue NAME.py --run go.py ")
    assert last.startswith("without a catalogue: accel run --auto go.py ")
    assert write._row(row, "a test").startswith('Row("__main__", "step", "a test"')
