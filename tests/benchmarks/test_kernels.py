"""The corpus of small kernels: sane on NumPy, and the same through accel."""

from __future__ import annotations

import copy
import inspect
import json

import numpy as np
import pytest

pytest.importorskip("accel.dispatch")

from benchmarks import corpus, kernels, races
from benchmarks.agreement import Tolerance, difference, outcome

EXACT = Tolerance(0.0)
SIZE = 16
each_kernel = pytest.mark.parametrize("kernel", corpus.KERNELS, ids=lambda kernel: kernel.name)


@each_kernel
def test_a_kernel_is_a_function_of_its_arguments(kernel):
    rng = np.random.default_rng(7)
    for _ in range(4):
        arguments = kernel.arguments(rng, SIZE)
        plain = inspect.unwrap(kernel.function)
        first = outcome(plain, copy.deepcopy(arguments))
        again = outcome(plain, copy.deepcopy(arguments))
        assert difference(first, again, EXACT) == ""
        assert not first.error or kernel.function is corpus.checked_log


@each_kernel
def test_a_kernel_agrees_with_numpy(kernel):
    assert races.validate(kernels.contest(kernel, SIZE, np.random.default_rng(11)), calls=8) == []


def test_names_are_unique_and_allowances_explained():
    names = [kernel.name for kernel in corpus.KERNELS]
    assert len(set(names)) == len(names) >= 20
    assert all(kernel.why for kernel in corpus.KERNELS if kernel.near)


def test_the_command_prints_a_row_and_writes_json(tmp_path, capsys):
    out = tmp_path / "kernels.json"
    arguments = ["--only", "softmax", "--sizes", "16", "--settle", "0.1", "--budget", "0.05", "--out", str(out)]
    assert kernels.main(arguments) == 0
    assert "| softmax |" in capsys.readouterr().out
    result = json.loads(out.read_text())
    assert result["wrong"] == 0
    assert result["geometric_mean"] == pytest.approx(result["kernels"][0]["ratio"])
    assert {goal["name"].split(",")[0] for goal in result["goals"]} >= {"32 small kernels"}


def row(name: str, ratio: float, state: str = "compiled", *reasons: str) -> dict:
    """A row as `races.held` gives it."""
    times = {"numpy_ms": ratio, "accel_ms": 1.0, "ratio": ratio}
    found = {"kernel": name, "n": 8, **times, "state": state, "tolerance": 0.0, "wrong": []}
    return {**found, "reasons": [{"id": each} for each in reasons]}


def test_totals_are_of_compiled_kernels_and_name_the_slower_ones():
    rows = [row("fast", 8.0), row("slow", 0.5), row("level", 0.98), row("left", 0.9, "demoted", "speed.slower")]
    found = races.totals(rows)
    assert (found["compiled"], found["slower"], found["slowest"]) == (3, ["slow 8"], 0.5)
    assert found["geometric_mean_compiled"] == pytest.approx((8.0 * 0.5 * 0.98) ** (1 / 3))
    assert found["geometric_mean"] < found["geometric_mean_compiled"]
    text = races.describe(found)
    assert "1 compiled ones below 0.97: slow 8" in text and "speed.slower" in text


def test_waiting_is_no_reason_to_stop_waiting():
    assert not races.settled(row("f", 1.0, "numpy", "wait.compile"))
    assert races.settled(row("f", 1.0, "numpy", "wait.calls", "effect.print"))
    assert races.settled(row("f", 1.0, "compiled"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--only", "fortran"], "--only fortran: no such kernel; there are heat, "),
        (["--sizes", "4"], "--sizes 4: the smallest grid is 8"),
    ],
)
def test_bad_input_is_named(arguments, text):
    with pytest.raises(kernels.BadInput, match=text):
        kernels.main(arguments)
