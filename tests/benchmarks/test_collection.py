"""The runner of a public collection, on a collection of two kernels that has npbench's layout."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import numpy as np
import pytest

from benchmarks import collection
from benchmarks.harness import BadInput

FILES = {
    "npbench/__init__.py": "",
    "npbench/benchmarks/steps/steps.py": """
        import numpy as np

        def initialize(N):
            return np.random.default_rng(1).random((N, N))
    """,
    "npbench/benchmarks/steps/steps_numpy.py": """
        def kernel(TSTEPS, A):
            for _ in range(TSTEPS):
                A[1:-1] = 0.25 * (A[:-2] + 2.0 * A[1:-1] + A[2:])
    """,
    "npbench/benchmarks/broken/broken_numpy.py": "raise ImportError('the collection broke')",
}
ABOUT = {
    "steps": {
        "relative_path": "steps",
        "module_name": "steps",
        "func_name": "kernel",
        "parameters": {"S": {"TSTEPS": 3, "N": 8}, "M": {"TSTEPS": 40, "N": 200}},
        "init": {"func_name": "initialize", "input_args": ["N"], "output_args": ["A"]},
        "input_args": ["TSTEPS", "A"],
    },
    "broken": {"relative_path": "broken", "module_name": "broken", "func_name": "kernel", "parameters": {}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection in npbench's layout."""
    about = {f"bench_info/{name}.json": json.dumps({"benchmark": entry}) for name, entry in ABOUT.items()}
    for name, text in (FILES | about).items():
        path = tmp_path / "collection" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return tmp_path / "collection"


def test_each_kernel_is_measured_or_says_why_not(folder, tmp_path, capsys):
    out = tmp_path / "collection.json"
    assert collection.main(["--npbench", str(folder), "--budget", "0.1", "--out", str(out)]) == 0
    result = json.loads(out.read_text())
    (row,) = result["kernels"]
    assert (row["kernel"], row["n"], row["state"], row["wrong"]) == ("steps", "M", "compiled", [])
    assert row["ratio"] == pytest.approx(row["numpy_ms"] / row["accel_ms"])
    assert result["geometric_mean_compiled"] == pytest.approx(row["ratio"])
    assert result["failed"] == {"broken": "ImportError: the collection broke"}
    assert "- broken: no figure: ImportError: the collection broke" in capsys.readouterr().out
    assert not list(folder.rglob("*.pyc"))


def test_arguments_change_together_and_keep_their_types():
    given = (3, np.ones(4, np.float32), np.full(2, 1j), np.arange(3))
    steps, single, double, whole = collection.scaled(given, np.random.default_rng(1))
    assert (steps, single.dtype, double.dtype) == (3, np.float32, np.complex128)
    assert 0.99 <= single[0] < 1.0
    assert double[1] == pytest.approx(1j * single[0])
    assert whole.tolist() == [0, 1, 2] and whole is not given[3]


def test_what_a_kernel_makes_of_rounding_is_allowed():
    def calm(x):
        return x + 1.0

    def chaotic(x):
        for _ in range(200):
            x = 3.9 * x * (1.0 - x)
        return x

    inputs = (np.linspace(0.1, 0.9, 20),)
    assert collection.tolerance(calm, inputs).relative == collection.DOUBLE
    assert collection.tolerance(chaotic, inputs).relative > 0.1
    assert collection.tolerance(calm, (np.ones(3, np.float32),)).relative >= 1e-4


def test_a_kernel_that_stays_on_numpy_has_its_reason_shown():
    reason = {"id": "effect.print", "where": "k.py:3", "why": "it prints", "hint": "", "count": 1}
    assert collection.reason_text({"state": "numpy", "reasons": [reason]}) == "effect.print, k.py:3, it prints"
    assert collection.reason_text({"state": "numpy", "reasons": []}) == "numpy, no reason given"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(["--only", "fortran"], "--only fortran: no such kernel; there are broken, steps"), ([], "no 'bench_info'")],
)
def test_bad_input_is_named(folder, tmp_path, arguments, text):
    with pytest.raises(BadInput, match=text):
        collection.main(["--npbench", str(folder if arguments else tmp_path), *arguments])
