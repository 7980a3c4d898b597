"""Sorting and order statistics by NumPy, in the middle of a program's run.

XLA:CPU sorts some 10 to 50 times slower than NumPy, and finds a median in six times what NumPy's selection takes for
one position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules import filling
from accel.rules.lowering import Array
from accel.rules.tracing import current

WORTH = 256
"""Elements from which a call is cheaper than what it gains. Kernels cannot sort: beside them, any call is cheaper."""

SAMPLED = 1024
"""Elements from which a sample is worth its sort."""

MANY = 4
"""More positions than this among sorted elements are looked up in all of them, sorted."""


def are_called(x: Any) -> bool:
    """Whether NumPy is to sort this, or to select from it."""
    return filling.are_allowed() and bool(x.size >= WORTH or current().for_kernels)


@dataclass(frozen=True)
class _Sorted:
    axis: int

    def __call__(self, x: NDArray[Any], result: NDArray[Any]) -> None:
        result[...] = x
        result.sort(axis=self.axis)


@dataclass(frozen=True)
class _Order:
    axis: int

    def __call__(self, x: NDArray[Any], result: NDArray[Any]) -> None:
        result[...] = x.argsort(axis=self.axis, kind="stable")


def in_order(x: Array, axis: int, otherwise: Callable[[Array], Any]) -> Any:
    """`x`, sorted along an axis; NaN last. otherwise: the same by XLA."""
    if not are_called(x):
        return otherwise(x)
    return filling.filled(_Sorted(axis), [x], x.shape, x.dtype, otherwise)


def positions(x: Array, axis: int, otherwise: Callable[[Array], Any]) -> Any:
    """The positions of the sorted elements along an axis, those of equal ones in their order. otherwise: by XLA."""
    if not are_called(x):
        return otherwise(x)
    return filling.filled(_Order(axis), [x], x.shape, np.int64, otherwise)


def _two(x: NDArray[Any], k: NDArray[Any], result: NDArray[Any]) -> None:
    """For each of k, the element at this position among the sorted ones, and the next."""
    whole = np.sort(x) if len(k) > MANY else None
    for at, each in enumerate(k):
        result[:, at] = _pair(x, int(each)) if whole is None else _at(whole, int(each))


def _pair(x: NDArray[Any], k: int) -> tuple[Any, Any]:
    """Select from the few elements between two of a sorted sample (R. W. Floyd and R. L. Rivest, 1975).

    NumPy's selection for one position takes 2 ns an element, but 10 where a processor stores parts of vectors slowly
    (AMD Zen 4). This takes 2 to 4.
    """
    if len(x) < SAMPLED:
        return _at(np.partition(x, k), k)
    apart = round(len(x) ** (1 / 3))
    sample = np.sort(x[apart // 2 :: apart])
    middle, width = k * len(sample) // len(x), round(1.2 * len(sample) ** 0.5) + 1
    low = sample[middle - width] if middle >= width else -np.inf
    high = sample[middle + width] if middle + width < len(sample) else np.inf
    below = x < low
    near, first = x[below != (x <= high)], k - int(np.count_nonzero(below))
    if 0 <= first < len(near) - 1:
        return _at(np.partition(near, (first, first + 1)), first)
    return _at(np.partition(x, k), k)


def _at(parts: NDArray[Any], k: int) -> tuple[Any, Any]:
    """The element at k, and the smallest of those after it, which are no smaller."""
    return parts[k], np.minimum.reduce(parts[k + 1 :], initial=np.inf)


def two_of(x: Array, k: Array, otherwise: Callable[[Array, Array], tuple[Any, Any]]) -> tuple[Any, Any]:
    """The k-th smallest of floats without NaN (from 0), and the one after it (infinity after the last).

    x: (n,). k: (m,). otherwise: the same by XLA.
    """

    def by_xla(x: Any, k: Any) -> Any:
        from jax import numpy as jnp

        return jnp.stack(otherwise(x, k))

    found = filling.filled(_two, [x, k], (2, *k.shape), x.dtype, by_xla)
    return found[0], found[1]
