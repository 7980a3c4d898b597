"""The benchmark of elementary functions: it checks before it says how fast."""

from __future__ import annotations

import json

import pytest

from benchmarks import elementary
from benchmarks.harness import BadInput


def row(**changes):
    return {"name": "log", "grid": "8x8", "numpy": 1.0, "xla": 6.0, "accel": 2.0, "error": 0.0, **changes}


def test_functions_are_timed_and_agree_with_numpy(tmp_path, capsys):
    out = tmp_path / "elementary.json"
    elementary.main(["--grids", "12x16", "--only", "log", "power", "--rounds", "3", "--out", str(out)])
    rows = json.loads(out.read_text())["rows"]
    assert [each["name"] for each in rows] == ["log", "power"]
    assert all(each["error"] <= elementary.TOLERANCE and each["accel"] > 0 for each in rows)
    assert "XLA / accel" in capsys.readouterr().out


def test_the_worst_row_counts():
    wrong, slow = elementary.goals_of([row(), row(name="cbrt", xla=2.2), row(error=1e-3)])
    assert not wrong.met
    assert not slow.met
    assert "cbrt" in slow.name


def test_an_unknown_function_is_named():
    with pytest.raises(BadInput, match="--only exp: no such function; there are log"):
        elementary.main(["--only", "exp"])
