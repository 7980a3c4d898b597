"""The doctor's command: what it refuses, and what it says of the next steps."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from accel.tools.inspect.doctor import write
from accel.tools.inspect.doctor.command import main

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


def test_the_functions_of_a_script_have_rows_too() -> None:
    row = {"verdict": "row", "catalogued": False, "local": False, "target": "__main__:step"}
    row |= {"module": "__main__", "qualname": "step"}
    account = {"target": "go.py", "run": "go.py", "inside_s": 1.0, "wall_s": 1.0, "functions": [row]}
    _, second, *_ = write._next(account, "my models/rows.py")
    assert second == "run with it: accel run --catalogue 'my models/rows.py' go.py"
    first, last = write._next(account, None)
    assert first.startswith("catalogue: accel doctor go.py --catalogue NAME.py --run go.py ")
    assert last.startswith("without a catalogue: accel run --auto go.py ")
    assert write._row(row, "a test").startswith('Row("__main__", "step", "a test"')
