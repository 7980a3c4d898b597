"""Random programs with loops by data: whatever number of rounds a call takes, a replay gives NumPy's results, or none.

ACCEL_DATA_LOOPS sets how many are tried, 48 by default; ACCEL_DATA_LOOPS_SEED, a number, gives others.
"""

from __future__ import annotations

import os
import random
import warnings
from typing import Any

import numpy as np
import pytest

from tests.loops.programs import Writer
from tests.loops.runs import Call, Program, assert_agrees, loops_of, program_of, traces_of
from tests.merge.runs import State, assert_same

PROGRAMS = int(os.environ.get("ACCEL_DATA_LOOPS", "48"))
SEED = int(os.environ.get("ACCEL_DATA_LOOPS_SEED", "0"))
PARTS = 8
RECORDED, COMPILED, REPLAYED = 6, 3, 24


def calls(seed: int, count: int) -> list[Call]:
    generator = np.random.default_rng(seed)
    made: list[Any] = []
    for _ in range(count):
        x, y = (generator.normal(size=4) * generator.choice((0.3, 1.0, 3.0)) for _ in range(2))
        state = State(u=generator.normal(size=4), w=np.zeros(4), n=0)
        made.append((x, y, float(generator.choice((0.01, 0.1, 1.0, 5.0))), state))
    return made


@pytest.mark.parametrize("part", range(PARTS))
def test_any_number_of_rounds_agrees(part: int) -> None:
    loops = replayed = 0
    for number in range(PROGRAMS // PARTS):
        source = Writer(random.Random(f"{SEED} {part} {number}")).program()
        function = program_of(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            # the first few paths that have loops
            found: dict[str, Any] = {}
            for trace in traces_of(function, calls(number, RECORDED)):
                if loops_of(trace):
                    found.setdefault(str([(node.rule.name, node.where) for node in trace.tape.nodes]), trace)
            for trace in [*found.values()][:COMPILED]:
                loops += 1
                replayed += assert_agrees(function, Program(trace), calls(1000 + number, REPLAYED), assert_same, source)
    assert loops >= 0.1 * (PROGRAMS // PARTS)
