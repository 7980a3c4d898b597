"""The scaling benchmark: what it counts, what it derives, and a whole run on virtual devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from benchmarks import scaling
from tests.conftest import ROOT
from tests.xla_options import quick_flags

TEXT = """
  %permute.1 = f64[1,240]{1,0} collective-permute(%slice), channel_id=1
  %sum = f64[] all-reduce(%part), channel_id=2
  %mask = pred[2,8]{1,0} collective-permute(%other), channel_id=3
  %not = f64[1,240]{1,0} add(%permute.1, %permute.1)
"""


def test_messages_are_counted_by_their_bytes() -> None:
    assert scaling.sent_by(TEXT) == [1920, 8, 16]


def test_a_large_step_is_derived_from_cells_messages_and_bytes() -> None:
    runs = [{"ms": 2.0, "sends": 0, "bytes": 0}, {"ms": 9.0, "sends": 4, "bytes": 1600}]
    eight, many, _ = scaling.derived((14, 22), {"grid": [10, 100], "runs": runs}, 10.0, 1.0)
    assert (eight["used"], many["used"], eight["halo_kb"], many["halo_kb"]) == (7, 22, 0.352, 0.224)
    assert eight["ms"] == pytest.approx(2e-3 * 2 * 22 + 0.04 + 0.352e-3)
    assert eight["times"] == pytest.approx(2e-3 * 14 * 22 / eight["ms"])
    (prime, *_) = scaling.derived((11, 199), {"grid": [10, 100], "runs": runs}, 10.0, 1.0)
    assert (prime["used"], prime["times"]) == (1, 1.0)  # alone it sends nothing


def test_halos_on_virtual_devices_are_one_row_a_round_each_way(tmp_path) -> None:
    pytest.importorskip("jax")
    out = tmp_path / "scaling.json"
    command = [sys.executable, "-m", "benchmarks.scaling", "--grid", "16x24", "--budget", "0.01", "--out", str(out)]
    environ = {**os.environ, "QD_JAX_QUIET": "1", "XLA_FLAGS": quick_flags()}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=200, env=environ)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(out.read_text())
    runs = result["measured"][0]["runs"]
    assert [run["devices"] for run in runs] == [1, 2, 4, 8]
    assert [(run["sends"], run["bytes"]) for run in runs[1:]] == [(8, 8 * 24 * 8)] * 3
    assert result["predicted_bytes_hold"]
