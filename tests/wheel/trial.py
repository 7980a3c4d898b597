"""Tries an installed accel, in a fresh environment and away from any checkout: `make dist-test` runs this file.

It needs nothing but what the wheel brings.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

HEAT = """
import numpy as np
import accel

@accel.accelerate
def smooth(x):
    return 0.5 * x[1:] + 0.5 * x[:-1]

for i in range(8):
    x = np.linspace(0.0, 1.0 + i, 1000)
    assert np.allclose(smooth(x), 0.5 * x[1:] + 0.5 * x[:-1], rtol=1e-12)
assert '"compiled_calls": 0' not in accel.report("json").split('"reasons"')[0], accel.report()
"""


EXPORT = """
import jax
from jax import export

exported = export.export(jax.jit(lambda x: 2.0 * x))(1.0).serialize()
assert export.deserialize(exported).call(3.0) == 6.0
"""
"""How programs reach other machines: JAX needs a package for it that it does not bring."""


def python(*arguments: str, **env: str) -> str:
    """Run Python as the user would. Returns what it says; fails if it fails."""
    environ = {**os.environ, "QD_JAX_QUIET": "1", **env}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environ)
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def main() -> None:
    """Run all trials in an empty folder."""
    os.chdir(tempfile.mkdtemp())
    import accel
    import pygcm_patch

    package = Path(accel.__file__).parent
    assert "site-packages" in package.parts, package
    assert accel.__version__ == metadata.version("pygcm-accel")
    assert (package / "py.typed").is_file()
    assert list((Path(pygcm_patch.__file__).parent / "miniature").rglob("*.py"))
    points = metadata.entry_points()
    assert "pygcm" in points.select(group="accel.catalogues").names
    assert (
        points.select(group="pytest11", name="accel")["accel"].load().__name__ == "accel.tools.plugins.pytest_options"
    )
    files = [str(each) for each in metadata.files("pygcm-accel") or ()]
    assert not [each for each in files if each.startswith(("tests/", "benchmarks/"))], "tests are not to be installed"

    Path("heat.py").write_text(HEAT, encoding="utf-8")
    quick = {"QD_JAX_AOT": "0", "QD_JAX_CACHE_DIR": "cache"}
    python("heat.py", **quick)
    python("-m", "accel.run", "heat.py", **quick)
    assert "smooth" in python("-m", "accel", "doctor", "heat.py", "--run", "heat.py")
    python("-c", EXPORT)
    assert "effect.print" in python("-m", "accel", "reasons")
    assert "accel: " in python(
        "-m", "accel.run", "--demo", QD_SIM_DAYS="0.05", QD_JAX_CACHE_DIR="cache", QD_JAX_QUIET="0"
    )
    full = python("-m", "accel", "report", "--full", QD_JAX_CACHE_DIR="cache")
    assert "pygcm.dynamics:SpectralModel.time_step" in full, full
    for command in ("", *re.findall(r"^  (\w+) ", python("-m", "accel"), re.MULTILINE)):
        said = python("-m", "accel", *command.split(), "--help")
        pointing = re.findall(r"\bdocs/\S+|CONTRIBUTING|\.\./\S+", said)
        assert not pointing, f"{command} points to files that are not there: {pointing}"
    pages = re.findall(r"^([\w-]+)  +\S", python("-m", "accel", "docs"), re.MULTILINE)
    assert {"settings", "tutorial", "report"} <= {*pages}, pages
    assert "QD_JAX_CACHE_DIR" in python("-m", "accel", "docs", "settings")
    assert f"accel         {accel.__version__}, in {package}" in python("-m", "accel", "info")
    script = [Path(sys.executable).with_name("accel"), "--version"]
    assert subprocess.run(script, capture_output=True, text=True).stdout == f"accel {accel.__version__}\n"
    print(f"accel {accel.__version__} works on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
