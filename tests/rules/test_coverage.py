"""The coverage table: made from the rules, and no claim in it without a case that compiles."""

from __future__ import annotations

import re

import numpy as np

from accel.rules.rule import RULES
from accel.rules.special import Static
from tests.conftest import ROOT
from tests.rules import coverage
from tests.rules.cases import ROWS

GOAL = 85.0


def test_goal_is_met() -> None:
    assert coverage.share(coverage.entries()) >= GOAL


def test_every_compiled_function_has_a_case() -> None:
    """By identity, so that aliases count; what types alone answer needs none."""
    called = {name for row in ROWS for text in row.expressions for name in re.findall(r"np\.([\w.]+)", text)}
    tested = {id(_find(name)) for name in called if _find(name) is not None}
    missing = [
        entry.name
        for entry in coverage.entries()
        if entry.status != "refused"
        and not entry.name.startswith("ndarray.")
        and id(_find(entry.name.removeprefix("numpy."))) not in tested
        and not _is_static(_find(entry.name.removeprefix("numpy.")))
    ]
    assert not missing


def _is_static(function: object) -> bool:
    return function in RULES and isinstance(RULES[function].recorded.special, Static)


def _find(name: str) -> object:
    found: object = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def test_table_names_limits_and_reasons() -> None:
    table = coverage.table()
    assert re.search(r"^\*\*numpy\*\*, \d+ of \d+: [^*]*`sum`", table, re.MULTILINE)
    assert "| `numpy.array` | compiled with limits | without ndmin |" in table
    assert "| `numpy.fromfunction` | refused | `call.opaque` |" in table
    assert re.search(r"^\*\*scipy\.special\*\*, \d+ of \d+: [^*]*`xlogy`", table, re.MULTILINE)
    assert "`loadtxt`" not in table


def test_the_page_is_current() -> None:
    """docs/coverage.md is what the module prints; other versions of NumPy have other functions."""
    page = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    if f"for NumPy {coverage.series()}." in page:
        assert page == coverage.table(), "write it anew: python -m tests.rules.coverage > docs/coverage.md"
