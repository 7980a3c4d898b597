"""Random expressions of arithmetic give NumPy's bits under accel.

Many expressions are the results of one function, since compiling takes most of the time. ACCEL_LONG_TESTS and
ACCEL_TEST_SEED choose more of them and others.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from accel.backend import compile as compiling
from tests.helpers import LONG, SEED, examples
from tests.replays import program_of
from tests.rounding.bits import Differ, Mismatch, differs, differs_in_kind, variant_mismatches
from tests.rounding.expressions import PARAMETERS, operands, operands_of, parts_of, random_expression
from tests.xla_options import quickest_options_for

pytestmark = pytest.mark.usefixtures("foreground")

EXPRESSIONS = examples(1000, 20_000)
PARTS = 20 if LONG else 10
TOGETHER = 100
"""Expressions of one function."""
CALLS = 8
USUAL_EVERY = 5
"""One function of so many is compiled with accel's usual options, which takes six times as long."""


def wrong_in(expressions: Sequence[str], differ: Differ = differs) -> list[tuple[str, Mismatch]]:
    """The expressions whose replays differ from NumPy, each with its first wrong element in a call."""
    lines = [f"    r{place} = {each}" for place, each in enumerate(expressions)]
    results = ", ".join(f"r{place}" for place in range(len(expressions)))
    source = "\n".join([f"def case({', '.join(PARAMETERS)}):", *lines, f"    return {results},", ""])
    program = program_of(source, "expressions")
    with np.errstate(all="ignore"):
        found = variant_mismatches(program, operands, CALLS, differ)
    wrong = [(expressions[each.output], each) for each in found]
    return [(each, where) for each, where in wrong if not meets_subnormal(each, where.call)]


def evaluated(text: str, number: int) -> Any:
    """NumPy's value of a text, of the operands of a call."""
    names = dict(zip(PARAMETERS, operands(number), strict=True))
    with np.errstate(all="ignore"):
        return eval(text, {"np": np, **names})


def meets_subnormal(expression: str, number: int) -> bool:
    """Whether any part of an expression is subnormal in a call, or the smallest number that is not.

    XLA flushes such numbers to 0 (docs/differences.md).
    """
    values = (np.asarray(evaluated(part, number)) for part in parts_of(expression))
    floats = [value for value in values if value.dtype.kind == "f"]
    return any(((each != 0) & (np.abs(each) <= np.finfo(each.dtype).tiny)).any() for each in floats)


def told(expression: str, where: Mismatch) -> str:
    """A wrong element: the expression, and its operands at the place, or as a whole where it is of another shape."""
    lines = [expression, f"  call {where.call}, element {where.place}: {where.found!r}, NumPy {where.expected!r}"]
    for name in operands_of(expression):
        value = evaluated(name, where.call)
        at = value[where.place] if where.place and np.ndim(value) else value
        lines.append(f"  {name} = {at!r}")
    return "\n".join(lines)


def smallest(expressions: Sequence[str], expression: str, differ: Differ) -> str:
    """The smallest part of a wrong expression that is wrong by itself, or the fewest others beside which it is."""
    for part in parts_of(expression):
        if wrong := wrong_in([part], differ):
            return told(*wrong[0])
    others, wrong = list(expressions), []
    for size in (len(others) // 2**power for power in range(1, 7)):
        for half in (others[:size], others[size:]):
            if found := [each for each in wrong_in([*half, expression], differ) if each[0] == expression]:
                others, wrong = half, found
                break
    shown = told(*wrong[0]) if wrong else expression
    return "\n".join([shown, f"only beside {len(others)} other expressions:", *others[:5]])


def assert_numpy_s_bits(draw: random.Random, kind: str | None = None) -> None:
    differ = differs_in_kind if kind == "loose" else differs
    for _ in range(max(1, EXPRESSIONS // PARTS // TOGETHER)):
        expressions = [random_expression(draw, kind) for _ in range(TOGETHER)]
        wrong = wrong_in(expressions, differ)
        if wrong:
            texts = sorted({each for each, _ in wrong}, key=len)
            shown = smallest(expressions, texts[0], differ)
            pytest.fail(f"{len(texts)} of {len(expressions)} expressions\n{shown}")


@pytest.fixture
def quickest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile in a fifth of the time, by options under which the same sums and products are contracted."""
    monkeypatch.setattr(compiling, "options_for", quickest_options_for)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_arithmetic_is_numpy_s_to_the_last_bit(part: int, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("quickest" if part % USUAL_EVERY else "optimized")
    assert_numpy_s_bits(random.Random(f"{SEED} {part}"))


@pytest.mark.usefixtures("quickest")
def test_functions_on_top_are_infinite_zero_and_nan_where_numpy_is() -> None:
    assert_numpy_s_bits(random.Random(f"{SEED} loose"), "loose")
