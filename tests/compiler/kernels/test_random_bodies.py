"""Random bodies of loops, several paths in one program of kernels, give NumPy's bits.

ACCEL_LONG_TESTS and ACCEL_TEST_SEED choose more of them and others; `python -m tests.random_programs` tries any number.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.compiler.kernels.merging import try_body
from tests.helpers import SEED, examples

pytest.importorskip("llvmlite")

PROGRAMS = examples(3, 3000)
LEAST_MERGED = 0.5
"""Share of the programs that are kernels of several paths: others are refused, or have one path."""


def test_several_paths_in_one_program_give_numpys_bits() -> None:
    tally: Counter[str] = Counter()
    for number in range(PROGRAMS):
        tally.update(try_body(random.Random(f"{SEED} bodies {number}")))
    assert tally["merged"] >= LEAST_MERGED * PROGRAMS
    assert tally["replayed"] >= tally["merged"]
