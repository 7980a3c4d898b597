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


def _run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QD_")}
    environment |= {"PYTHONPATH": str(ROOT), "QD_JAX_CACHE_DIR": str(folder / "cache"), "QD_JAX_AOT": "0"}
    done = subprocess.run(
        [sys.executable, *args], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done
