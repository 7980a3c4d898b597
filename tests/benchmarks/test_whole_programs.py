"""The benchmark of whole programs: what it starts, what it compares, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import whole_programs
from benchmarks.harness import BadInput
from benchmarks.whole_programs import Run

PROGRAM = """
import numpy as np

def run(steps):
    x = np.arange(6.0)
    for _ in range(steps):
        x = 0.5 * (x + x[::-1])
    print("done")
    return {"x": x, "n": steps, "label": "x"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "field").mkdir()
    (tmp_path / "field" / "array.py").write_text(PROGRAM)
    return tmp_path


def made(**changed: Any) -> Run:
    return Run(4.0, 4.0, 4.0, 3, {"x": np.ones(3), "n": 3}, "", "")._replace(**changed)


def test_a_program_runs_as_often_in_each_way_and_gives_the_same(folder: Path) -> None:
    rows = whole_programs.measured("field.array", folder / "field" / "array.py", 0.01, 1)
    assert [row["cache"] for row in rows] == ["cold", "warm"]
    assert all(row["wrong"] == [] and row["rounds"] >= 1 for row in rows), rows
    shown = whole_programs.describe(rows)
    assert "field.array" in shown and "0 wrong" in shown


def test_what_differs_is_named_and_what_is_slow_is_beyond() -> None:
    plain, wrong = made(), made(results={"x": np.zeros(3), "n": 3}, printed="!", wall_s=6.61)
    row = whole_programs.compared("a", "cold", [plain], [wrong])
    assert row["wrong"] == ["x", "what is printed"] and not row["within"]
    assert "1 beyond the budget, 1 wrong: a (cold): x, what is printed" in whole_programs.describe([row])
    assert whole_programs.compared("a", "cold", [plain], [made(wall_s=6.59)])["within"]


def test_on_a_busy_machine_processor_time_counts() -> None:
    plain = made(wall_s=40.0)
    row = whole_programs.compared("a", "warm", [plain], [made(wall_s=400.0)])
    assert row["by"] == "cpu_s" and row["within"] and row["ratio"] == 1.0
    assert "Processor times in 1 of them" in whole_programs.describe([row])


def test_names_and_results() -> None:
    known = whole_programs.programs()
    assert len(known) >= 50 and "fluids.shallow_water" in known
    assert set(whole_programs.chosen(known, ["ising", "shallow_water"])) == {"fluids.shallow_water", "waves.ising"}
    with pytest.raises(BadInput, match="no such program"):
        whole_programs.chosen(known, ["nothing"])
    assert whole_programs.agrees("a", "a") and not whole_programs.agrees("a", "b")
    assert whole_programs.agrees(1.0 + 1e-10, 1.0) and not whole_programs.agrees([1.0], [1.0, 2.0])
