"""Random programs with loops by data: whatever number of rounds a call takes, a replay gives NumPy's results, or none.

ACCEL_DATA_LOOPS sets how many are tried, 48 by default; ACCEL_DATA_LOOPS_SEED, a number, gives others.
"""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter

import pytest

from tests.random_programs import try_loops

PROGRAMS = int(os.environ.get("ACCEL_DATA_LOOPS", "48"))
SEED = int(os.environ.get("ACCEL_DATA_LOOPS_SEED", "0"))
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_any_number_of_rounds_agrees(part: int) -> None:
    tally: Counter[str] = Counter()
    for number in range(PROGRAMS // PARTS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            tally.update(try_loops(random.Random(f"{SEED} {part} {number}")))
    assert tally["rolled"] >= 0.1 * (PROGRAMS // PARTS)
