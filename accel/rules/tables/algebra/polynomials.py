"""Polynomials, by their coefficients: as the few sums and products that they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.rules.core import in_common_dtype
from accel.rules.lowering import Array, jnp
from accel.rules.rule import Unsupported, rewritten, rule
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


def _lines_up(left: Any, right: Any) -> tuple[Any, Any]:
    """Two polynomials as vectors of one length, filled with zeros in front."""
    left, right = np.atleast_1d(left), np.atleast_1d(right)
    missing = len(right) - len(left)
    if missing > 0:
        left = np.concatenate([np.zeros_like(right[:missing], dtype=left.dtype), left])
    elif missing < 0:
        right = np.concatenate([np.zeros_like(left[:-missing], dtype=right.dtype), right])
    return left, right


@rewritten(np.polyadd, "a1 a2")
def polyadd(a1: object, a2: object) -> Any:
    left, right = _lines_up(a1, a2)
    return left + right


@rewritten(np.polysub, "a1 a2")
def polysub(a1: object, a2: object) -> Any:
    left, right = _lines_up(a1, a2)
    return left - right


@rewritten(np.polymul, "a1 a2")
def polymul(a1: Any, a2: Any) -> Any:
    """The convolution; NumPy drops leading zeros first, so there must be none."""
    for factor in (a1, a2):
        if np.ndim(factor) != 1 or len(factor) < 2 or not bool(factor[0] != 0):
            raise Unsupported("rule.parameter", "numpy.polymul of numbers, or with leading zeros")
    return np.convolve(a1, a2)


def _falling(p: Any, count: int) -> Any:
    """count, count - 1, ... 1, as an array of whole numbers."""
    return count + 1 - np.cumsum(np.ones_like(p[:count], dtype=np.int64))


def _check_vector(p: object) -> None:
    if not hasattr(p, "dtype"):
        raise Unsupported("rule.parameter", "a polynomial whose coefficients are in a list")


@rewritten(np.polyder, "p | m")
def polyder(p: Any, m: int = 1) -> Any:
    _check_vector(p)
    for _ in range(m):
        p = p[:-1] * _falling(p, len(p) - 1)
    return p


@rewritten(np.polyint, "p | m")
def polyint(p: Any, m: int = 1) -> Any:
    _check_vector(p)
    for _ in range(m):
        terms = p / _falling(p, len(p))
        p = np.concatenate([terms, np.zeros_like(terms[:1])])
    return p
