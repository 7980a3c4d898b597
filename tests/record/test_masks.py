"""Masks: selections that are kept as a full array and a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def some(i: int, *shape: int) -> Any:
    return np.random.default_rng(i).normal(size=shape or (8,))


def test_assignment_under_a_mask(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        m = x > 0
        x[m] = np.sqrt(x[m]) + y[m] * 2
        x[~m] = -1.0
        x[m] += 1.0
        x[m] *= y[m]
        return m

    check(work, lambda i: (some(i), some(i + 9)))


def test_reductions_of_a_selection(check: Any) -> None:
    def work(x: Any) -> Any:
        m = x > 0
        return x[m].mean(), np.median(x[x > 0]), x[m].sum(), np.max(x[m]), x[m].std(), x[m].size > 0, np.min(x[m])

    check(work, some)


def test_two_dimensional_masks_and_rows(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        m = x > 0
        x[m] = 0.5 * x[m]
        rows = y[:, 0] > -5
        y[rows] = y[rows] * 2
        return x[m].sum(), y[rows].mean(axis=0), y[0, m[0]].sum()

    check(work, lambda i: (some(i, 3, 4), some(i + 9, 3, 4)))


def test_empty_selections(check: Any) -> None:
    def work(x: Any) -> Any:
        m = x > 1e3
        x[m] = x[m] * 2
        return x[m].sum(), x[m].any(), x[m].mean(), np.median(x[m])

    check(work, some)


def test_an_empty_selection_on_a_later_call(check: Any) -> None:
    def work(x: Any) -> Any:
        return x[x > 0].max(), x[x > 0].mean()

    check(work, lambda i: -abs(some(i)) if i == 7 else abs(some(i)), replays=2)


def test_the_number_of_selected_elements(check: Any) -> None:
    def work(x: Any) -> Any:
        chosen = x[x > 0]
        if len(chosen) == 0:
            return x
        if chosen.size > 2:
            return x * 2
        return x / chosen.size

    check(work, lambda i: np.array([1.0, i % 3 - 1.0, 2.0, (i % 2) - 0.5]), calls=40, replays=10)


def test_where_gives_indices(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        k = np.where(x > 0)[0]
        y[k] = x[k] * 3
        return y[k].sum(), np.nonzero(x > 0)[0].size > 0

    check(work, lambda i: (some(i), some(i + 9)))


def test_flatnonzero_and_argwhere(check: Any) -> None:
    def work(x: Any) -> Any:
        return np.flatnonzero(x > 0), np.argwhere(x > 0)

    check(work, some, replays=0)


def test_two_masks_in_one_operation(check: Any) -> None:
    def work(x: Any) -> Any:
        return (x[x > 0.5].sum() + x[x > 0].sum()) if x[0] > -100 else None

    def mixed(x: Any) -> Any:
        a, b = x[:4], x[4:]
        return a[a > -50] + b[b > -60]

    check(work, some)
    check(mixed, some)


def test_a_selection_of_a_selection(check: Any) -> None:
    def work(x: Any) -> Any:
        y = x[x > -1]
        z = y[y < 1]
        return z.sum(), y.mean()

    check(work, some)


def test_a_mask_changed_after_selecting(check: Any) -> None:
    def work(x: Any) -> Any:
        m = x > 0
        y = x[m]
        m[0] = not m[0]
        x[m] = 1.0
        return y.sum(), x[m].sum()

    check(work, some, replays=0)


def test_changing_the_base_leaves_the_selection(check: Any) -> None:
    def work(x: Any) -> Any:
        y = x[x > 0]
        x[:] = 5.0
        return y.sum()

    check(work, some)


def test_in_place_on_a_selection_leaves_the_base(check: Any) -> None:
    def work(x: Any) -> Any:
        y = x[x > 0]
        y += 1
        y *= y
        return y.sum()

    check(work, some)


@pytest.mark.parametrize("way", ["nan_to_num", "clip", "real", "add", "copyto", "item", "fill", "sort", "view"])
def test_changing_a_selection_in_place_is_seen(check: Any, way: str) -> None:
    def work(x: Any) -> Any:
        y = x[x > -1]
        if way == "nan_to_num":
            y *= np.nan
            np.nan_to_num(y, copy=False, nan=2.0)
        elif way == "clip":
            np.clip(y, 0.0, 0.5, out=y)
        elif way == "real":
            np.real(y)[...] = 3.0
        elif way == "add":
            np.add(y, 1.0, out=y)
        elif way == "copyto":
            np.copyto(y, 2.0)
        elif way == "item":
            y[y < 0] = 0.0
        elif way == "fill":
            y.fill(4.0)
        elif way == "sort":
            y.sort()
        elif way == "view":
            z = y[:]
            z += 1
        return y.sum()

    check(work, some, replays=0)


@pytest.mark.parametrize("way", ["ravel", "reshape", "method", "flatten", "rows", "conj", "astype"])
def test_what_shares_a_selection_s_memory_is_as_numpy_s(check: Any, way: str) -> None:
    def work(x: Any) -> Any:
        y = x[x > -1]
        z = {
            "ravel": lambda: np.ravel(y),
            "reshape": lambda: np.reshape(y, -1),
            "method": lambda: y.ravel(),
            "flatten": lambda: y[::2].ravel(),
            "rows": lambda: y[1:].reshape(-1),
            "conj": lambda: y.conj(),
            "astype": lambda: y.astype(float, copy=False),
        }[way]()
        z += 1.0
        return y.sum(), z is y

    check(work, some, replays=0)


@pytest.mark.parametrize("indices", [False, True])
def test_a_column_of_selected_rows_is_an_array_of_its_own(check: Any, indices: bool) -> None:
    """In NumPy's memory order, also in the call that is recorded."""

    def work(w: Any) -> Any:
        rows = w[:, 0] > -1
        y = w[np.flatnonzero(rows), 1] if indices else w[rows, 1]
        y.ravel()[:] = 1.0
        return y, y.flags.c_contiguous

    check(work, lambda i: some(i, 6, 3), replays=0)


def test_a_selection_that_leaves_the_call(check: Any) -> None:
    check(lambda x: x[x > -0.5], lambda i: np.roll([1.0, -2.0, 3.0, 4.0], i) * (i + 1))


def test_a_selection_in_an_attribute(check: Any) -> None:
    class Holder:
        y: Any = None

    def work(h: Any, x: Any) -> Any:
        h.y = x[x > 0]
        return h.y.sum()

    check(work, lambda i: (Holder(), np.roll([1.0, -2.0, 3.0, 4.0], i) * (i + 1)))


def test_a_selection_of_the_length_of_another_array(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        return (x[x > -100] + y).sum()

    check(work, lambda i: (some(i), some(i + 9)))


def test_mask_from_outside(check: Any) -> None:
    def work(x: Any, m: Any) -> Any:
        x[m] = x[m] + 1
        np.add(x, 5, out=x, where=m)
        return x[m].sum(), np.where(m, x, 0)

    check(work, lambda i: (some(i), some(i + 9) > 0))


def test_boolean_list_and_scalar_masks(check: Any) -> None:
    check(lambda x: x[[True, False, True, False]], lambda i: some(i, 4), replays=0)
    check(lambda x: x[x.sum() > 0], lambda i: some(i, 4), replays=0)


def test_float_into_integer_array_under_a_mask(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        x[y > 0] = y[y > 0] * 3
        return x

    check(work, lambda i: (np.arange(8), some(i)), replays=0)


def test_any_decides_and_selects(check: Any) -> None:
    def work(x: Any) -> Any:
        m = x > 1.2
        if np.any(m):
            x[m] = 0.0
        elif m.all():
            x = x * 0
        return x

    check(work, some, calls=24, replays=10)


@pytest.mark.parametrize("written", [False, True])
def test_a_mask_among_a_selection_is_no_index(check: Any, written: bool) -> None:
    """Its length is that of the selection, on each call another one."""

    def work(x: Any, y: Any, mask: Any) -> Any:
        chosen = x[mask] > 0.5
        if written:
            y[chosen] = 7.0
        return y.sum() if written else y[chosen].sum()

    def make(i: int) -> Any:
        return np.random.default_rng(i).random(10), np.arange(5.0) * 10.0, np.arange(10) % 2 == i % 2

    check(work, make, replays=1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_selected_indices_of_any_dtype(check: Any, dtype: str) -> None:
    def work(rows: Any, index: Any, mask: Any) -> Any:
        chosen = index[mask]
        rows[chosen] = rows[chosen] * 2.0
        return rows[chosen].sum()

    def make(i: int) -> Any:
        generator = np.random.default_rng(i)
        return generator.normal(size=300), generator.permutation(100)[:40].astype(dtype), generator.random(40) < 0.5

    check(work, make)


def test_selected_indices_that_repeat_later(check: Any) -> None:
    """With repeated indices NumPy keeps the last value; XLA leaves open which."""

    def work(rows: Any, index: Any, mask: Any, values: Any) -> Any:
        rows[index[mask]] = values[mask]
        return rows

    def make(i: int) -> Any:
        index = np.array([5, 1, 2, 3, -1, 4]) if i % 4 != 3 else np.array([0, 1, 0, 3, -7, -6])
        return np.arange(7.0), index, np.array([True, True, True, i > 3, True, True]), np.arange(6.0) * 10.0 + i

    check(work, make, calls=24, replays=4, reason="rule.parameter")


def test_the_length_of_a_selection_is_a_number_to_compute_with(check: Any) -> None:
    def work(x: Any, limit: float) -> Any:
        mask = x > limit
        n = len(x[mask])
        indices = np.nonzero(mask)[0]
        mean = 0.0
        if len(indices):
            mean = x[indices].sum() / len(indices)
        half = len(indices) // 2 + 1
        return x[mask].sum() / n, mean, n, half * 0.5, f"{n:d}" if n < 0 else "", np.sqrt(len(x[~mask]))

    checked = check(work, lambda i: (some(i, 60), 0.05 * i), calls=20, replays=15)
    assert len(checked.function._self_target.paths) == 1


def test_the_length_of_a_selection_as_a_shape_or_a_branch_is_an_outcome(check: Any) -> None:
    def work(x: Any) -> Any:
        n = len(x[x > 0])
        total = 0.0
        for k in range(n):
            total = total + x[k]
        return np.zeros(n), total, "many" if n > 2 else "few", len(x[x > 0]) is not None

    check(work, lambda i: np.array([1.0, i % 3 - 1.0, 2.0, (i % 2) - 0.5]), calls=40, replays=10)
