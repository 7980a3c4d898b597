"""Random programs with loops by data: for any number of iterations, a replay gives NumPy's results, or none.

ACCEL_LONG_TESTS and ACCEL_TEST_SEED choose more of them and others.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter

import pytest

from tests.helpers import SEED, examples
from tests.random_programs import try_loops

PROGRAMS = examples(16, 480)
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_any_number_of_rounds_agrees(part: int) -> None:
    tally: Counter[str] = Counter()
    for number in range(PROGRAMS // PARTS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            tally.update(try_loops(random.Random(f"{SEED} {part} {number}")))
    assert tally["rolled"] >= 0.1 * (PROGRAMS // PARTS)
