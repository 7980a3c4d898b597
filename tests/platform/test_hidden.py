"""Files of the program that have the names of Python's modules: accel does not run them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from accel.platform.hidden import HiddenModules
from tests.processes import Done, without_settings

ROOT = Path(__file__).resolve().parents[2]

STEPS = """
import numpy as np

def step(t):
    return np.maximum(t + 0.5, 0.25)

t = np.zeros(500)
for _ in range(60):
    t = step(t)
print("sum", t.sum())
"""


def run(folder: Path, *words: str, **settings: str) -> Done:
    environment = {**without_settings(), "PYTHONPATH": str(ROOT), "QD_JAX_CACHE_DIR": "off", **settings}
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("script", ["queue.py", "heat.py"])
def test_a_script_runs_once_though_its_name_or_its_neighbour_is_pythons(tmp_path: Path, script: str) -> None:
    (tmp_path / "queue.py").write_text(STEPS)
    (tmp_path / "heat.py").write_text(STEPS)
    done = run(tmp_path, "-m", "accel.run", script)
    assert (done.code, done.out) == (0, "sum 15000.0\n"), done.err
    assert "queue.py hides Python's module queue" in done.err


def test_a_file_that_jax_would_import_is_not_run(tmp_path: Path) -> None:
    if sys.version_info < (3, 13):  # from then on, pathlib imports it: accel cannot be imported beside such a file
        (tmp_path / "glob.py").write_text("print('no part of the program')\n")
    (tmp_path / "html.py").write_text("print('no part of the program')\n")
    (tmp_path / "heat.py").write_text(STEPS)
    done = run(tmp_path, "-m", "accel.run", "heat.py", QD_JAX_POLICY="eager", QD_JAX_AOT="0", QD_JAX_KERNELS="0")
    assert (done.code, done.out) == (0, "sum 15000.0\n"), done.err


def test_the_program_imports_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("import numpy as np\nLENGTH = np.float64(7.0)\n")
    (tmp_path / "heat.py").write_text("import numpy, queue\nprint(queue.LENGTH)\n")
    done = run(tmp_path, "-m", "accel.run", "heat.py")
    assert (done.code, done.out) == (0, "7.0\n"), done.err


def test_asking_where_a_module_is_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wave.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    assert HiddenModules in sys.meta_path, "accel is imported"
    spec = importlib.util.find_spec("wave")
    assert spec is not None and spec.origin == str(tmp_path / "wave.py")
