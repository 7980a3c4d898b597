"""`accel run --ensemble`: the file that says how members differ, their loop, and refusals of one line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from accel.platform.config import SettingError
from accel.tools.cli.commandline import parse
from accel.tools.cli.joining import Joining
from tests.tools.cli.bench import Bench, Done

pytest.importorskip("jax")

FLAT = """
import numpy as np
u, k = np.arange(4.0), 0.5
for n in range(5):
    u = u - 0.1 * k * u + n
print("sum", u.sum())
"""

SEVERAL = """
import numpy as np
names = []
for name in ("a", "b"):
    names.append(name)

def main():
    from heat import Plate
    plate = Plate()
    for n in range(4):
        plate.step(0.1)
    plate.run(3)
    print(len(names), plate.T.sum())

main()
"""

HEAT = """
import numpy as np

class Plate:
    def __init__(self):
        self.T = np.ones(3)
    def step(self, dt):
        self.T = self.T * (1.0 - dt)
    def run(self, rounds):
        for n in range(rounds):
            self.step(0.5)
"""

PERTURB = "def perturb(state, member, rng):\n    state['{name}'] += member\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ensemble")
    files = {"flat.py": FLAT, "several.py": SEVERAL, "heat.py": HEAT, "u.py": PERTURB.format(name="u")}
    files["broken.py"], files["lacks.py"] = "1 / 0\n", "x = 1\n"
    files["main.py"] = PERTURB.format(name="plate.T") + "LOOP = 'main'\n"
    files["module.py"] = PERTURB.format(name="self.T") + "LOOP = 'heat:Plate.run'\n"
    files["late.py"] = PERTURB.format(name="u") + "BEGIN = 0\n"
    files["loop.py"] = PERTURB.format(name="u") + "LOOP = 2.5\n"
    files["v.py"] = PERTURB.format(name="v")
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def run(bench: Bench, folder: Path, *args: str) -> Done:
    return bench.accel(*args, cwd=str(folder))


def test_members_of_a_script_are_saved(bench: Bench, folder: Path) -> None:
    plain = bench.python("flat.py", cwd=str(folder))
    done = run(bench, folder, "--ensemble", "3", "--perturb", "u.py", "--members", "flat.npz", "flat.py")
    assert (done.code, done.out) == (0, plain.out)
    assert f"accel: 3 members of __main__:4, 5 iterations: {folder / 'flat.npz'}\n" in done.err
    assert "s, 3 members beside the program included. " in done.err and "accel compile" not in done.err
    with np.load(folder / "flat.npz") as saved:
        u = np.arange(4.0) + np.arange(3.0)[:, None]
        for n in range(5):
            u = u - 0.05 * u + n
        np.testing.assert_allclose(saved["u"], u, rtol=1e-13)


@pytest.mark.parametrize(
    ("name", "state", "factor"), [("main", "plate.T", 0.9**4), ("module", "self.T", 0.9**4 * 0.5**3)]
)
def test_the_file_names_the_loop(bench: Bench, folder: Path, name: str, state: str, factor: float) -> None:
    file = f"{name}.npz"
    done = run(bench, folder, "--quiet", "--ensemble", "2", "--perturb", f"{name}.py", "--members", file, "several.py")
    assert (done.code, done.err) == (0, "")
    with np.load(folder / file) as saved:
        start = np.array([1.0, 2.0]) if name == "main" else np.array([1.0, 1.0 + 1.0 / 0.9**4])
        np.testing.assert_allclose(saved[state], np.repeat(start[:, None], 3, axis=1) * factor, rtol=1e-13)


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["--perturb", "u.py"], "--perturb='u.py' has no effect on its own; expected: --ensemble as well"),
        (["--ensemble", "2"], "--ensemble=2 has equal members on its own; expected: --perturb FILE.py as well"),
        (["--mode", "off", "--ensemble", "2", "--perturb", "u.py"], "--ensemble=2 needs JAX; expected: QD_USE_JAX=1"),
        (["--ensemble", "2", "--perturb", "no.py"], "--perturb='no.py' cannot be read (FileNotFoundError: "),
        (["--ensemble", "2", "--perturb", "broken.py"], "--perturb='broken.py' cannot be read (ZeroDivisionError"),
        (["--ensemble", "2", "--perturb", "lacks.py"], "--perturb='lacks.py' defines no function perturb; "),
        (["--ensemble", "2", "--perturb", "late.py"], "BEGIN=0 cannot be used; expected: an integer from 1 on"),
        (["--ensemble", "2", "--perturb", "loop.py"], "LOOP=2.5 cannot be used; expected: a line, "),
        (["--ensemble", "2", "--perturb", "u.py", "--members", "u.txt"], "--members='u.txt' has an unknown suffix"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_bad_input_is_told_before_the_program_starts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], line: str
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(SettingError, match=re.escape(line)) as caught:
        options = parse([*args, "flat.py"]).ensemble
        assert options is not None
        Joining(options, quiet=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("perturb", "script", "line"),
    [
        ("u.py", "several.py", "LOOP=None names several loops; expected: one of the lines 4 (<module>), 10 (main)\n"),
        ("module.py", "flat.py", "no ensemble: the loop that module.py names made no iteration, or fewer than BEGIN\n"),
        ("v.py", "flat.py", "no ensemble of __main__:4 after iteration 0: "),
    ],
)
def test_what_cannot_be_is_one_line(bench: Bench, folder: Path, perturb: str, script: str, line: str) -> None:
    done = run(bench, folder, "--quiet", "--ensemble", "2", "--perturb", perturb, script)
    assert done.code == 2
    assert done.err.startswith(f"accel: {line}")
    assert done.err.count("\n") == 1
    assert (done.out == "") is ("made no iteration" not in line)
