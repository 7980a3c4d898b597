"""Beside other libraries: results are what they are without accel, and both do their work."""

from __future__ import annotations

import cProfile
import os
import pstats
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel.platform.ledger import open_ledger

ROOT = Path(__file__).resolve().parents[3]


def smooth(x: Any) -> Any:
    return 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]


def accelerated(name: str) -> Any:
    return accel.accelerate(smooth, name=name)


def ran(name: str) -> bool:
    """Whether calls were compiled, and nothing went wrong."""
    return open_ledger(name).compiled_calls > 0 and not open_ledger(name).differences


@pytest.mark.usefixtures("foreground")
def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    fast = accelerated("pandas")
    for i in range(8):
        frame = pandas.DataFrame({"a": np.linspace(0.0, 1.0 + i, 50)})
        frame["b"] = 0.0
        frame.loc[1:48, "b"] = fast(frame["a"].to_numpy())
        assert np.allclose(frame["b"][1:-1], smooth(frame["a"].to_numpy()), rtol=1e-12)
        # a Series, by its labels, is pandas' own
        pandas.testing.assert_series_equal(fast(frame["a"]), smooth(frame["a"]))
    assert ran("pandas")


@pytest.mark.usefixtures("foreground")
def test_xarray() -> None:
    xarray = pytest.importorskip("xarray")
    fast = accelerated("xarray")
    for i in range(8):
        array = xarray.DataArray(np.linspace(0.0, 1.0 + i, 50), dims="t", name="x")
        assert np.allclose(fast(array.values), smooth(array.values), rtol=1e-12)
        xarray.testing.assert_identical(fast(array), smooth(array))
        made = xarray.apply_ufunc(fast, array, input_core_dims=[["t"]], output_core_dims=[["u"]])
        assert np.allclose(made.values, smooth(array.values), rtol=1e-12)
    assert ran("xarray")


@pytest.mark.usefixtures("foreground")
def test_numba() -> None:
    numba = pytest.importorskip("numba")

    @numba.njit  # type: ignore[untyped-decorator, unused-ignore]
    def total(x: Any) -> Any:
        found = 0.0
        for each in x:
            found += each
        return found

    def both(x: Any) -> Any:
        return smooth(x) * total(x)

    fast, mixed = accelerated("numba"), accel.accelerate(both, name="both")
    for i in range(8):
        x = np.linspace(0.0, 1.0 + i, 50)
        assert np.isclose(total(fast(x)), total(smooth(x)), rtol=1e-12)
        assert np.allclose(mixed(x), both(x), rtol=1e-12)
    assert ran("numba") and open_ledger("both").compiled_calls == 0
    assert {each.reason for each in open_ledger("both").refusals} <= {"call.opaque", "wait.calls"}


@pytest.mark.usefixtures("foreground")
def test_matplotlib() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    assert matplotlib.__version__
    fast = accelerated("matplotlib")

    def picture(function: Any) -> bytes:
        figure = Figure()
        canvas = FigureCanvasAgg(figure)
        axes = figure.subplots()
        for i in range(6):
            axes.plot(function(np.linspace(0.0, 1.0 + i, 50)))
        canvas.draw()
        return bytes(canvas.buffer_rgba())

    assert picture(fast) == picture(smooth)
    assert ran("matplotlib")


@pytest.mark.usefixtures("foreground")
def test_cprofile() -> None:
    fast = accelerated("profiled")
    with cProfile.Profile() as profile:
        for i in range(8):
            x = np.linspace(0.0, 1.0 + i, 50)
            assert np.allclose(fast(x), smooth(x), rtol=1e-12)
    assert ran("profiled")
    names = {name for _, _, name in pstats.Stats(profile).stats}  # type: ignore[attr-defined]
    assert "smooth" in names


COVERED = """
import numpy as np, accel

@accel.accelerate(name="covered")
def smooth(x):
    y = x * 2.0
    if y.sum() > 1e9:
        y = -y
    return y

for i in range(8):
    assert (smooth(np.ones(5) * i) == 2.0 * i).all()
from accel.platform.ledger import open_ledger
print({each.reason for each in open_ledger("covered").refusals})
"""


def test_coverage_sees_every_line(tmp_path: Path) -> None:
    """With its tracer, calls stay on NumPy. Where it asks Python's monitoring instead, they may be compiled."""
    pytest.importorskip("coverage")
    (tmp_path / "covered.py").write_text(COVERED)
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "QD_JAX_AOT": "0", "QD_JAX_QUIET": "1", "COVERAGE_CORE": "ctrace"}
    for command in (["run", "covered.py"], ["report", "-m"]):
        done = subprocess.run(
            [sys.executable, "-m", "coverage", *command], cwd=tmp_path, env=environ, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        if command[0] == "run":
            assert "environment.traced" in done.stdout
    assert "covered.py" in done.stdout and done.stdout.split()[-2:] != ["0", "100%"]
    line = next(line for line in done.stdout.splitlines() if line.startswith("covered.py"))
    assert line.split()[-1] == "8", line  # the side that was never taken


OTHER_JAX = """
import numpy as np, sys
{before}
import accel

@accel.accelerate
def wave(x):
    return np.sin(x) * 2.0

for i in range(8):
    wave(np.arange(50.0) + i)
assert wave._self_target.ledger.compiled_calls > 0
import jax, jax.numpy as jnp
print(jnp.ones(2).dtype, (jnp.arange(3) / 2).dtype, jax.jit(lambda x: x * 2.0)(1.0).dtype)
print(jax.config.jax_enable_x64, jax.config.jax_default_device, jax.config.read("jax_cpu_enable_async_dispatch"))
print(sorted(name for name in ("NPROC", "XLA_FLAGS") if name in __import__("os").environ))
for i in range(3):
    assert wave(np.arange(50.0) + i).dtype == np.float64
print(jax.grad(lambda x: jnp.sin(x) * x)(2.0).dtype)
"""
USED_BEFORE = "import jax, jax.numpy; jax.numpy.ones(2)"


@pytest.mark.parametrize("before", ["", USED_BEFORE], ids=["after", "before"])
def test_other_jax_code_keeps_its_settings(before: str) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "QD_JAX_AOT": "0", "QD_JAX_QUIET": "1", "QD_JAX_CACHE_DIR": "off"}
    code = OTHER_JAX.format(before=before)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["float32 float32 float32", "False None True", "[]", "float32"]
