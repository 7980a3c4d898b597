"""The benchmark of long runs: which answer each call of a function got, and what that says."""

from __future__ import annotations

import pytest

from benchmarks import long_runs
from benchmarks.cases import CASES

STEP, LOOP = "model:SpectralModel.time_step", "script:main:670"


def calls_of(numpy: int, rounds: int) -> list[tuple[str, str, float]]:
    """Some calls in rounds that ran on NumPy, then rounds that a program has answered."""
    calls = []
    for end in range(numpy):
        calls += [(STEP, "numpy", end + 0.5), (LOOP, "numpy", end + 1.0)]
    return calls + [(LOOP, "compiled", float(numpy + end)) for end in range(1, rounds + 1)]


def test_a_compiled_round_of_a_loop_is_a_compiled_call() -> None:
    answers = long_runs.answers_of(STEP, calls_of(2, 3))
    assert [kind for kind, _ in answers] == ["numpy", "numpy", "compiled", "compiled", "compiled"]
    assert [end for _, end in answers] == sorted(end for _, end in answers)


@pytest.mark.parametrize(
    ("numpy", "discarded_at", "met"), [(62, 100.0, [True, True, True]), (80, 300.0, [True, False, False])]
)
def test_late_programs_and_late_discarded_runs_are_missed_goals(
    numpy: int, discarded_at: float, met: list[bool]
) -> None:
    seen = {
        "calls": calls_of(numpy, 440 - numpy),
        "discarded": [(STEP, discarded_at), (LOOP, 400.0)],
        "programs": {STEP: 2},
    }
    verdicts = long_runs.judged(CASES["old"], 440, seen)
    assert [verdict.met for verdict in verdicts] == met


def test_longer_runs_may_have_one_more_program() -> None:
    seen = {"calls": calls_of(0, 300), "discarded": [], "programs": {STEP: 3}}
    assert [long_runs.judged(CASES["old"], steps, seen)[0].met for steps in (1440, 4800)] == [False, True]
