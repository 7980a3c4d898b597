"""Selections whose length has to be fixed: by walls, classes, positions of extremes; and elements of selections."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.record.conftest import Check


def some(i: int, *shape: int) -> Any:
    return np.random.default_rng(i).normal(size=shape or (12,))


WALLS = np.random.default_rng(5).random((4, 5)) > 0.5
OPPOSITE = np.array([0, 2, 1, 4, 3])

# -- masks on later axes ----------------------------------------------------------------------------------------------


def bounce(f: Any, solid: Any) -> Any:
    f[:, solid] = f[OPPOSITE][:, solid]
    f[1:3, solid] *= 0.5
    return f.sum(axis=0)


def bounce_kept(f: Any, solid: Any) -> Any:
    back = f[:, solid].copy()
    f += 1.0
    f[:, solid] = back[OPPOSITE, :]
    f[..., solid] += 2.0
    return f[:, solid].mean(axis=1), f[0, solid]


def rest(f: Any, solid: Any) -> Any:
    f[:, solid] = 0.0
    f[0][solid] = 1.0
    f[:, ~solid] -= f[:, ~solid].mean(axis=1)[:, None]
    i, j = np.nonzero(solid)
    f[1, i, j] = f[2, i, (j + 1) % 5]
    return np.argwhere(solid), len(i), f[:, solid].shape


@pytest.mark.parametrize("function", [bounce, bounce_kept, rest], ids=lambda each: each.__name__)
def test_a_lattice_with_walls(check: Check, function: Any) -> None:
    check(function, lambda i: (some(i, 5, 4, 5), WALLS.copy()))


def test_writing_numbers_under_a_mask_on_a_later_axis_takes_no_length(check: Check) -> None:
    def work(v: Any, x: Any) -> Any:
        v[:, x > 0] = 0.0
        v[..., x < -1] = v[:, :1]
        return v

    checked = check(work, lambda i: (some(i, 3, 12), some(i + 50)), replays=6)
    assert len(checked.function._self_target.paths) == 1


def test_columns_that_a_mask_keeps(check: Check) -> None:
    def work(v: Any, keep: Any) -> Any:
        kept = v[:, keep]
        return kept @ kept.T, kept.mean(axis=1), kept.shape[1], v[0:2, keep]

    check(work, lambda i: (some(i, 3, 6), np.array([True, False, True, True, False, True])))


def test_another_length_is_another_path(check: Check) -> None:
    def work(v: Any, x: Any) -> Any:
        return v[:, x > 0] * x[x > 0], x[x > 0]

    check(
        work, lambda i: (some(i, 3, 6), np.roll([1.0, -1.0, 2.0, -3.0, float(i % 3 - 1), 1.0], i)), calls=30, replays=20
    )


# -- elements and slices of selections ---------------------------------------------------------------------------------


def test_single_elements_of_a_selection(check: Check) -> None:
    def work(x: Any, k: int) -> Any:
        found = np.flatnonzero(x > 0)
        first, last = int(found[0]), found[-1]
        return first, last, x[first:].sum() if first < 0 else x[last], x[x > 0][0], x[x < 5][k], x[x < 5][-2]

    checked = check(work, lambda i: (some(i), i % 4), replays=6)
    assert len(checked.function._self_target.paths) == 1


def test_an_element_that_is_not_there(check: Check) -> None:
    def work(x: Any) -> Any:
        return np.flatnonzero(x > 0)[-1], np.nonzero(x > 0)[0][1]

    check(work, lambda i: -abs(some(i)) if i in (5, 7) else abs(some(i)), replays=2)


def test_parts_of_a_selection(check: Check) -> None:
    def work(x: Any) -> Any:
        chosen = x[x > 0]
        return chosen[:2].sum(), chosen[1:].sum(), chosen[-2:].mean(), chosen[::2].sum(), chosen[1:-1:2].sum()

    checked = check(work, lambda i: some(i, 30), replays=6)
    assert len(checked.function._self_target.paths) == 1


def test_views_of_a_selection_stay_views(check: Check) -> None:
    def work(x: Any) -> Any:
        chosen = x[x > -0.5]
        part, all_of_it = chosen[1:], chosen[:]
        part += 1.0
        chosen[0] = 7.0
        all_of_it *= 2.0
        chosen.sort()
        return chosen, part, all_of_it, chosen.sum()

    check(work, lambda i: np.roll([1.0, -2.0, 3.0, 4.0], i) * (i + 1))


def test_a_selection_changed_element_by_element(check: Check) -> None:
    def work(x: Any) -> Any:
        chosen = x[x > -0.5]
        chosen[chosen > 5.0] = 5.0
        total = 0.0
        for value in chosen:
            total += value
        return total, chosen.max()

    check(work, lambda i: np.roll([1.0, -2.0, 3.0, 4.0], i) * (i + 1))


def test_what_needs_the_length(check: Check) -> None:
    def work(x: Any, y: Any) -> Any:
        chosen, other = x[x > -0.5], y[x > -0.5]
        cumulated = np.cumsum(chosen)
        return (
            chosen @ other,
            np.linalg.norm(chosen),
            cumulated[-1],
            np.sort(chosen)[::-1],
            np.argmax(chosen),
            np.diff(np.flatnonzero(x > -0.5)),
            np.concatenate([chosen, other]),
            np.percentile(chosen, 90),
            np.bincount(np.flatnonzero(x > -0.5)),
            chosen.reshape(1, -1),
            {"chosen": chosen},
        )

    check(work, lambda i: (np.roll([1.0, -2.0, 3.0, 4.0], i) * (i + 1), some(i, 4)), calls=12, replays=5)


def test_adding_at_selected_places(check: Check) -> None:
    def work(x: Any) -> Any:
        places = np.flatnonzero(x > -0.5)
        np.add.at(x, places, 1.0)
        x[places] = x[places][::-1]
        return places

    check(work, lambda i: np.roll([1.0, -2.0, 3.0, 4.0], i) * (i + 1))


def test_a_selection_kept_by_an_object(check: Check) -> None:
    def work(holder: Any, x: Any) -> Any:
        holder.last = x[x > -0.5]
        holder.all.append(holder.last)
        holder.last += 1.0
        return holder.last[0]

    def worlds() -> Any:
        holder = SimpleNamespace(last=None, all=[])
        return lambda i: (holder, np.roll([1.0, -2.0, 3.0, 4.0], i) * (i + 1))

    check(work, worlds=worlds, calls=12, replays=3)


def test_an_exception_after_settling_leaves_nothing_behind(check: Check) -> None:
    def work(x: Any, y: Any) -> Any:
        chosen = x[x > -0.5]
        x[:] = 0.0
        return chosen + y

    check(work, lambda i: (np.roll([1.0, -2.0, 3.0, 4.0], i), some(i, 3 + (i == 6))), replays=2)


# -- found by an adversary ------------------------------------------------------------------------------------------


def kept_small(i: int) -> Any:
    """Three of four are selected."""
    return np.roll([1.0, -2.0, 3.0, 4.0], i) * (i + 1)


def test_settled_on_both_sides_of_a_branch(check: Check) -> None:
    def work(x: Any, y: Any) -> Any:
        chosen = x[x > -0.5]
        if y.sum() > 0:
            chosen = chosen * 2
            part = chosen[:2].sum()
        else:
            chosen += 1
            part = chosen[-1]
        square = chosen @ chosen
        if y[0] > 0:
            chosen[0] = 9
        return chosen, part, square

    check(work, lambda i: (kept_small(i), some(i)), calls=40, replays=20)


def test_nothing_is_selected(check: Check) -> None:
    def work(x: Any, m: Any) -> Any:
        return x[m], x[m].sum(), x[:0][m[:0]], np.unique(x[m]), np.flatnonzero(m), np.argwhere(m), x[m][:3].sum()

    check(work, lambda i: (some(i, 4), np.zeros(4, bool)))


def test_elements_in_loops(check: Check) -> None:
    def work(x: Any, n: int) -> Any:
        total, rounds = 0.0, 0
        for _ in range(n):
            found = np.flatnonzero(x > 0)
            if found.size == 0:
                break
            total += x[found[0]]
            x[found[0]] = -1.0
        x = abs(x)
        while (x > 0.3).any():
            x[np.flatnonzero(x > 0.3)[-1]] *= 0.5
            rounds += 1
        return total, x, rounds

    check(work, lambda i: (some(i, 6), 3), calls=30, replays=5)


def test_the_same_selection_by_two_names(check: Check) -> None:
    def work(x: Any, y: Any) -> Any:
        mask = x > -0.5
        chosen = x[mask]
        again = chosen
        np.multiply(chosen, 2.0, out=chosen)
        y[mask] = again
        mask[:] = True
        flipped = chosen.T
        flipped[0] = -1.0
        return chosen, again, y, x[mask]

    check(work, lambda i: (kept_small(i), some(i, 4)))


def test_rows_and_columns(check: Check) -> None:
    def work(f: Any, m: Any, k: int) -> Any:
        rows = f[m]
        rows[:, 0] = 5
        row = rows[0]
        row += 1
        f[m, 1] = 7.0
        f[k, m[:3]] = 2
        return rows, row, f, f[m][:, ::-1], f[:, m[:3]][k]

    check(work, lambda i: (some(i, 4, 3), np.array([True, False, True, True]), i % 3))


def test_masks_between_other_axes(check: Check) -> None:
    def work(f: Any, g: Any, m: Any, v: Any) -> Any:
        f[:, m, 0] = 1.0
        f[:, :, 0][:, m] = 2.0
        f[0, :, m[:3]] = 3.0
        g[:, m] = v
        g[m[:2]] = g[0]
        g[..., m] += v[:, :1]
        return f, f[:, m].sum(axis=(0, 1)), f[None][:, :, m], g

    mask = np.array([True, False, True, True])
    check(work, lambda i: (some(i, 2, 4, 3), some(i, 2, 4), mask.copy(), some(i + 3, 2, 3)))


# -- sets -------------------------------------------------------------------------------------------------------------


def classes(i: int) -> Any:
    return np.random.default_rng(i).permutation([0, 1, 2, 2, 5, 5, 1, 0, 9])


def test_the_classes_of_a_sample(check: Check) -> None:
    def work(labels: Any, x: Any) -> Any:
        values, inverse, counts = np.unique(labels, return_inverse=True, return_counts=True)
        means = [x[labels == value].mean() for value in np.unique(labels)]
        per_class = np.bincount(inverse, weights=x) / counts
        return values, means, per_class, len(values), values[np.argmax(counts)]

    check(work, lambda i: (classes(i), some(i, 9)))


def test_sets_of_two_arrays(check: Check) -> None:
    def work(a: Any, b: Any) -> Any:
        return np.union1d(a, b), np.intersect1d(a, b), np.setdiff1d(a, b), np.setxor1d(a, b)

    check(work, lambda i: (classes(i), classes(i + 1)[:4] % 2 + 2))


def test_another_number_of_classes(check: Check) -> None:
    def work(labels: Any) -> Any:
        return np.unique(labels), np.unique(labels[labels > 1]).sum()

    check(work, lambda i: np.where(classes(i) > i % 3, classes(i), 1), calls=24, replays=4)


def test_distinct_floats(check: Check) -> None:
    def work(x: Any) -> Any:
        values, index, counts = np.unique(x, return_index=True, return_counts=True)
        return values, index, counts, np.unique(x, equal_nan=False).size

    check(work, lambda i: np.random.default_rng(i).permutation([1.5, np.nan, np.nan, -np.inf, 0.25, 1.5, np.inf]))


@pytest.mark.parametrize("count", [lambda z: np.unique(z).size, lambda z: np.union1d(z, z[:2]).size])
def test_the_number_of_different_complex_numbers_is_no_constant(check: Check, count: Any) -> None:
    """No compiled program has their values; it must not have their number either."""
    check(lambda z: z.sum() * count(z), lambda i: np.array([0.0, i % 3, 1j, 1.0, i % 2]) + 0j, replays=0)
