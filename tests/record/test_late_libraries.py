"""Libraries that are imported late: their functions have rules from then on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LOCAL_IMPORT = """
import sys, numpy as np, accel
from accel import config
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
