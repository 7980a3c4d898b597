"""Whether two arrays may share memory: by where they begin and end, but for fields of the same records.

The fields of an array of records lie between one another: NumPy's quick answer, by bounds, says nothing of them.
Its exact one may take exponential time.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from accel.platform.addresses import address_of


def may_share(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays may share memory. False only if they certainly do not."""
    return np.may_share_memory(one, other) and not _lie_between(one, other)


def are_apart(arrays: Mapping[int, np.ndarray[Any, Any]], written: Collection[int]) -> bool:
    """Whether none of the arrays, by their keys, shares memory with one that is written: certainly, see `may_share`."""
    begun: list[tuple[int, int]] = []
    for low, high, key in sorted([(*_ends(array), key) for key, array in arrays.items()]):
        # most end before the next one begins: of all pairs, few are left
        begun = [each for each in begun if each[0] > low]
        for _, other in begun:
            if (key in written or other in written) and may_share(arrays[key], arrays[other]):
                return False
        begun.append((high, key))
    return True


def _ends(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The addresses of an array's first byte and of the one behind its last."""
    if array.flags.forc:
        low = address_of(array)
        return low, low + array.nbytes
    return byte_bounds(array)


def _lie_between(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether the elements of one lie in the gaps that those of the other leave, in each period of both."""
    (size, steps), (other_size, other_steps) = _blocks(one), _blocks(other)
    period = math.gcd(*steps, *other_steps)
    apart = (address_of(other) - address_of(one)) % period if period else 0
    return size <= apart and apart + other_size <= period


def _blocks(array: np.ndarray[Any, Any]) -> tuple[int, list[int]]:
    """The bytes of the contiguous blocks that an array consists of, and the distances at which they are repeated."""
    block = array.itemsize
    axes = [(stride, size) for stride, size in zip(array.strides, array.shape, strict=True) if size > 1]
    while axes and axes[-1][0] == block:
        block *= axes.pop()[1]
    return block, [abs(stride) for stride, _ in axes]
