"""Matrix products on the CPU by the host's own library, which NumPy has, where XLA's are slower.

XLA:CPU takes as long as OpenBLAS, on one thread, for square matrices of some hundred rows. For small matrices, and for
those of few rows or columns, it takes two to seven times as long, and on two threads OpenBLAS is faster at all sizes.
So a program calls NumPy for a product in the middle of its run, on its own memory. That costs some microseconds.
An operand that lies in a span (see accel.backend.spans) is read where it is: XLA would copy it first, which costs as
much as a product of few rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.backend import spans
from accel.rules import filling
from accel.rules.lowering import jnp, lax

DTYPES = frozenset("fdFD")
"""Dtypes that BLAS has."""

WORTH = 1 << 17
"""Products of two numbers, in a matrix product, from which the call is cheaper than what it gains."""


def matmul(x: Any, y: Any) -> Any:
    """`x @ y`."""
    return _called(x, y) if filling.are_allowed() and is_worth_a_call(x, y) else _in_xla(x, y)


def is_worth_a_call(x: Any, y: Any) -> bool:
    """Whether a product of these is one of matrices, and large enough. A transposed matrix would be copied first, which
    only products of matrices make up for."""
    if x.ndim != 2 or y.ndim != 2 or x.dtype != y.dtype or x.dtype.char not in DTYPES:
        return False
    (rows, inner), columns = x.shape, y.shape[1]
    return bool(min(rows, columns) > 1 and rows * inner * columns >= WORTH)


def _in_xla(x: Any, y: Any) -> Any:
    # accelerators would shorten float32 operands otherwise
    return jnp.matmul(x, y, precision=lax.Precision.HIGHEST)


@dataclass(frozen=True)
class _Product:
    """The function that the program calls. x, y: the shape of an operand that comes as a span; None for a matrix."""

    x: tuple[int, ...] | None
    y: tuple[int, ...] | None

    def __call__(self, *arguments: Any) -> None:
        *given, result = arguments
        parts = iter(given)
        np.matmul(_matrix(parts, self.x), _matrix(parts, self.y), result)


def _matrix(parts: Iterator[Any], shape: tuple[int, ...] | None) -> Any:
    memory = next(parts)
    if shape is None:
        return memory
    first = int(next(parts))
    return memory[first : first + math.prod(shape)].reshape(shape)


def _called(x: Any, y: Any) -> Any:
    sources = [spans.source_of(each) for each in (x, y)]
    shapes = [each.shape if source else None for each, source in zip((x, y), sources, strict=True)]
    read = [part for each, source in zip((x, y), sources, strict=True) for part in source or (each,)]
    return filling.filled(_Product(*shapes), read, (x.shape[0], y.shape[1]), x.dtype, _in_xla, (x, y))
