"""Selections whose length stays open: sorted, summed up, and taken row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accel
from accel.platform import config
from accel.platform.ledger import open_ledger


def given_arrays(i: int) -> tuple[Any, ...]:
    """An array with a mask that selects another number in each call; a matrix with a mask of its columns."""
    rng = np.random.default_rng(i)
    x, m = rng.normal(size=40), rng.random(40) < 0.6
    w, c = rng.normal(size=(6, 20)), rng.random(20) < 0.6
    m[:2] = c[:2] = True
    return x, m, w, c


def sorted_parts(x: Any, m: Any, w: Any, c: Any) -> Any:
    s = np.sort(x[m])
    n = len(s)
    return s[:3].sum(), s[-2:].mean(), s[n // 2], s[int(0.9 * (n - 1))], np.sort(w.T[c], axis=0)[1:].sum(axis=0)


def quantiles(x: Any, m: Any, w: Any, c: Any) -> Any:
    low, high = np.percentile(x[m], [25, 75])
    s = x[m]
    return low, high, np.quantile(s, 0.3), s[(s >= low) & (s <= high)].mean(), np.quantile(w.T[c], 0.2, axis=0)


def running(x: Any, m: Any, w: Any, c: Any) -> Any:
    total = np.cumsum(x[m])
    return total[-1], total.max(), (total * x[m]).sum(), np.cumprod(1 + x[m] / 50)[-1]


def row_by_row(x: Any, m: Any, w: Any, c: Any) -> Any:
    x = np.where(m, x, np.nan)  # what is left out may be anything
    a, b = np.outer(x, [1.0, 2.0, 3.0])[m], np.outer(x + 1.0, [2.0, 1.0, 0.5])[m]
    lengths = np.einsum("ij,ij->i", a, b), np.linalg.norm(a, axis=1), a @ w[0, :3]
    vectors = a @ w[:3, :4], np.einsum("ij,jk->ik", a, w[:3, :4]), np.cross(a, b), np.cross(w[1, :3], a)
    points = np.linspace(-1.0, 1.0, 6)
    places = np.interp(x[m], points, w[:, 0]), np.searchsorted(points, x[m]), np.polyval(w[0, :3], x[m])
    table = np.column_stack([x[m], a[:, 1], b])
    return [each.sum() for each in (*lengths, *places)], [each.sum(axis=0) for each in (*vectors, table)]


PROGRAMS = (sorted_parts, quantiles, running, row_by_row)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_length_is_no_part_of_the_path(program: Any, check: Any) -> None:
    check(program, given_arrays)


@settings(max_examples=40)
@given(
    values=st.lists(st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=False), min_size=8, max_size=8),
    chosen=st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_special_values_are_where_numpy_has_them(values: list[float], chosen: list[bool]) -> None:
    x, m = np.array(values), np.array(chosen)
    with config.override(ahead_of_time=False, cache_dir=None), np.errstate(all="ignore"):
        expected, found = placed(x, m), fast_placed(x, m)
    for one, other in zip(found, expected, strict=True):
        # subnormal numbers are 0 in programs
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=np.finfo(np.float64).tiny)


def placed(x: Any, m: Any) -> Any:
    s = np.sort(x[m])
    return s.size, np.where(m, x, 0.0), np.median(x[m]), s.max() if s.size else 0.0, np.sort(x[m])[:1].sum()


fast_placed = accel.accelerate(placed, name="placed")


def test_a_selection_of_columns_has_a_length(check: Any) -> None:
    def program(x: Any, m: Any, w: Any, c: Any) -> Any:
        part = w[:, c]
        part[0] = 1.0
        total = sum(row.sum() for row in w[:, c])
        centred = 2 * w[1:, c] + w[0, c] - w[1:, c].mean(axis=1, keepdims=True)
        return part.sum(), len(part), total, w[..., c], centred.std(axis=1), np.median(part, axis=1), w[:, c] @ w[0, c]

    def make(i: int) -> Any:
        x, m, w, _ = given_arrays(i)
        return x, m, w, np.roll(np.arange(20) < 9, i)

    check(program, make)


def test_other_operands_have_axes_of_their_own(check: Any) -> None:
    rows = np.arange(6) % 2 == 0

    def program(x: Any, m: Any, w: Any, c: Any) -> Any:
        part = w[:, c]
        return part.sum(where=rows[:, None]), np.dot(part, part[0]), x[m].sum(where=m[m]), np.dot(w[:, c], w[0, c])

    def make(i: int) -> Any:
        x, _, w, _ = given_arrays(i)
        return x, np.roll(np.arange(40) < 9, i), w, np.roll(np.arange(20) < 6, i)

    check(program, make, replays=0)


def test_an_empty_selection_has_no_quantile(check: Any) -> None:
    def program(x: Any, m: Any, w: Any, c: Any) -> Any:
        try:
            return np.percentile(x[m], 30)
        except IndexError:
            return -1.0

    def make(i: int) -> Any:
        x, m, w, c = given_arrays(i)
        return x, m & (i != 7), w, c

    check(program, make, replays=2)


def test_rows_meet_other_rows(check: Any) -> None:
    """Selected rows are no rows where another operand has as many, or where an operand is selected in another axis."""

    def program(x: Any, m: Any, w: Any, c: Any) -> Any:
        a = np.outer(x, [1.0, 2.0, 3.0])[m]
        other = np.outer(np.arange(len(a)), [1.0, 0.0, 2.0])
        return (
            np.einsum("ij,ij->i", a, other),
            np.cross(a, other),
            np.einsum("ij,kj->ik", a, a),
            np.einsum("ii", a @ a.T),
        )

    def make(i: int) -> Any:
        x, _, w, c = given_arrays(i)
        return x, np.roll(np.arange(40) < 9, i), w, c

    check(program, make, replays=0)


def test_arrays_that_shape_a_program_are_compared_as_wholes() -> None:
    class World:
        levels = np.array([0.1, 0.5])

    world = World()

    def program(x: Any) -> Any:
        return np.quantile(x, world.levels)

    with config.override(ahead_of_time=False, cache_dir=None):
        fast = accel.accelerate(program, name="levels")
        for i in range(12):
            if i == 8:
                world.levels[1] = 0.7
            x = np.random.default_rng(i).normal(size=30)
            np.testing.assert_allclose(fast(x), program(x), rtol=1e-12)
    assert open_ledger("levels").compiled_calls >= 5
