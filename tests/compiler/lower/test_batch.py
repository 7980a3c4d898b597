"""Loops whose iterations are independent: computed at once where they are, and never where they are not."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from accel.compiler.lower.passes.loops import batch
from accel.platform import config
from tests.helpers import SEED, examples
from tests.replays import assert_replays_agree, program_of, variant_of

ROUNDS = 20


def rows(a: Any, b: Any, v: Any) -> Any:
    out = np.zeros_like(a)
    for i in range(ROUNDS):
        out[i] = np.sin(a[i]) * b[:, i] + v[i]
    return out


def orthogonalize(a: Any, b: Any, v: Any) -> Any:
    """The inner loop of Gram and Schmidt's method: reads and writes of the same column."""
    for j in range(1, ROUNDS):
        v[j] = b[:, 0] @ a[:, j]
        a[:, j] -= b[:, 0] * v[j]
    return a


def looks_ahead(a: Any, b: Any, v: Any) -> Any:
    """Each round reads what a later one writes: all see the old values."""
    for i in range(ROUNDS - 1):
        v[i] = np.cos(v[i + 1]) * 0.5 + a[i].sum()
        b[i] = v[i] + b[i] * 2.0
    return v


def twice_in_a_round(a: Any, b: Any, v: Any) -> Any:
    for i in range(ROUNDS):
        a[i] += b[i]
        a[i] *= v[i] + 1.0
        v[i] = a[i].max()
    return a


def backward_columns(a: Any, b: Any, v: Any) -> Any:
    for i in range(ROUNDS - 1, -1, -1):
        a[:, i] = b[i] - v
    return a


def diagonal(a: Any, b: Any, v: Any) -> Any:
    for i in range(ROUNDS):
        a[i, i] = v[i] * 2.0 + b[i, i] - np.float64(1.0)
    return a


def one_row_for_all(a: Any, b: Any, v: Any) -> Any:
    """Every round reads a part, at the same place, of the array that it writes to."""
    for i in range(1, ROUNDS - 1):
        a[i] = a[0] * v[i] + v[-1]
        v[i] = a[i].sum()
    return a


INDEPENDENT = (one_row_for_all, rows, orthogonalize, looks_ahead, twice_in_a_round, backward_columns, diagonal)


def looks_back(a: Any, b: Any, v: Any) -> Any:
    for i in range(1, ROUNDS):
        v[i] = np.cos(v[i - 1]) * 0.5 + a[i].sum()
    return v


def accumulates(a: Any, b: Any, v: Any) -> Any:
    total = np.zeros(ROUNDS)
    for i in range(ROUNDS):
        total = total + np.sin(a[i]) * b[i]
        v[i] = total.sum()
    return total


def one_place(a: Any, b: Any, v: Any) -> Any:
    """Every round writes to the same place: the last one stays."""
    for i in range(ROUNDS):
        v[3] = a[i].sum() + np.tanh(b[i]).max()
    return v


def overlapping_rows(a: Any, b: Any, v: Any) -> Any:
    for i in range(ROUNDS - 1):
        a[i : i + 2] = a[i : i + 2] * 0.5 + b[i] - np.cos(b[i + 1])
    return a


def whole_array(a: Any, b: Any, v: Any) -> Any:
    """Each iteration reads all that the ones before wrote."""
    for i in range(ROUNDS):
        v[i] = np.sin(v).sum() * 0.1 + a[i].max()
    return v


DEPENDENT = (looks_back, accumulates, one_place, overlapping_rows, whole_array)


def inputs(seed: int) -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(seed)
    return generator.random((ROUNDS, ROUNDS)), generator.random((ROUNDS, ROUNDS)), generator.random(ROUNDS)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each loop that is rolled is computed at once."""
    found: list[bool] = []
    real = batch.plan

    def spy(loop: Any) -> Any:
        plan = real(loop)
        found.append(plan is not None)
        return plan

    monkeypatch.setattr(batch, "plan", spy)
    return found


@pytest.fixture(autouse=True)
def no_cache() -> Any:
    with config.override(cache_dir=None):
        yield


@pytest.mark.parametrize("program", INDEPENDENT, ids=lambda program: program.__name__)
def test_independent_rounds_are_computed_at_once(program: Any, planned: list[bool]) -> None:
    assert_replays_agree(variant_of(program, inputs), program, inputs, rtol=1e-11)
    assert planned and all(planned)


@pytest.mark.parametrize("program", DEPENDENT, ids=lambda program: program.__name__)
def test_dependent_rounds_are_computed_in_order(program: Any, planned: list[bool]) -> None:
    assert_replays_agree(variant_of(program, inputs), program, inputs, rtol=1e-11)
    assert planned and not any(planned)


# -- random loops -----------------------------------------------------------------------------------------------------

_PLACES = """
v[{i}] | v[{i} + 1] | v[{i} - 1] | v[0] | v[-1] | v[{n} - {i}] | a[{i}] | a[:, {i}] | a[{i} + 1] | a[{i} - 1, {i}] | a[{i}, {i}]
b[{i}] | b[{i}, 2:5].sum() | a[2, {i}] | a[{i}, 3] | b[:, {i}] | a[{i}, ::-1] | b[{n} - {i}] | a[{i} - 1] | v[{i} // 2] | a[1:3].sum(axis=0)
""".replace("\n", " | ")  # noqa: E501
_INDIRECT = "v[p[{i}]] | a[p[{i}]] | a[:, p[{i}]] | a[p[{i}], {i}] | b[p[{i}], 2:5].sum() | v[p[{i}] - 8] | a[p[p[0]]]"
_FORMS = ("{x} + {y}", "{x} * 0.5 - {y}", "np.sin({x}) + {y}", "{x}.max() + {y} * 0.25", "np.maximum({x}, {y})", "{x}")


LOOPS = examples(24, 500)
"""Random loops that are tried."""


def loop_program(seed: int) -> str:
    """A loop of a few assignments to parts of a, b and v that may or may not depend on other iterations."""
    draw = random.Random(seed)
    indirect = draw.random() < 0.4
    given = f"{_PLACES} | {_INDIRECT} | {_INDIRECT}" if indirect else _PLACES
    places = [place.strip() for place in given.split("|") if place.strip()]
    targets = [place for place in places if "sum" not in place]

    def place(choices: list[str]) -> str:
        return draw.choice(choices).format(i="i", n=ROUNDS - 1)

    def statement() -> str:
        target = place(targets)
        is_number = target.startswith("v") or (target.count(",") == 1 and ":" not in target)
        x, y = place(places), place(places)
        value = draw.choice(_FORMS).format(x=f"np.asarray({x})" if "max" else x, y=y)
        return f"{target} {draw.choice(['=', '=', '+=', '*='])} " + (f"np.mean({value})" if is_number else value)

    header = draw.choice(
        [
            f"for i in range(1, {ROUNDS - 1}):",
            f"for i in range({ROUNDS - 2}, 0, -1):",
            f"for i in range(1, {ROUNDS - 1}, 1):",
        ]
    )
    body = [f"        {statement()}" for _ in range(draw.randint(1, 3))]
    start = ["    p = (abs(b[:, 0]) * 97.0).astype(int) % 8"] if indirect else []
    return "\n".join(["def case(a, b, v):", *start, f"    {header}", *body, "    return a, b, v.sum()", ""])


@pytest.mark.parametrize("seed", range(SEED * LOOPS, (SEED + 1) * LOOPS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_loops(seed: int) -> None:
    source = loop_program(seed)
    program = program_of(source, f"loop {seed}")
    try:
        program(*inputs(0))
    except ValueError:  # shapes that do not go together
        return
    variant = variant_of(program, inputs)
    if variant is not None:
        assert_replays_agree(variant, program, inputs, source)
