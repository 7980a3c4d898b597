"""Every row as kernels, against NumPy bit by bit: every dtype that kernels have, every order in memory, edge values.

A part of the cases by default, the plain matrix of float64 always among them; all with ACCEL_LONG_TESTS=1. The same
rows without kernels are in tests/rules/test_conformance.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from accel.ir.tape import Node
from accel.record import Trace
from accel.rules import load
from accel.rules.columns import rounds_freely
from tests.compiler.kernels.conforming import DTYPES, IN_ORDER_OF_C, LAYOUTS, in_kernels, job_of, problems
from tests.compiler.kernels.not_taken import COMPLEX_SINCE_2_5, NOT_TAKEN
from tests.helpers import LONG
from tests.rules.cases import ROWS, Row, names_in, stable_hash
from tests.rules.scipy_cases import SCIPY_ROWS
from tests.rules.test_conformance import NUMPY, SINCE

pytest.importorskip("llvmlite")
load(everything=True)

PART = 1 if LONG else 100
"""One case in so many is run, besides the plain ones."""

ALL_ROWS = [*ROWS, *SCIPY_ROWS]

UNITS = 4.0
"""Units in the last place that elementary functions may be from NumPy's, which in single precision are 3 from the true
value themselves. tests/compiler/kernels/test_elementary.py holds accel's to 1."""

IN_NUMPYS_ORDER = frozenset({"numpy.sum", "numpy.mean", "numpy.prod", "numpy.cumsum", "numpy.cumprod"})
"""Rows whose elements are joined as NumPy joins those of an array in the order of C."""


def is_free(node: Node) -> bool:
    """Whether NumPy and accel may differ in the last place of an operation."""
    return node.dtype is not None and not node.host and rounds_freely(node)


def units_of(trace: Trace, text: str, layout: str) -> float | None:
    """How many units in the last place a case may be from NumPy; None: as far as XLA's."""
    rules = {node.rule.name: node.rule for node in trace.tape.nodes if is_free(node)}
    if text.startswith("ndimage."):
        return None  # sums of what labels select
    if layout in IN_ORDER_OF_C and "where=" not in text:
        rules = {name: rule for name, rule in rules.items() if name not in IN_NUMPYS_ORDER}
    if not rules:
        return 0.0
    return UNITS if all(rule.locality.elementwise for rule in rules.values()) else None


def cases(row: Row) -> Iterator[tuple[str, str, str]]:
    """Expression, dtype and layout."""
    for text in row.expressions:
        is_shaped = bool({"a", "b", "c", "m", "out"} & set(names_in(text)))
        for dtype in DTYPES:
            for layout in LAYOUTS if is_shaped else ("matrix",):
                is_plain = (dtype, layout) == ("d", "matrix")
                if (is_plain or stable_hash(f"{text}{dtype}{layout}") % PART == 0) and SINCE.get(text, NUMPY) <= NUMPY:
                    yield text, dtype, layout


@pytest.mark.parametrize("row", ALL_ROWS, ids=[f"{i}-{row.function}" for i, row in enumerate(ALL_ROWS)])
def test_kernels_give_numpys_bits(row: Row) -> None:
    wrong: list[str] = []
    not_taken: dict[str, str] = {}
    for text, dtype, layout in cases(row):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            job = job_of(row, text, dtype, layout)
            variant = "" if job.trace is None else in_kernels(job.trace)
            if isinstance(variant, str):
                if variant and (dtype, layout) == ("d", "matrix"):
                    not_taken[text] = variant
                continue
            wrong += problems(job, variant, units_of(variant.trace, text, layout))
    assert not wrong, "\n".join(wrong[:5])
    expected = NOT_TAKEN | (COMPLEX_SINCE_2_5 if NUMPY >= (2, 5) else set())
    assert not_taken.keys() == expected & set(row.expressions), f"only XLA computes {not_taken}"
