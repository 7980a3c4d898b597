"""The benchmark of single functions: all rivals right, figures for each, tables and plots."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from benchmarks import functions, goal_table, harness, plots
from benchmarks.harness import BadInput

ROW = {"function": "f", "state": "compiled", "reasons": [], "wrong": {}, "jax_forms_ms": {"a": 1.0}, "numba_ms": None}


def row(points: int, grid: str = "121x240", **ms: float) -> dict:
    times = {"numpy_ms": 8.0, "accel_ms": 2.0, "program_ms": 1.5, "jax_ms": 1.0} | ms
    speedup = times["numpy_ms"] / times["accel_ms"]
    against = times["program_ms"] / times["jax_ms"]
    return ROW | {"grid": grid, "points": points, "speedup": speedup, "against_jax": against} | times


@pytest.mark.skipif(not (harness.MINIATURE / "scripts" / "world.py").is_file(), reason="the miniature is not there")
def test_every_rival_agrees_with_numpy_on_the_miniature(tmp_path):
    """In a process of its own: it imports the miniature's packages."""
    out = tmp_path / "result.json"
    names = ["_laplacian_sphere", "_hyperdiffuse", "_advect", "gaussian_filter", "step"]
    command = [sys.executable, "-m", "benchmarks.functions", "--only", *names, "--grids", "19x36", "--budget", "0.01"]
    done = subprocess.run(
        [*command, "--out", str(out)],
        cwd=harness.REPOSITORY,
        env={**os.environ, "QD_JAX_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(out.read_text())
    assert [entry["function"] for entry in result["rows"]] == names
    for entry in result["rows"]:
        assert entry["wrong"] == {}
        assert min(entry["numpy_ms"], entry["accel_ms"]) > 0.0
        if entry["function"] != "step":
            assert min(entry["program_ms"], entry["jax_ms"]) > 0.0
    assert "| _advect" in done.stdout
    if plots.importlib.util.find_spec("matplotlib"):
        assert {path.name for path in tmp_path.glob("*.png")} == {"result-time.png", "result-speedup.png"}


def test_slopes_are_of_log_time_against_log_points():
    rows = [row(100, numpy_ms=1.0, accel_ms=3.0), row(10_000, numpy_ms=100.0, accel_ms=30.0)]
    found = functions.slopes(rows)["f"]
    assert found["numpy"] == pytest.approx(1.0)
    assert found["accel"] == pytest.approx(0.5)
    assert "numba" not in found


def test_one_grid_has_no_slope():
    assert functions.slopes([row(100)]) == {}
    assert functions.slopes_table({}) == ""


def test_the_goal_counts_on_its_own_grid_only():
    rows = [row(100, "31x60", program_ms=9.0), row(29_040, goal_table.PEER_GRID, program_ms=1.05)]
    (goal,) = functions.goals(rows)
    assert (goal.measured, goal.limit, goal.met) == (pytest.approx(1.05), 1.1, True)
    assert goal.name.endswith("(f)")


def test_wrong_results_are_told():
    wrong = row(100) | {"wrong": {"accel": "off by 0.5 of the largest magnitude"}, "accel_ms": None, "speedup": None}
    shown = {"cpu": "a processor", "cores": 2}
    result = {"program": "p", "machine": shown, "rows": [wrong], "slopes": {}, "goals": [], "versions": {}}
    text = functions.describe(result)
    assert "WRONG f 121x240 accel: off by 0.5 of the largest magnitude" in text
    assert "numba is not installed: its column is empty" in text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--only", "sing"], "--only sing: no such function; there are _laplacian_sphere, "),
        (["--grids", "3x4"], "--grid '3x4': expected NLATxNLON"),
        (["--pygcm", "/nowhere"], "--pygcm /nowhere: no folder 'pygcm' there"),
        (["--out", "/nowhere/x.json"], "--out /nowhere/x.json: its folder does not exist"),
    ],
)
def test_bad_input_is_named(arguments, text):
    with pytest.raises(BadInput, match=text):
        functions.main(arguments)
