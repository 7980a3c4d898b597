"""Arrays at any address: programs of XLA's give NumPy's results."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest

import accel

pytestmark = pytest.mark.usefixtures("foreground", "by_xla")


def placed(array: Any, offset: int) -> Any:
    """The array so many bytes behind the beginning of a page."""
    room = np.full(array.nbytes + 4 * mmap.PAGESIZE, 255, np.uint8)
    room = room[-room.ctypes.data % mmap.PAGESIZE + mmap.PAGESIZE :]
    made = room[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def numbers(shape: tuple[int, ...], dtype: str = "float64") -> Any:
    return (np.arange(int(np.prod(shape))) % 7).reshape(shape).astype(dtype)


LARGE = (260, 300)
CALLS = 24


def work(x: Any, y: Any) -> Any:
    z = np.sin(x) + 2.0 * y
    z[1:] -= z[:-1] * x[1:]
    return z, x, z.sum(axis=0)


@pytest.mark.parametrize("writeable", [True, False])
def test_results_are_numpys_wherever_arrays_lie(writeable: bool) -> None:
    fast = accel.accelerate(work)
    x, y = numbers(LARGE) / 7, numbers(LARGE) / 3
    for k in range(2 * CALLS):
        lines = (16 * (k % 3 + 1), 48) if k < CALLS else (16 * (k % 9), 16 * (k % 5))
        mine = [placed(x + k, lines[0]), placed(y - k, lines[1])]
        for array in mine:
            array.flags.writeable = writeable
        before = [array.copy() for array in mine]
        for got, wanted in zip(fast(*mine), work(*before), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
        for array, old in zip(mine, before, strict=True):
            np.testing.assert_array_equal(array, old)


def test_a_program_keeps_the_memory_that_it_reads() -> None:
    """The array is gone once the call is over; nobody has written to its memory before that."""
    fast = accel.accelerate(lambda x: np.cumsum(x, axis=0)[-1])
    for k in range(CALLS):
        np.testing.assert_array_equal(fast(placed(numbers(LARGE) + k, 48)), (numbers(LARGE) + k).sum(axis=0))


def halves(x: Any) -> Any:
    return x[::2] == x[1::2], x[3] if x.dtype == bool else -x[3]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int16", "uint8", "bool", "complex64", "complex128"])
def test_each_kind_of_number(dtype: str) -> None:
    fast = accel.accelerate(halves)
    for offset in (16, 32, 0, 48, 16, 80) * 4:
        x = placed(numbers((2048, 256), dtype), offset)
        for got, wanted in zip(fast(x), halves(x), strict=True):
            np.testing.assert_array_equal(got, wanted)
            assert got.dtype == wanted.dtype
