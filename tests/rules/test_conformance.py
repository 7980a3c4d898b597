"""Every row, dtype and shape against NumPy: recorded, compiled and replayed on fresh inputs.

A part of the cases by default; all of them with ACCEL_LONG_TESTS=1.
"""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

from accel.rules import load
from accel.rules.rule import RULES, Rule
from tests.helpers import LONG
from tests.rules.cases import ROWS, Names, Row, names_in, stable_hash
from tests.rules.oracle import Job, expression, judge
from tests.rules.scipy_cases import SCIPY_ROWS

load(everything=True)

PART = 1 if LONG else 12
"""One case in so many is run, always the plain matrix of float64 among them."""

SINCE = {"np.quantile(a, 1)": (2, 4), "a[j, 1:]": (2, 3)}
"""Expressions that NumPy answered otherwise before: it interpolated from an infinite end to itself, which is NaN, and
did not check indices of which nothing is taken."""
NUMPY = tuple(int(part) for part in np.__version__.split(".")[:2])


def _jobs(row: Row) -> list[Job]:
    jobs = []
    for text, dtype, shape in row.cases():
        if (dtype, shape) != ("d", "matrix") and stable_hash(f"{text}{dtype}{shape}") % PART:
            continue
        if SINCE.get(text, NUMPY) > NUMPY:
            continue
        names = names_in(text)

        make = functools.partial(_draw, names, dtype, shape, row.tame)
        jobs.append(Job(f"{text} [{dtype} {shape}]", expression(text, names), make, row.loose))
    return jobs


def _draw(names: tuple[str, ...], dtype: str, shape: str, tame: bool, seed: int) -> tuple[object, ...]:
    drawn = Names(dtype, shape, seed, tame)
    return tuple(drawn.value(name) for name in names)


ALL_ROWS = [*ROWS, *SCIPY_ROWS]


@pytest.mark.parametrize("row", ALL_ROWS, ids=[f"{i}-{row.function}" for i, row in enumerate(ALL_ROWS)])
@pytest.mark.filterwarnings("ignore:Numpy has detected that you:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:future versions will not create a writeable array:FutureWarning")
def test_row_agrees_with_numpy(row: Row) -> None:
    found = [problem for job in judge(_jobs(row)) for problem in job.problems]
    assert not found, "\n".join(found[:5])


# -- signatures -------------------------------------------------------------------------------------------------------

_WITH_SIGNATURE = [
    rule for rule in dict.fromkeys(RULES.values()) if rule.signature is not None and not rule.recorded.special
]


@pytest.mark.parametrize("rule", _WITH_SIGNATURE, ids=lambda rule: rule.name)
def test_row_names_parameters_that_numpy_has(rule: Rule) -> None:
    """What a row names exists; what it does not name, the engine refuses where it is given."""
    assert rule.signature is not None
    parameters = rule.signature.parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    assert set(rule.operands) | set(rule.static) <= set(parameters)


@pytest.mark.parametrize("rule", [rule for rule in _WITH_SIGNATURE if rule.lower], ids=lambda rule: rule.name)
def test_lowering_takes_what_the_row_names(rule: Rule) -> None:
    """A lowering written out takes exactly the row's parameters."""
    assert rule.lower is not None
    parameters = inspect.signature(rule.lower).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    extra = {"mask", "shape", "skip_nan"}
    assert set(rule.operands) | set(rule.static) <= set(parameters)
    assert set(parameters) - extra <= set(rule.operands) | set(rule.static)


def test_a_parameter_that_a_row_leaves_out_is_refused() -> None:
    def make(seed: int) -> tuple[object, ...]:
        return (np.random.default_rng(seed).normal(size=(3, 4)),)

    (job,) = judge([Job("returned", expression("np.average(a, returned=True)", "a"), make)])
    assert job.status == "rule.parameter"
    assert "returned" in job.detail
