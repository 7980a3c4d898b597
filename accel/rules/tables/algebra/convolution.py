"""Convolution and correlation of two vectors."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules.core import cast, in_common_dtype
from accel.rules.lowering import Array, jnp, lax, number
from accel.rules.rule import Unsupported, rule


def _kernel_finite(*, a: Any, v: Any, shape: Any, mode: str = "full") -> Any:
    """The padding's zeros times an infinity would be NaN. Of numbers there is nothing to slide."""
    if np.ndim(a) != 1 or np.ndim(v) != 1:
        return False
    kernel = a if a.shape[0] < v.shape[0] else v
    return mode == "valid" or kernel.dtype.kind not in "fc" or (abs(kernel) < np.inf).all()


@rule(np.convolve, "a v | mode", holds=_kernel_finite)
def convolve(*, a: Array, v: Array, mode: str = "full") -> Any:
    """The shorter one slides over the longer."""
    a, v = in_common_dtype(a, v)
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    return _slide(a, v[::-1], mode)


def _correlated_finite(
    *, a: Array | NDArray[Any], v: Array | NDArray[Any], shape: tuple[int, ...], mode: str = "valid"
) -> Any:
    return _kernel_finite(a=a, v=v, shape=shape, mode=mode)


@rule(np.correlate, "a v | mode", holds=_correlated_finite)
def correlate(*, a: Array, v: Array, mode: str = "valid") -> Any:
    """NumPy's way: the second is conjugated; where it is the longer one, the result is reversed."""
    a, v = in_common_dtype(a, v)
    v = lax.conj(v) if v.dtype.kind == "c" else v
    if v.shape[0] > a.shape[0]:
        return _slide(v, a, mode)[::-1]
    return _slide(a, v, mode)


SHORT = 32
"""Kernels up to this length are written out as sums of slices; longer ones are products with a matrix of windows."""


def _slide(a: Array, v: Array, mode: str) -> Any:
    """sum_k a[i + k] * v[k], of halves in single precision; v is not longer than a."""
    if mode not in ("full", "same", "valid"):
        raise Unsupported("rule.parameter", f"mode={mode!r}")
    if a.dtype == np.float16:
        return cast(_slide(cast(a, np.dtype("f")), cast(v, np.dtype("f")), mode), a.dtype)
    m = v.shape[0]
    left = {"full": m - 1, "same": m // 2, "valid": 0}[mode]
    right = {"full": m - 1, "same": m - 1 - m // 2, "valid": 0}[mode]
    padded = lax.pad(a, number(0, a), [(left, right, 0)])
    length = padded.shape[0] - m + 1
    if a.dtype.kind == "b":
        return functools.reduce(operator.or_, (padded[k : k + length] & v[k] for k in range(m)))
    if m <= SHORT:
        found = functools.reduce(operator.add, (padded[k : k + length] * v[k] for k in range(m)))
        return found + number(0, found)  # NumPy adds to 0, whatever the sign
    windows = padded[jnp.arange(length)[:, None] + jnp.arange(m)]
    return (windows * v).sum(axis=1, dtype=a.dtype)
