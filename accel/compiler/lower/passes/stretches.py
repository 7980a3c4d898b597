"""Repeating stretches of a sequence: the iterations of a loop that may be rolled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def stretches(kinds: NDArray[Any], length: int) -> list[tuple[int, int]]:
    """Begin and end of each stretch of items that equal the item `length` further on.

    A stretch of n items is n // length + 1 iterations of `length` items: the last iteration has nothing to equal.
    """
    equal = kinds[:-length] == kinds[length:]
    edges = np.flatnonzero(np.diff(np.concatenate(([0], equal.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
