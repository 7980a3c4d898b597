"""Polynomials, by their coefficients: values and fits. What else NumPy does with them, programs let it do."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.rules.core import in_common_dtype
from accel.rules.lowering import Array, jnp
from accel.rules.rule import Unsupported, rule
from accel.rules.special import Finite


@rule(np.polyval, "p x", rowwise=lambda bound, is_rows: not is_rows(bound["p"]))
def polyval(*, p: Array, x: Array | float) -> Any:
    """Horner's scheme, step by step as NumPy computes it."""
    p, x = jnp.asarray(p), jnp.asarray(x)
    p, x = in_common_dtype(p, x)
    result = jnp.zeros_like(x)
    for i in range(p.shape[0]):
        result = result * x + p[i]
    return result


def _fits_one(*, x: Any, y: Any, deg: Any, w: Any = None, **rest: object) -> Any:
    """Whether only one polynomial fits best: NumPy warns where several do."""
    xp = np if isinstance(x, np.ndarray) else jnp
    powers = xp.vander(x.astype(float), deg + 1)
    powers = powers if w is None else powers * w[:, None]
    scaled = powers / xp.sqrt((powers * powers).sum(axis=0))
    sizes = xp.linalg.svd(xp.where(xp.isfinite(scaled), scaled, 0.0), compute_uv=False)
    return (len(x) > deg) & (sizes[-1] > 1e-10 * sizes[0])


@rule(np.polyfit, "x y w | deg", holds=_fits_one, special=Finite())
def polyfit(*, x: Array, y: Array, deg: int, w: Array | None = None) -> Any:
    """By least squares, as NumPy does it. Whole numbers are converted to float64 first, as NumPy does by adding 0.0."""
    given = [each for each in (x, y, w) if each is not None]
    if type(deg) is not int or not all(each.dtype in _FITTED for each in given):
        raise Unsupported("rule.parameter", "numpy.polyfit of several degrees, or of others than float64")
    return jnp.polyfit(
        *(each.astype(np.float64) for each in (x, y)), deg, w=None if w is None else w.astype(np.float64)
    )


_FITTED = (np.float64, np.int64, np.int32)
"""Of narrower whole numbers some versions of NumPy make narrower floats."""
