"""The GPU benchmark, rehearsed on the CPU with a tiny grid."""

from __future__ import annotations

import json

import pytest

from accel.backend import devices
from benchmarks import gpu
from benchmarks.harness import BadInput


def test_the_rehearsal_measures_everything_and_says_that_it_is_one(toy, tmp_path, capsys, foreground):
    out = tmp_path / "result.json"
    given = ["--platform", "cpu", "--pygcm", str(toy), "--grids", "16x24", "--steps", "8", "--budget", "0.01"]
    assert gpu.main([*given, "--out", str(out)]) == 0
    result = json.loads(out.read_text())
    assert result["rehearsal"] and result["goals"] == []
    assert [each["kernel"] for each in result["kernels"]] == [kernel.__name__ for kernel in gpu.KERNELS]
    for each in result["kernels"]:
        assert each["error"] <= gpu.TOLERANCE
        assert all(each[f"{name}_ms"] > 0 for name in ("numpy", "cpu", "device", "device_alone"))
    (moved,), (run,) = result["transfers"], result["runs"]
    assert moved["field_mb"] == pytest.approx(16 * 24 * 8 / 1e6) and moved["there_gb_s"] > 0 < moved["back_gb_s"]
    assert run["paced_ms"] > 0 and run["launches"] >= 0 and run["error"] < 1e-9
    assert "rehearsal: no GPU" in capsys.readouterr().out


def test_a_goal_is_set_for_a_gpu_alone():
    runs = [{"grid": gpu.GOAL_GRID, "times_numpy": 25.0}]
    assert not gpu.goals({"rehearsal": True, "runs": runs})
    assert [goal.met for goal in gpu.goals({"rehearsal": False, "runs": runs})] == [True]


def test_a_device_that_is_not_there_is_bad_input():
    if "tpu" not in devices.platforms():
        with pytest.raises(BadInput, match="--platform tpu: JAX has no such device here; it has"):
            gpu.chosen_platform("tpu")
