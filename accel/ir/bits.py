"""Bitwise equality, by which guards compare arrays and numbers: -0.0 differs from 0.0, a NaN equals itself."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable
from typing import Any

import numpy as np

MOST_BYTES = 1 << 20
"""Maximum bytes of an array that is also held as bytes: larger comparisons take the time of reading memory anyway."""


class Content:
    """An array's contents, for bitwise comparison with other arrays of its dtype and shape."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        self._words = _words(array)
        # Comparing with bytes is one call of the C library's, several times as quick; for it, they are held twice.
        has_bytes = array.flags.c_contiguous and array.nbytes <= MOST_BYTES
        self._bytes = bytearray(array.data) if has_bytes else None

    def is_same(self, other: np.ndarray[Any, Any]) -> bool:
        """Whether an array of the same dtype and shape has the same bits."""
        if self._bytes is not None and other.flags.c_contiguous:
            return self._bytes == other.data
        # Integers, since a NaN must equal itself and -0.0 must differ from 0.0; and no copy is made, as by tobytes().
        words = _words(other)
        if words is None or self._words is None:
            return other.tobytes() == self._array.tobytes()
        return bool((words == self._words).all())

    def __eq__(self, other: object) -> bool:
        mine = self._array
        if not isinstance(other, Content) or (mine.shape, mine.dtype) != (other._array.shape, other._array.dtype):
            return False
        return self.is_same(other._array)

    __hash__ = None  # type: ignore[assignment]


def _words(array: np.ndarray[Any, Any]) -> Any:
    """The array's bits as integers; None where there are none of its size."""
    if array.dtype.itemsize in (1, 2, 4, 8):
        return array.view(f"u{array.dtype.itemsize}")
    return array.view("u8") if array.dtype.itemsize == 16 and array.ndim and array.flags.c_contiguous else None


def same_array(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    """Whether dtype, shape and bits are equal; without copies, where there are integers of the elements' size."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    mine, other = _words(left), _words(right)
    return left.tobytes() == right.tobytes() if mine is None or other is None else bool((mine == other).all())


def array_key(array: np.ndarray[Any, Any]) -> Hashable:
    """A key that is equal for arrays of the same dtype, shape and bits; of one that holds objects, equal to nothing."""
    if array.dtype.hasobject:
        return object()
    return str(array.dtype), array.shape, hashlib.blake2b(array.tobytes(), digest_size=20).digest()


def same_value(left: Any, right: Any) -> bool:
    """Whether two arrays or two scalars are the same."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return same_array(left, right)
    return same_scalar(left, right)


def same_scalar(left: object, right: object) -> bool:
    """Whether type and bits are equal: -0.0 differs from 0.0, a NaN equals itself."""
    return type(left) is type(right) and same_number(left, right)


def same_number(left: Any, right: Any) -> bool:
    """Whether two numbers of any types are equal: -0.0 differs from 0.0, a NaN equals itself."""
    if isinstance(left, (complex, np.complexfloating)):
        return same_number(left.real, right.real) and same_number(left.imag, right.imag)
    if left == right:
        return bool(left != 0) or math.copysign(1.0, left) == math.copysign(1.0, right)
    return bool(left != left and right != right)


def same_constant(one: Any, other: Any) -> bool:
    """Whether constants of generated code are equal, or one object where they are not compared by value."""
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same_constant, one, other))
    if type(one) in (float, complex):
        return same_number(one, other)
    return isinstance(one, _BY_VALUE) and bool(one == other)


_BY_VALUE = (str, bytes, int, np.bool_, np.dtype, set, Content)
"""Types of constants that are the same if they are equal. All others must be one object."""
