"""Random programs of stencils, moves, writes and reductions give NumPy's bits as kernels.

Each program has six results. ACCEL_LONG_TESTS and ACCEL_TEST_SEED choose more programs and others.
"""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

from accel.record import Completed, record
from tests.compiler.kernels.conforming import in_kernels, problems
from tests.compiler.kernels.programs import SHAPES, operands, random_program
from tests.helpers import SEED, examples
from tests.replays import OUTSIDE
from tests.rules.oracle import Job, program

pytest.importorskip("llvmlite")

PROGRAMS = examples(40, 8000)
RESULTS = 6
LEAST_TAKEN = 0.5
"""Share of the programs that are kernels: the others are refused, or too many parts of them are not."""


def tried(source: str, shape: tuple[int, ...]) -> bool:
    """Compare one program with NumPy. Returns whether it was kernels."""
    job = Job("program", program(source), lambda seed: operands(shape, seed))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recorded = record(job.function, job.make(0), {}, max_nodes=20_000)
        if recorded.refusal is not None:
            assert recorded.refusal.reason in OUTSIDE, (recorded.refusal, source)
            return False
        assert isinstance(recorded, Completed) and recorded.trace is not None, source
        variant = in_kernels(recorded.trace)
        if isinstance(variant, str):
            return False
        wrong = list(problems(job, variant, 0.0))
    assert not wrong, f"{wrong}\n{source}"
    return True


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_programs_give_numpys_bits(shape: tuple[int, ...]) -> None:
    count = max(4, PROGRAMS // len(SHAPES))
    sources = [random_program(random.Random(f"{SEED} {shape} {number}"), shape, RESULTS) for number in range(count)]
    assert sum(tried(source, shape) for source in sources) >= LEAST_TAKEN * count
