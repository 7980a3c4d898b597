"""Libraries that are imported late: their functions have rules from then on."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from accel.rules import rule

ROOT = Path(__file__).resolve().parents[2]

LOCAL_IMPORT = """
import sys, numpy as np, accel
from accel.platform import config
config.set_current(config.Settings(cache_dir=None, ahead_of_time=False))

@accel.accelerate
def smooth(x):
    from scipy.ndimage import gaussian_filter
    return gaussian_filter(x, 1.5) + 1.0

x = np.linspace(0.0, 1.0, 400).reshape(20, 20)
first = smooth(x)
assert "scipy.ndimage" in sys.modules
for _ in range(8):
    assert np.allclose(smooth(x), first, rtol=1e-12)
assert smooth._self_target.ledger.compiled_calls, accel.report()
"""


def test_a_function_may_import_scipy_itself() -> None:
    done = subprocess.run([sys.executable, "-c", LOCAL_IMPORT], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


SLOW = """
import time
from accel.rules import rule
time.sleep(0.01)
rule.RULES[{name!r}] = {name!r}
"""


def test_threads_that_look_at_once_find_the_rows_of_new_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those are imported one after the other, while other threads look, too."""
    names = [f"late{i}" for i in range(12)]
    for name in names:
        (tmp_path / f"table_{name}.py").write_text(SLOW.format(name=name))
        monkeypatch.setitem(sys.modules, name, np)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(rule, "WAITING", {name: f"table_{name}" for name in names})
    monkeypatch.setattr(rule, "RULES", {})
    start, wrong = threading.Barrier(6), []

    def look() -> None:
        start.wait()
        try:
            wrong.extend(name for name in names if rule.lookup(name) is None)
        except Exception as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and rule.WAITING == {}
    for name in names:
        sys.modules.pop(f"table_{name}")
