"""Random programs with branches: whatever paths were recorded, one program of them gives NumPy's results, or none.

ACCEL_LONG_TESTS and ACCEL_TEST_SEED choose more of them and others.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.helpers import SEED, examples
from tests.random_programs import BRANCH_CALLS, try_branches

PROGRAMS = examples(80, 1600)
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_one_program_of_all_paths_agrees(part: int) -> None:
    tally: Counter[str] = Counter()
    for number in range(PROGRAMS // PARTS):
        tally.update(try_branches(random.Random(f"{SEED} {part} {number}")))
    # the programs must not drift to what cannot be merged, nor the calls to paths that were not recorded
    assert tally["merged"] >= 0.8 * (PROGRAMS // PARTS)
    assert tally["replayed"] >= 0.4 * tally["merged"] * BRANCH_CALLS[1]
