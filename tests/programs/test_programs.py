"""Whole programs: their results are NumPy's, and the functions that matter are compiled, but for those listed here."""

from __future__ import annotations

import pytest

from tests.programs.judge import in_the_foreground, judge, programs

STAYS: dict[str, dict[str, str]] = {
    "earth.extremes": {
        "Analysis.year": "call.opaque",  # the generator that it asks for the next year
    },
    "fluids.dam_break": {
        "Fluid.neighbours": "call.opaque",  # scipy.spatial.cKDTree
        "Fluid.step": "call.opaque",  # for the neighbours
    },
}
"""Functions that stay on NumPy, with the reason that accel gives. Which functions matter varies with the machine."""


@pytest.mark.parametrize("name", programs())
def test_results_are_numpys_and_what_matters_is_compiled(name: str, books: None) -> None:
    with in_the_foreground():
        verdict = judge(name)
    assert verdict.wrong == []
    listed = STAYS.get(name.removeprefix("tests.programs."), {})
    assert set(verdict.stays) <= listed.keys(), {stays: verdict.reasons[stays] for stays in verdict.stays}
    for stays in verdict.stays:
        assert any(reason.startswith(listed[stays]) for reason in verdict.reasons[stays]), verdict.reasons[stays]
