"""Whether arrays may share memory: as NumPy's exact answer, or on the safe side."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from accel.ir.overlap import are_apart, may_share

DTYPES = (
    np.dtype([("x", float), ("y", float), ("n", np.int32), ("pos", float, (3,))]),
    np.dtype([("a", "i1"), ("b", "f8"), ("c", "i2")]),  # packed
    np.dtype({"names": ["u", "v"], "formats": ["f8", "f8"], "offsets": [0, 4], "itemsize": 16}),  # overlapping
)


def views(array: Any) -> list[Any]:
    fields = [array[name] for name in array.dtype.names]
    found = [*fields, *(each[::2] for each in fields), *(each[1:] for each in fields), *(each[::-1] for each in fields)]
    found += [each[0] for each in fields if each.ndim > 1] + [each[..., 1] for each in fields if each.ndim > 1]
    found += [each[2:3] for each in fields] + [each[:0] for each in fields]
    return [*found, array.view(np.uint8), array.view(np.uint8)[::3]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 4)])
def test_never_apart_where_memory_is_shared(dtype: Any, shape: tuple[int, ...]) -> None:
    for one, other in itertools.combinations(views(np.zeros(shape, dtype)), 2):
        if np.shares_memory(one, other):
            assert may_share(one, other)
            assert may_share(other, one)


@pytest.mark.parametrize("seed", range(40))
def test_several_are_apart_as_each_pair_is(seed: int) -> None:
    draw = random.Random(seed)
    bases = [np.zeros((4, 6)), np.zeros((4, 6), order="F"), np.zeros(24)[::2], np.broadcast_to(np.zeros(5), (3, 5))]
    found = [each for dtype in DTYPES for each in views(np.zeros(7, dtype))]
    found += [each[i:j] for each in bases for i, j in ((0, 1), (1, 3), (2, 2), (0, None))]
    arrays = dict(enumerate(draw.sample(found, draw.randrange(2, 9))))
    written = set(draw.sample(sorted(arrays), draw.randrange(1, len(arrays))))
    pairs = [pair for pair in itertools.combinations(arrays, 2) if written.intersection(pair)]
    assert are_apart(arrays, written) is not any(may_share(arrays[one], arrays[other]) for one, other in pairs)


@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_fields_lie_apart(dtype: Any) -> None:
    array = np.zeros(7, dtype)
    for one, other in itertools.permutations(dtype.names, 2):
        assert np.may_share_memory(array[one], array[other]), "which is why this is needed"
        assert not may_share(array[one], array[other])
        assert not may_share(array[one][1:], array[other][::-1])


def test_ordinary_arrays() -> None:
    x = np.zeros((6, 8))
    assert may_share(x, x[2:])
    assert may_share(x[:, 0], x)
    assert not may_share(x[:, :2], x[:, 4:6])
    assert may_share(x[:, :3], x[:, 2:5])
    assert not may_share(x, x.copy())
    sliding = np.lib.stride_tricks.sliding_window_view(np.zeros(9), 3)
    assert may_share(sliding, sliding[2:])
