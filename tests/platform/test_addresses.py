"""The inside of NumPy's arrays is as accel knows it."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest

from accel.platform import addresses
from accel.platform.alignment import ALIGNED, made_at

WHOLE = np.arange(60.0).reshape(6, 10)


@pytest.mark.skipif(platform.python_implementation() != "CPython", reason="other objects")
def test_an_array_has_its_address_where_it_is_looked_for() -> None:
    assert addresses.address_of is addresses._from_object


@pytest.mark.parametrize(
    "array",
    [WHOLE, WHOLE[2:, 3:], WHOLE[::-1], WHOLE.T, np.float32(3.0) * np.ones(()), np.empty((0, 3)), np.zeros(9, bool)],
    ids=lambda array: str(array.shape),
)
def test_the_address_is_numpys(array: Any) -> None:
    array = np.asarray(array)
    assert addresses.address_of(array) == array.ctypes.data == array.__array_interface__["data"][0]


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (7,), (40, 25)], ids=str)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "?", "c16"])
def test_new_arrays_are_aligned_and_their_addresses_known(shape: tuple[int, ...], dtype: str) -> None:
    array, address = made_at(shape, np.dtype(dtype))
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert array.flags.c_contiguous and array.flags.writeable
    assert address % ALIGNED == 0 and (address == array.ctypes.data or not array.size)
    array[...] = 1
    assert array.all()
