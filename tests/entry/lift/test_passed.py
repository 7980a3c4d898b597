"""Functions that a program hands on: which they are, and that they are accelerated before a solver holds them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from accel.entry.lift.lifting import lifted_module_code
from accel.entry.lift.passed import passed_functions
from tests.processes import ROOT, without_settings

BEGIN = """\
import model, package.inner as inner
from model import step, LIMIT as limit
from .beside import close

def rhs(t, y): return y

@decorated
def other(t): return t

class Chain:
    def slope(self, t): return t
    def __len__(self): return 1
"""


@pytest.mark.parametrize(
    ("use", "found"),
    [
        ("solve(rhs, 0.0)", [(None, "rhs")]),
        ("table = {'a': rhs, 'b': step}", [(None, "rhs"), ("model", "step")]),
        ("def main(chain): return solve(fun=chain.slope)", [(None, "Chain.slope")]),
        ("map(model.step, inner.runs)", [("model", "step"), ("package.inner", "runs")]),
        ("close.far(close)", [(".beside", "close")]),
        ("x = 2 * limit", [("model", "LIMIT")]),
        ("rhs(0.0, step(1.0)).slope.real", []),
        ("def main(a: rhs) -> step: b: rhs = 1.0", []),
        ("@step\ndef main(): other.name", []),
        ("solve(other, Chain, unknown.slope.real)", []),
        ("rhs = 3", []),
    ],
)
def test_what_is_handed_on(use: str, found: list[tuple[str | None, str]]) -> None:
    tree = ast.parse(BEGIN + use)
    passed = passed_functions(tree)
    assert [(each.module, each.qualname) for each in passed] == found
    assert all(each.after in tree.body for each in passed)


def told_by(text: str, path: Path) -> tuple[CodeType, CodeType, list[Any]]:
    """A script's code, the same where functions are told of that it hands on, and what was told as that ran."""
    path.write_text(text)
    told: list[Any] = []
    names: dict[str, Any] = {"told": told}
    code = compile(text, str(path), "exec", dont_inherit=True)
    made = lifted_module_code(code, (), lambda module, name: told.append((module, name, name in names))).code
    exec(made, names)
    return code, made, told


def lines_of(code: CodeType) -> list[int | None]:
    lines = [line for *_, line in code.co_lines()]
    return [line for line, before in zip(lines, [None, *lines], strict=False) if line != before]


def test_it_is_told_of_once_it_is_bound(tmp_path: Path) -> None:
    text = (
        '"""Text."""\nfrom __future__ import annotations\nfrom math import sin\n\n\ndef halved(x: unknown) -> None:\n'
        "    return x / 2\n\n\ntold.append(list(map(halved, [2, 4])))\ntold.append(sum(map(sin, [0.0])))\n"
    )
    code, made, told = told_by(text, tmp_path / "script.py")
    assert told == [("math", "sin", True), (None, "halved", True), [1.0, 2.0], 0.0]
    assert lines_of(made) == lines_of(code)  # coverage tools see no other


SCRIPT = """\
from itertools import accumulate, repeat
import numpy as np
from scipy.integrate import solve_ivp
from model import decay, RATE


class Chain:
    def rhs(self, t, y):
        return np.sin(y) * np.cos(2 * y) - 0.1 * y * np.sqrt(np.abs(y) + 2.0)


def step(e, dt):
    return e + dt * (np.sin(e) * np.roll(e, 1) - e**2 * np.cos(e))


TABLE = {"step": step}
start = np.linspace(0.0, 1.0, 20_000)
for e in accumulate(repeat(0.01, 400), TABLE["step"], initial=start):
    pass
print(f"{e.sum():.9f}", step is TABLE["step"], step.__name__)
print(f"{solve_ivp(Chain().rhs, (0, 20.0), start, rtol=1e-6).y[:, -1].sum():.6f}")
print(f"{solve_ivp(decay, (0, 20.0), start, args=(RATE,), rtol=1e-6).y[:, -1].sum():.6f}")
try:
    list(map(decay, [0.0], ["x"], [1.0]))
except Exception as error:
    print(type(error).__name__, error)
"""

MODEL = """\
import numpy as np

RATE = 0.2


def decay(t, y, rate):
    return rate * np.sin(y) * np.exp(-y * y) - 0.05 * y * np.cos(y)
"""


def test_what_a_solver_holds_is_accelerated(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "model.py").write_text(MODEL)
    env = {**without_settings(), "QD_JAX_CACHE_DIR": str(tmp_path / "cache"), "QD_JAX_LOG": "info"}
    env["PYTHONPATH"] = str(ROOT)
    plain, said = (
        subprocess.run([sys.executable, *options, "script.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
        for options in ([], ["-m", "accel", "run", "--auto"])
    )
    assert plain.returncode == said.returncode == 0, said.stderr
    assert said.stdout == plain.stdout
    for name in ("__main__:step", "__main__:Chain.rhs", "model:decay"):
        assert f"{name} is accelerated: it is handed on" in said.stderr
    assert "RATE" not in said.stderr
