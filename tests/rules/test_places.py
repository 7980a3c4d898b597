"""Views of elements at regular distances: as_strided, and numpy.einsum of one operand. They are read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import accel
from accel.ir.views import StridedElements


def im2col(x: Any, k: int = 3) -> Any:
    h, w = x.shape
    s = x.strides
    return as_strided(x, (h - k + 1, w - k + 1, k, k), (s[0], s[1], s[0], s[1])).reshape(-1, k * k)


def blocks_reset(x: Any) -> Any:
    y = x * 2.0
    rows, columns = y.strides
    tiles = as_strided(y, (4, 5, 3, 4), (3 * rows, 4 * columns, rows, columns))
    tiles[1:3, 2] = tiles.mean(axis=(2, 3))[1:3, 2, None, None]
    return y, tiles.sum(axis=(0, 1))


def of_columns(x: Any) -> Any:
    y = np.asfortranarray(x[:, :12]) * 2.0
    np.einsum("...ii->...i", y.T)[:] = x[0, :12]
    return y, np.einsum("ij->ji", y.T[1:])


def diagonal_shifted(x: Any) -> Any:
    square = x[:, :12] @ x[:, :12].T
    diagonal = np.einsum("ii->i", square)
    diagonal += 1.0
    square *= 0.5
    return square, diagonal * 3


def of_each(x: Any) -> Any:
    stack = x.reshape(12, 5, 4)[:, :4] * 1.5
    return np.einsum("eii->ei", stack).sum(axis=1), np.einsum("eij->jie", stack) + 1


def of_the_argument(x: Any) -> Any:
    np.einsum("ij->ji", x)[3] = 7.0
    return x.sum(axis=1)


def given_back(x: Any) -> Any:
    return np.einsum("ii->i", x[:, :12]), x.sum()


COMPILED = [im2col, blocks_reset, of_columns, diagonal_shifted, of_each, of_the_argument, given_back]


@pytest.mark.parametrize("work", COMPILED)
def test_views_are_numpys(work: Callable[..., Any], foreground: None) -> None:
    fast: Any = accel.accelerate(work)
    rng = np.random.default_rng(0)
    for _ in range(6):
        x = rng.standard_normal((12, 20))
        mine, theirs = x.copy(), x.copy()
        expected, found = work(theirs), fast(mine)
        for one, other in zip(_parts(found), _parts(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(mine, theirs)
        assert np.shares_memory(_parts(found)[0], mine) == np.shares_memory(_parts(expected)[0], theirs)
    assert fast._self_target.ledger.compiled_calls


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def overlapping(x: Any) -> Any:
    y = x[0] + 1.0
    as_strided(y, (18, 3), (8, 8))[2] = 5.0
    return y


def beyond(x: Any) -> Any:
    return as_strided(x[0, :4], (8,), (8,)) * 2


def across(x: Any) -> Any:
    return as_strided(x.T, (20, 6), x.T.strides) * 2


@pytest.mark.parametrize(
    ("work", "reason"), [(overlapping, "alias.overlap"), (beyond, "rule.parameter"), (across, "rule.parameter")]
)
def test_what_stays_on_numpy(work: Callable[..., Any], reason: str, foreground: None) -> None:
    fast: Any = accel.accelerate(work)
    for _ in range(6):
        x = np.random.default_rng(0).standard_normal((12, 20))
        np.testing.assert_array_equal(fast(x), work(x))
    assert [each.reason for each in fast._self_target.ledger.refusals] == [reason]


def test_places_of_an_array_in_another_order() -> None:
    base = np.arange(12.0).reshape(3, 4)
    step = StridedElements((3, 2), (4, 2))
    np.testing.assert_array_equal(step.read(np.asfortranarray(base)), base[:, ::2])
    assert step.last == 10
    written = step.write(np.asfortranarray(base), -1.0)
    assert (written[:, ::2] == -1).all()
    assert (written[:, 1::2] == base[:, 1::2]).all()
