"""Matrix products on the CPU by the host's own library, which NumPy has, where XLA's are slower.

XLA:CPU takes as long as OpenBLAS, on one thread, for square matrices of some hundred rows. For small matrices, and for
those of few rows or columns, it takes two to seven times as long. On two threads OpenBLAS is faster at all sizes. So a
program calls NumPy for a product in the middle of its run, on its own memory. That costs some microseconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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


def _called(x: Any, y: Any) -> Any:
    return filling.filled(_product, [x, y], (x.shape[0], y.shape[1]), x.dtype, _in_xla)


def _product(x: Any, y: Any, result: Any) -> None:
    np.matmul(x, y, result)
