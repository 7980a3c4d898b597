"""Whole programs: their output under `accel.run` is that of plain Python, byte for byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

PROGRAM = """
import logging, sys
import numpy as np
from model import Model

handler = logging.StreamHandler(sys.stdout)
handler.setFormatter(logging.Formatter("%(levelname)s %(funcName)s:%(lineno)d %(message)s"))
logging.getLogger("model").addHandler(handler)  # the root logger's would show JAX's own records, too
logging.getLogger("model").setLevel(logging.INFO)
model = Model()
for n in range(120):
    if n % 40 == 0:
        print("before", n)
    model.step()
print("end", f"{model.x.sum():.6f}", file=sys.stderr)
"""

MODEL = """
import logging
import numpy as np

log = logging.getLogger(__name__)


class Model:
    def __init__(self):
        self.n, self.x = 0, np.linspace(0.0, 1.0, 40000)

    def step(self):
        self.n += 1
        self.x = np.sin(self.x) + 0.5 * np.cos(self.x) ** 2
        log.debug("never %s", self.x)
        if self.n % 10 == 0:
            print(f"step {self.n}: {self.x.mean():.4f}", self.x[:3])
            log.info("at most %.3e", self.x.max())
"""

ROWS = """
from accel.catalogue import Catalogue, Row
CATALOGUE = Catalogue("model", (Row("model", "Model.step", "all of it"),))
"""


def test_the_output_of_a_script(tmp_path: Path) -> None:
    for name, text in (("script.py", PROGRAM), ("model.py", MODEL), ("rows.py", ROWS)):
        (tmp_path / name).write_text(text)
    report = tmp_path / "report.json"
    run = ("-m", "accel.run", "--catalogue", "rows.py", "--report", str(report))
    plain = _run(tmp_path, "script.py")
    for _ in range(2):  # the second finds its programs on disk
        fast = _run(tmp_path, *run, "script.py")
        assert fast.stdout == plain.stdout
        assert fast.stderr.startswith(plain.stderr)
    text = report.read_text()
    assert "effect.print" not in text and '"compiled"' in text


CLOCKS = """
import time
import numpy as np

now = [0.0]

def frozen():
    return now[0]

def step(x):
    now[0] += 0.5
    return np.sqrt(x * x + 1.0) * 0.5

x = np.ones(40000)
for name in ("perf_counter", "monotonic", "process_time", "thread_time", "time", "sleep"):
    setattr(time, name, frozen)
for n in range(120):
    x = step(x)
print(x[0], time.perf_counter(), time.monotonic())
"""


def test_a_program_that_replaces_the_clocks(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(CLOCKS)
    assert _run(tmp_path, "-m", "accel.run", "script.py").stdout == _run(tmp_path, "script.py").stdout


WARNINGS = """
import warnings
import numpy as np

def step(x, n):
    if n % 40 == 7:
        warnings.warn("of its caller", stacklevel=2)
    if n % 40 == 8:
        warnings.warn("of the caller of that", DeprecationWarning, 3)
    return np.sqrt(x * x + 1.0) * 0.5

def twice(x, n):
    x = step(x, n)
    return step(x, n)

def thrice(x, n):
    for k in range(3):
        x = step(x, n)
        if n % 40 == 9 and k == 1:
            warnings.warn("in a loop", stacklevel=2)
    return x

def main():
    x = np.ones(40000)
    for n in range(200):
        x = twice(x, n)
        x = thrice(x, n)
        if n % 40 == 10:
            warnings.warn("of who calls main", RuntimeWarning, stacklevel=2)
    warnings.warn("of nobody", RuntimeWarning, stacklevel=9)
    print(x[0])

main()
"""


def test_warnings_name_lines_of_callers(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(WARNINGS)
    plain = _run(tmp_path, "script.py")
    for _ in range(2):  # the second finds its programs on disk
        fast = _run(tmp_path, "-m", "accel.run", "script.py")
        assert fast.stdout == plain.stdout
        assert fast.stderr.startswith(plain.stderr)


def test_records_name_callers(tmp_path: Path) -> None:
    script = WARNINGS.replace("import warnings", "import logging, sys").replace("warnings.warn(", "log.warning(")
    script = script.replace(", DeprecationWarning, 3)", ", stacklevel=3)").replace("RuntimeWarning, ", "")
    form = "%(filename)s:%(lineno)d %(funcName)s %(message)s"
    setup = f"log = logging.getLogger('it')\nlogging.basicConfig(format='{form}', stream=sys.stdout)\n"
    (tmp_path / "script.py").write_text(script.replace("def step", setup + "\ndef step", 1))
    plain = _run(tmp_path, "script.py")
    for _ in range(2):
        assert _run(tmp_path, "-m", "accel.run", "script.py").stdout == plain.stdout


def _run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QD_")}
    environment |= {"PYTHONPATH": str(ROOT), "QD_JAX_CACHE_DIR": str(folder / "cache"), "QD_JAX_AOT": "0"}
    done = subprocess.run(
        [sys.executable, *args], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done
