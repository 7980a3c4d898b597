"""The end-to-end benchmark, on a toy checkout, on the miniature and, where it is, on the real model."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import end_to_end, fields, harness

FIELDS = {"u", "v", "h", "T_s", "q", "cloud_cover", "h_ice", "uo", "vo", "eta", "Ts"}
needs_miniature = pytest.mark.skipif(
    not (harness.MINIATURE / "scripts" / "run_simulation.py").is_file(), reason="the miniature is not there"
)
needs_model = pytest.mark.skipif("QD_PYGCM_PATH" not in os.environ, reason="QD_PYGCM_PATH names no checkout")


def measured(tmp_path, *arguments):
    """Run the benchmark with two NumPy children, unless told otherwise, and return its JSON."""
    out = tmp_path / "result.json"
    assert end_to_end.main(["--candidate", "numpy", "--out", str(out), *map(str, arguments)]) == 0
    return json.loads(out.read_text())


def test_equal_children_give_equal_fields_and_complete_json(toy, tmp_path, capsys):
    result = measured(tmp_path, "--pygcm", toy, "--steps", 25)
    assert result["fields"] == {"u": 0.0, "T_s": 0.0, "Ts": 0.0}
    assert result["other_bits"] == {"u": 0, "T_s": 0, "Ts": 0}
    assert result["steps"] == 25
    assert result["ratio"] == pytest.approx(result["numpy_ms_per_step"] / result["accel_ms_per_step"])
    means = result["numpy_mean_ms_per_step"] / result["accel_mean_ms_per_step"]
    assert result["mean_ratio"] == pytest.approx(means)
    assert result["jax_mb"] > 10
    assert result["report"] is None
    assert {"machine", "versions", "settings", "goals"} <= result.keys()
    assert list(result["growth"]) == ["1", "2", "5", "10", "20", "25"]
    for child in ("numpy", "accel"):
        assert 0 < result[f"{child}_steps_s"] < result[f"{child}_wall_s"]
        assert result[f"{child}_longest_step_ms"] >= result[f"{child}_mean_ms_per_step"]
        assert result[f"{child}_peak_rss_mb"] > 10
    assert "MISSED" in capsys.readouterr().out


def test_elements_with_other_bits_are_counted():
    x = np.array([[0.0, 1.0, np.nan], [3.0, -0.0, np.inf]])
    moved = x.copy()
    moved[0, 0], moved[1, 0] = -0.0, np.nextafter(3.0, 4.0)
    assert fields.differing_elements(x, x.copy()) == 0
    assert fields.differing_elements(x, moved) == 2
    assert fields.differing_elements(x, x.astype(np.float32)) == fields.differing_elements(None, x) == 6


def test_the_checkout_stays_clean(toy, tmp_path):
    before = sorted(toy.rglob("*"))
    measured(tmp_path, "--pygcm", toy, "--steps", 3)
    assert sorted(toy.rglob("*")) == before


def test_days_give_the_number_of_steps(toy, tmp_path):
    result = measured(tmp_path, "--pygcm", toy, "--days", 0.05, "--block", 5)
    assert (result["steps"], result["settings"]["QD_SIM_DAYS"]) == (12, "0.05")


def test_drift_compares_with_one_ulp(toy, tmp_path):
    result = measured(tmp_path, "--pygcm", toy, "--drift", "--steps", 30)
    entry = result["drift"]["30"]["T_s"]
    assert entry["accel"] == entry["ratio"] == 0.0
    assert 0.0 < entry["one_ulp"] < 1e-12
    assert result["growth_one_ulp"].keys() == result["growth"].keys()


def test_resync_hands_the_state_over_exactly(toy, tmp_path):
    result = measured(tmp_path, "--pygcm", toy, "--resync", "--drift", "--steps", 30, "--block", 1)
    assert set(result["fields"].values()) == {0.0}
    assert set(result["other_bits"].values()) == {0}
    assert 0.0 < result["drift"]["block"]["T_s"]["one_ulp"] < 1e-15


def test_the_grid_is_overridden_from_outside(toy, tmp_path):
    small = measured(tmp_path, "--pygcm", toy, "--steps", 2)
    large = measured(tmp_path, "--pygcm", toy, "--steps", 2, "--grid", "900x1200")
    assert large["numpy_steps_s"] > 10 * small["numpy_steps_s"]


def test_a_warm_cache_is_filled_by_a_run_before(toy, tmp_path):
    result = measured(tmp_path, "--pygcm", toy, "--steps", 4, "--warm")
    assert result["cache"] == "warm"
    assert result["wall_ratio"] == pytest.approx(result["numpy_wall_s"] / result["accel_wall_s"])
    assert "240 steps with the disk cache of an earlier run: faster by" in {goal["name"] for goal in result["goals"]}


def test_the_longest_pause_is_beyond_numpys_same_step():
    assert end_to_end.longest_pause([1.0, 5.0, 1.0], [1.5, 5.1, 0.5]) == pytest.approx(0.5)
    assert end_to_end.longest_pause([1.0], [0.5]) == 0.0


def test_a_child_that_fails_is_quoted(toy, capsys):
    arguments = ["--pygcm", str(toy), "--steps", "20", "--candidate", "numpy", "--env", "TOY_FAIL_AT=13"]
    assert end_to_end.main(arguments) == 1
    assert "ArithmeticError: the toy broke" in capsys.readouterr().err


def test_files_of_the_checkout_are_found_from_the_scratch_folder(toy):
    (toy / "data").mkdir()
    (toy / "data" / "relief.nc").touch()
    options = end_to_end.parser().parse_args(["--env", "QD_TOPO_NC=data/relief.nc", "--env", "QD_OTHER=data/none.nc"])
    settings = end_to_end.child_settings(options, toy)
    assert settings["QD_TOPO_NC"] == str(toy / "data" / "relief.nc")
    assert settings["QD_OTHER"] == "data/none.nc"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--pygcm", "/nowhere"], "error: --pygcm /nowhere: no folder 'pygcm' there"),
        (["--grid", "3x4"], "error: --grid '3x4': expected NLATxNLON"),
        (["--env", "QD_ENERGY_W"], "error: --env 'QD_ENERGY_W': expected NAME=VALUE"),
        (["--env", "QD_DT_SECONDS=fast"], "error: --env QD_DT_SECONDS=fast: expected seconds"),
        (["--out", "/nowhere/x.json"], "error: --out /nowhere/x.json: its folder does not exist"),
        (["--days", "0"], "argument --days: 0 is not above 0"),
        (["--frobnicate"], "unrecognized arguments: --frobnicate"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(toy, arguments, text):
    given = arguments if "--pygcm" in arguments else ["--pygcm", str(toy), *arguments]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.end_to_end", *given],
        cwd=harness.REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert text in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@needs_miniature
def test_the_miniature_runs_twice_alike(tmp_path):
    result = measured(tmp_path, "--grid", "19x36", "--steps", 6)
    assert set(result["fields"]) == FIELDS
    assert set(result["fields"].values()) == {0.0}


@needs_miniature
def test_the_miniature_agrees_under_accel(tmp_path):
    pytest.importorskip("accel.dispatch")
    result = measured(tmp_path, "--grid", "19x36", "--steps", 12, "--candidate", "accel", "--resync", "--block", 3)
    assert max(result["fields"].values()) < 1e-6
    assert result["report"]["schema"] == 2


@needs_model
def test_the_real_model_agrees_under_accel(tmp_path):
    pytest.importorskip("accel.dispatch")
    checkout = os.environ["QD_PYGCM_PATH"]
    result = measured(
        tmp_path,
        "--pygcm",
        checkout,
        "--steps",
        40,
        "--candidate",
        "accel",
        "--resync",
        "--block",
        1,
        "--grid",
        "31x60",
    )
    assert set(result["fields"]) == FIELDS
    assert max(result["fields"].values()) < 1e-6
