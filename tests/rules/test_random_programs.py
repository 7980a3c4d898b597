"""Random programs: NumPy, the recorded call and two replays on fresh inputs must agree, changed arguments included.

ACCEL_LONG_TESTS and ACCEL_TEST_SEED choose more of them and others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.helpers import LONG, SEED, examples
from tests.rules.oracle import FAULTS, Job, judge, program
from tests.rules.programs import inputs, programs
from tests.xla_options import QUICK, QUICKEST

PROGRAMS = examples(250, 10_000)
PARTS = 20 if LONG else 10
TOGETHER = 25
"""Programs that are compiled as one."""
PHASES = (Phase.generate, Phase.shrink) if LONG else (Phase.generate,)
"""Making a found program small takes minutes: only who looks for some waits for it."""


def jobs_of(sources: list[str], options: Mapping[str, Any] = QUICK) -> list[Job]:
    return judge([Job("program", program(source), inputs) for source in sources], options=options)


def faults(sources: list[str], options: Mapping[str, Any]) -> list[str]:
    """What is wrong with any of the programs, with their text."""
    jobs = jobs_of(sources, options)
    return [f"{source}\n{problem}" for source, job in zip(sources, jobs, strict=True) for problem in job.problems[:1]]


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_agree(part: int) -> None:
    @seed(SEED * PARTS + part)
    @settings(
        max_examples=1 + PROGRAMS // (PARTS * TOGETHER),  # the first one is always the simplest
        database=None,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(programs(), min_size=TOGETHER, max_size=TOGETHER))
    def agree(sources: list[str]) -> None:
        found = faults(list(dict.fromkeys(sources)), QUICK if part % 10 == 0 else QUICKEST)
        assert not found, found[0]

    agree()


def test_most_programs_compile() -> None:
    """The generator must not drift to what accel refuses."""
    import random

    from tests.rules.programs import Writer

    draw = random.Random(0).randrange
    jobs = judge([Job("program", program(Writer(draw).program(20)), inputs) for _ in range(40)], seeds=(0,))
    assert sum(job.status == "compiled" for job in jobs) >= 30
    assert not any(job.status in FAULTS for job in jobs)


# -- what they found --------------------------------------------------------------------------------------------------

_FOUND = {
    "a truth times NaN is NaN, not a choice": """
        a0[0] = np.nan
        a2 = a0 * m0
        return a2, m0.astype(float) * a0
    """,
    "the sign of zero does not order": """
        a2 = a0 * 0.0
        return np.argsort(a2, axis=1, kind="stable"), np.searchsorted([-1.0, 0.0, 1.0], a2)
    """,
    "a reshape in Fortran order of a transposed array": """
        a2 = np.reshape(a0.T, (4, 6), order="F")
        return a2 + 1
    """,
    "bounds that an unsigned array cannot hold": """
        return np.clip(i0.astype(np.uint8), -1, None)
    """,
    "whole numbers to negative powers raise": """
        return i0 ** (i0 - n0 + 3)
    """,
    "out of another dtype": """
        c = np.zeros(6, np.float32)
        np.sum(a0, axis=0, out=c)
        return c
    """,
    "a negative zero on a branch cut": """
        z = -(a0 * 0) + 1j * (a0 - 8)
        return np.arcsinh(z), np.arcsinh(-z)
    """,
    "in-place functions on what does not depend on inputs": """
        b = np.zeros_like(a0)
        c, d = b + np.arange(24.0).reshape(4, 6), b[:, :4] + 1.0
        np.put(b, [0, 5], [1.0, 2.0])
        np.copyto(b, 3.0, where=c > 20)
        np.putmask(c, c < 3, [7.0, 8.0])
        np.place(c, c > 20, [1.0])
        np.put_along_axis(c, np.array([[1], [0], [2], [5]]), 9.0, axis=1)
        np.fill_diagonal(d, 2.0)
        np.add.at(d, [0, 0, 1], 1.0)
        return a0 + b[[3, 0, 1, 2]], c * 1.0, d[1:], a0 @ c.T
    """,
    "indices out of bounds raise": """
        return np.take_along_axis(a0, i0 // 2, axis=1)
    """,
    "whole numbers to powers of more than six bits": """
        return i0 ** 64, i0 ** (i0 * i0 + 100), np.uint8(7) ** (i0 + 200).astype(np.uint8)
    """,
    "a value behind the last place does not enter": """
        a0[0, 0] = np.nan
        a0[1, 1] = np.inf
        return np.nanpercentile(a0, 100), np.quantile(a0[1:], 1), np.percentile(a0, [0, 100], axis=0)
    """,
    "a component that a vector has not is not zero times NaN": """
        a0[0] = np.nan
        return np.cross(a0[:, :2], a0[:, 2:5]), np.cross(a0[:, 1:4], a0[:, :2])
    """,
    "no area over NaN where both truths are false": """
        a0[:, 0] = np.nan
        return np.trapezoid(m0, a0)
    """,
    "the largest values in an out that stores less": """
        c = np.zeros(6, np.float32)
        np.max(a0, axis=0, out=c)
        return c
    """,
    "a list as long as a selection is while recording": """
        y = a0[a0 < 65]
        y += [1.0] * 24
        return y
    """,
    "the order that a heap gives equal elements": """
        return np.argsort(i0, axis=1, kind="heapsort")
    """,
}


_REFUSED = {
    "a reshape in Fortran order of a transposed array": "rule.parameter",
    "out of another dtype": "rule.parameter",
    "the largest values in an out that stores less": "rule.parameter",
    "the order that a heap gives equal elements": "rule.parameter",
}


@pytest.mark.parametrize("name", _FOUND)
def test_what_was_found_stays_fixed(name: str) -> None:
    lines = "\n".join(f"    {line.strip()}" for line in _FOUND[name].strip().splitlines())
    (job,) = jobs_of([f"def case(a0, a1, r0, i0, m0, s0, n0):\n{lines}\n"])
    assert not job.problems
    assert job.status in ("compiled", "raises", _REFUSED.get(name)), (job.status, job.detail)
