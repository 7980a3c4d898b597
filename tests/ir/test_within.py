"""A box within a box, against NumPy."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from accel.ir.views import Index, within


def key_of(draw: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A random key of boxes, some of whose axes are left out."""
    key: list[Any] = []
    for length in shape[: draw.randint(0, len(shape))]:
        start = draw.randint(-length, length - 1)
        stop = draw.choice([None, draw.randint(-length, length + 2)])
        key.append(draw.choice([start, slice(start, stop), slice(None), slice(None, stop)]))
    if draw.random() < 0.3:
        key.append(Ellipsis)
    return tuple(key)


@pytest.mark.parametrize("seed", range(20))
def test_it_shows_what_the_inner_shows_of_the_outer(seed: int) -> None:
    draw, array = random.Random(seed), np.arange(4 * 5 * 6).reshape(4, 5, 6)
    for _ in range(200):
        outer = Index(key_of(draw, array.shape))
        view = outer.read(array)
        if 0 in np.shape(view):
            continue
        inner = Index(key_of(draw, np.shape(view)))
        both, expected = within(array.shape, outer, inner), inner.read(view)
        if both is None:
            assert np.size(expected) == 0
        else:
            np.testing.assert_array_equal(both.read(array), expected)


@pytest.mark.parametrize("outer, inner", [((None, 1), (0,)), ((slice(None, None, 2),), (1,)), ((1,), (None, 2))])
def test_what_is_no_box_has_none(outer: tuple[Any, ...], inner: tuple[Any, ...]) -> None:
    assert within((4, 5), Index(outer), Index(inner)) is None
