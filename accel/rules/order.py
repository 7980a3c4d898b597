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
        # one by one: NumPy selects for one position with vector instructions, for several without
        parts = np.partition(x, each) if whole is None else whole
        result[0, at] = parts[each]
        result[1, at] = np.minimum.reduce(parts[each + 1 :], initial=np.inf)


def two_of(x: Array, k: Array, otherwise: Callable[[Array, Array], tuple[Any, Any]]) -> tuple[Any, Any]:
    """The k-th smallest of floats without NaN (from 0), and the one after it (infinity after the last).

    x: (n,). k: (m,). otherwise: the same by XLA.
    """

    def by_xla(x: Any, k: Any) -> Any:
        from jax import numpy as jnp

        return jnp.stack(otherwise(x, k))

    found = filling.filled(_two, [x, k], (2, *k.shape), x.dtype, by_xla)
    return found[0], found[1]
