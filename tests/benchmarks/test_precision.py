"""The precision benchmark, on the toy checkout."""

from __future__ import annotations

import json

from benchmarks import precision


def test_drift_and_times_of_every_precision(toy, tmp_path, capsys):
    out = tmp_path / "result.json"
    assert precision.main(["--pygcm", str(toy), "--steps", "12", "--block", "4", "--out", str(out)]) == 0
    result = json.loads(out.read_text())
    assert result["steps"] == 12 and list(result["drift"]) == ["1", "2", "5", "10", "12"]
    last = result["drift"]["12"]
    assert set(last) == {"one_ulp", "one_ulp32", "float64", "float32", "mixed"}
    assert 0.0 < last["one_ulp"]["T_s"] < 1e-12 < last["one_ulp32"]["T_s"] < 1e-4
    assert last["float64"]["T_s"] < 1e-12 < last["float32"]["T_s"] < 1e-4
    assert set(result["ms_per_step"]) == {"numpy", *last}
    printed = capsys.readouterr().out
    assert "float32 / one_ulp" in printed and "times faster than float64" in printed


def test_bad_input_is_one_line(tmp_path):
    import pytest

    from benchmarks.harness import BadInput

    with pytest.raises(BadInput, match="no folder 'pygcm'"):
        precision.main(["--pygcm", str(tmp_path)])
