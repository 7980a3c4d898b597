"""`pytest --accel`: what it says of another project's tests, and that it costs nothing where it is not used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

PROJECT = {
    "heat.py": """
import numpy as np
import sys

def smooth(x):
    y = x.copy()
    for _ in range(3):
        y[1:-1] += 0.25 * (y[2:] - 2.0 * y[1:-1] + y[:-2])
    return y

def trimmed(x):
    return np.trim_zeros(x)
""",
    "rows.py": """
from accel.catalogue import Catalogue, Row
CATALOGUE = Catalogue("heat", (Row("heat", "smooth", "a test"), Row("heat", "trimmed", "a test")))
""",
    "test_heat.py": """
import numpy as np, pytest
from heat import trimmed, smooth

def test_smooth():
    for i in range(8):
        x = np.linspace(0.0, 1.0 + i, 10)
        assert smooth(x).shape == x.shape

def test_owns_its_memory():
    assert all(smooth(np.linspace(0.0, 1.0 + i, 10)).flags.owndata for i in range(40))

def test_trimmed():
    for i in range(3):
        assert trimmed(np.linspace(0.0, 1.0, 5)).size == 4

@pytest.mark.xfail
def test_known():
    assert False

@pytest.mark.skip
def test_left_out(): ...
""",
}


def run(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    for name, text in PROJECT.items():
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    if "accel.tools.plugins.pytest_options" not in {
        point.value for point in _points()
    }:  # an installation made before it was there
        command[3:3] = ["-p", "accel.tools.plugins.pytest_options"]
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "QD_", "ACCEL_"))}
    path = os.pathsep.join([str(ROOT), str(folder)])
    environ = {**clean, "PYTHONPATH": path, "QD_JAX_CACHE_DIR": "off", **env}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=300)


def _points() -> list[object]:
    from importlib import metadata

    return list(metadata.entry_points(group="pytest11"))


def test_it_says_what_accel_changes(tmp_path: Path) -> None:
    done = run(tmp_path, "--accel", "--accel-catalogue", "rows.py")
    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "outcomes that accel changed: 1 of 5 tests" in lines
    assert "  test_heat.py::test_owns_its_memory: passed without accel, failed with it" in lines
    assert any(line.startswith("time of the tests: ") for line in lines)
    assert "mismatches with NumPy: none" in lines
    assert any("calls of accelerated functions compiled" in line for line in lines)
    assert any("heat:trimmed: " in line and "[shape.dynamic], " in line for line in lines)


def test_its_workers_hand_their_figures_over_and_all_is_well_where_nothing_changes(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    done = run(tmp_path, "--accel", "--accel-catalogue=rows.py", "-n", "1", "-k", "trimmed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "outcomes that accel changed: none of 1 test" in done.stdout
    assert "0 of 3 calls of accelerated functions compiled" in done.stdout and done.stderr == ""


def test_a_mistake_is_a_usage_error(tmp_path: Path) -> None:
    done = run(tmp_path, "--accel", "--accel-catalogue", "nowhere.py")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "accel: catalogue='nowhere.py' cannot be read" in done.stderr


def test_options_of_its_own_without_it_are_a_usage_error(tmp_path: Path) -> None:
    done = run(tmp_path, "--accel-mode", "verify")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "accel: --accel-mode says how tests run with --accel, which is missing" in done.stderr


UNUSED = """
import sys
import accel.tools.plugins.pytest_options
heavy = {name for name in sys.modules if name.partition(".")[0] in ("numpy", "scipy", "jax", "wrapt", "pytest")}
print(sorted(heavy), sorted(name for name in sys.modules if name.startswith("accel.")))
"""


def test_it_costs_nothing_where_it_is_not_used() -> None:
    done = subprocess.run([sys.executable, "-c", UNUSED], cwd=ROOT, capture_output=True, text=True)
    few = ["platform", *(f"platform.{name}" for name in ("clocks", "ending", "forks", "hidden"))]
    few += ["tools", "tools.plugins", "tools.plugins.pytest_options"]
    assert done.stdout.split(" ", 1) == ["[]", f"{[f'accel.{name}' for name in few]}\n"], done.stderr
