"""Random programs of stencils and moves give NumPy's bits as kernels.

ACCEL_KERNEL_PROGRAMS sets how many programs are tried; ACCEL_KERNEL_SEED, a number, gives others.
"""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from accel.kernels.segments import Segmented
from tests.kernels.programs import SHAPES, operands, random_program
from tests.replays import program_of, variant_of
from tests.rounding.bits import variant_mismatches

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("foreground")

PROGRAMS = int(os.environ.get("ACCEL_KERNEL_PROGRAMS", "40"))
SEED = int(os.environ.get("ACCEL_KERNEL_SEED", "0"))
RESULTS = 6


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_programs_give_numpys_bits(shape: tuple[int, ...]) -> None:
    count, taken = max(4, PROGRAMS // len(SHAPES)), 0
    for number in range(count):
        source = random_program(random.Random(f"{SEED} {shape} {number}"), shape, RESULTS)
        program = program_of(source, "programs")

        def inputs(seed: int) -> tuple[object, ...]:
            return operands(shape, seed)

        with np.errstate(all="ignore"):
            variant = variant_of(program, inputs)
            # XLA flushes subnormal numbers
            if variant is None or not isinstance(variant.executable.compiled, Segmented):
                continue
            wrong = list(variant_mismatches(program, inputs, 3))
        assert not wrong, f"{wrong}\n{source}"
        taken += 1
    assert taken
