"""Views of views: programs that read and write them, against NumPy."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.replays import assert_replays_agree, program_of, variant_of

KEYS = "[1:]", "[:-1]", "[0]", "[1]", "[-1]", "[1:3]", "[:2]"
"""Boxes of the first axis, of which each may hold others."""


def inputs(seed: int) -> tuple[Any, ...]:
    draw = np.random.default_rng(seed)
    return draw.random((4, 5, 6)), draw.random((4, 5, 6))


def line_of(draw: random.Random, known: list[tuple[str, int]]) -> str:
    """A statement that makes a view of a known one, or writes to one; known: names with their numbers of axes."""
    name, axes = draw.choice([each for each in known if each[1] > 1])
    key = draw.choice(KEYS)
    if draw.random() < 0.5:
        known.append((f"v{len(known)}", axes - (":" not in key)))
        return f"{known[-1][0]} = {name}{key}"
    other, more = draw.choice([each for each in known if each[1] == 1] or known)
    number = f"{other}[..., 1:2]" if more == 1 else f"{other}[0, ..., :1].sum()"
    return draw.choice([f"{name}{key} = {name}{key} * 0.5 + {number}", f"{name}[..., {key[1:-1]}] += {number}"])


@pytest.mark.parametrize("seed", range(24))
def test_random_views_of_views(seed: int) -> None:
    draw = random.Random(seed)
    known = [("a", 3), ("b", 3)]
    body = "\n    ".join(line_of(draw, known) for _ in range(14))
    source = f"def case(a, b):\n    {body}\n    return a * b"
    try:
        program_of(source, f"nesting_{seed}")(*inputs(0))
    except (IndexError, ValueError):  # a box that is too short for what is taken from it
        pytest.skip("no program of NumPy's")
    program = program_of(source, f"nesting_{seed}")
    assert_replays_agree(variant_of(program, inputs), program, inputs, source)


def eliminated(a: Any, b: Any) -> Any:
    lower, diag, rhs = a[:3]
    for _ in range(3):
        for i in range(1, 5):
            factor = lower[i] / (diag[i - 1] + 2.0)
            diag[i] -= factor * lower[i - 1]
            rhs[1:][i - 1] -= factor * rhs[i - 1]
        np.multiply(b[1], 0.5, out=b[1:][0])
    return rhs.sum()


def test_a_loop_over_rows_of_views() -> None:
    assert_replays_agree(variant_of(eliminated, inputs), eliminated, inputs)
