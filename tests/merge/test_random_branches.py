"""Random programs with branches: whatever paths were recorded, one program of them gives NumPy's results, or none.

ACCEL_BRANCHES sets how many are tried, 160 by default; ACCEL_BRANCHES_SEED, a number, gives others.
"""

from __future__ import annotations

import os
import random
import warnings

import pytest

from accel.merge import NotMergeable
from tests.merge.programs import Writer, calls, program_of
from tests.merge.runs import Merged, assert_agrees, traces_of

PROGRAMS = int(os.environ.get("ACCEL_BRANCHES", "160"))
SEED = int(os.environ.get("ACCEL_BRANCHES_SEED", "0"))
PARTS = 8
RECORDED, REPLAYED = 24, 40


@pytest.mark.parametrize("part", range(PARTS))
def test_one_program_of_all_paths_agrees(part: int) -> None:
    replayed = merged = 0
    for number in range(PROGRAMS // PARTS):
        source = Writer(random.Random(f"{SEED} {part} {number}")).program()
        function = program_of(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            traces = traces_of(function, calls(1, RECORDED))
            if not traces:
                continue
            try:
                program = Merged(traces)
            except NotMergeable:
                continue
            merged += 1
            replayed += assert_agrees(function, program, calls(2, REPLAYED), source)
    # the programs must not drift to what cannot be merged, nor the calls to paths that were not recorded
    assert merged >= 0.8 * (PROGRAMS // PARTS)
    assert replayed >= 0.4 * merged * REPLAYED
