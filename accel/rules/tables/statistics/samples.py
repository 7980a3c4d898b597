"""Samples: how many fall into each bin, and how they vary together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules.core import cast
from accel.rules.lowering import Array, jnp
from accel.rules.rule import Unsupported, add_rule, rewritten, rule
from accel.rules.special import Shaped

# -- counting ---------------------------------------------------------------------------------------------------------


def _counts(
    *, x: Array | NDArray[Any], shape: tuple[int, ...], weights: Array | NDArray[Any] | None = None, minlength: int = 0
) -> Any:
    """NumPy raises for negative numbers, and the largest decides the length."""
    if not x.size:
        return True
    x = x.astype(np.int64)
    largest = x.max()
    return (x.min() >= 0) & ((largest < shape[0]) if shape[0] == minlength else (largest == shape[0] - 1))


@rule(np.bincount, "x weights | minlength", holds=_counts, special=Shaped())
def bincount(*, x: Array, shape: tuple[int, ...], weights: Array | None = None, minlength: int = 0) -> Any:
    x = x.astype(np.int64)
    if weights is None or not x.size:  # NumPy counts nothing in whole numbers, whatever its weights
        return jnp.zeros(shape, np.int64).at[x].add(1)
    return jnp.zeros(shape, float).at[x].add(cast(weights, np.dtype(float)))


@rewritten(np.histogram_bin_edges, "a | bins range", or_on_host=True)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None) -> Any:
    """For given edges, or a number of bins over a given range; the program asks NumPy for those that values decide."""
    _check_ordered(a)
    if isinstance(bins, (list, tuple)):
        return np.stack(bins)
    return _even_edges(a, bins, range)


def _check_ordered(a: Any) -> None:
    """NumPy converts truths and complex numbers, and warns of that in each call."""
    if a.dtype.kind in "bc":
        raise Unsupported("rule.missing", "a histogram of truths or complex numbers")


def _even_edges(a: Any, bins: Any, range: Any) -> Any:
    if type(bins) is not int or range is None:
        raise Unsupported("rule.parameter", "bins that depend on values")
    return np.histogram_bin_edges(np.zeros(0, a.dtype), bins, range)


@rewritten(np.histogram, "a bins weights | range density", or_on_host=True)
def histogram(a: Any, bins: Any = 10, range: object = None, density: object = None, weights: Any = None) -> Any:
    """By searching the edges, where they are known: the last bin holds its right edge too."""
    _check_ordered(a)
    if density or (weights is not None and weights.dtype != np.float64):
        raise Unsupported("rule.parameter", "numpy.histogram: density, or weights that are not float64")
    if a.dtype == np.float16 or isinstance(bins, str):
        raise Unsupported("rule.parameter", "numpy.histogram of halves, or in named bins")
    edges = np.array(bins) if isinstance(bins, (list, tuple)) else bins
    if isinstance(bins, int):
        edges = _even_edges(a, bins, range)
    values = np.ravel(a)
    if "u" in (kinds := values.dtype.kind + edges.dtype.kind) and "i" in kinds:
        raise Unsupported("rule.parameter", "numpy.histogram of signed and unsigned numbers")
    position = np.searchsorted(_listed(edges), values, side="right")
    count = len(edges) - 1
    last = edges[count]
    position = np.where(np.equal(values, last) | np.not_equal(last, last), np.minimum(position, count), position)
    counted = np.bincount(position, None if weights is None else np.ravel(weights), count + 2)
    if weights is not None and not isinstance(bins, int):  # NumPy takes differences of the weights' running sum
        total = np.cumsum(counted)
        spoilt = np.logical_not(np.isfinite(total))
        counted = np.where(spoilt, np.diff(total, prepend=0.0), counted)
    return counted[1 : count + 1], edges


def _listed(edges: object) -> Any:
    return edges.tolist() if type(edges) is np.ndarray else edges


@rewritten(np.histogram2d, "x y *bins weights | range density", or_on_host=True)
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: object = None, weights: Any = None) -> Any:
    """As `histogram` along each axis; a bin of both is one of a row of them."""
    if density or any(each.dtype != np.float64 or not each.size for each in (x, y)):
        raise Unsupported("rule.parameter", "numpy.histogram2d: density, or of other numbers than float64")
    if weights is not None and weights.dtype != np.float64:
        raise Unsupported("rule.parameter", "numpy.histogram2d: weights that are not float64")
    of_both = list(bins) if isinstance(bins, (list, tuple)) and len(bins) == 2 else [bins, bins]
    ranges = (None, None) if range is None else range
    edges = [_edges_along(*each) for each in zip((x, y), of_both, ranges, strict=True)]
    places, counts = [], [len(each) + 1 for each in edges]
    for values, along in zip((x, y), edges, strict=True):
        place = np.searchsorted(_listed(along), values, side="right")
        places.append(np.where(np.equal(values, along[len(along) - 1]), place - 1, place))
    counted = np.bincount(places[0] * counts[1] + places[1], weights, counts[0] * counts[1])
    return (np.reshape(counted, counts)[1:-1, 1:-1].astype(float), *edges)


def _edges_along(values: Any, bins: Any, range: Any) -> Any:
    """The edges along one axis: those that are given, or even ones over a range or over all values."""
    if isinstance(bins, (list, tuple)):
        return np.array(bins)
    if type(bins) is not int:
        if getattr(bins, "ndim", 0) != 1:
            raise Unsupported("rule.parameter", "numpy.histogram2d with bins that are no edges")
        return bins
    if range is not None:
        return _even_edges(values, bins, tuple(range))
    low, high = values.min(), values.max()
    if not (low < high and np.isfinite(low) and np.isfinite(high)):
        raise Unsupported("rule.parameter", "numpy.histogram2d of numbers that are all the same, or not finite")
    return np.linspace(low, high, bins + 1)


# -- covariance -------------------------------------------------------------------------------------------------------


def _observations(m: Any, rowvar: bool) -> int:
    """Covariance of one variable, where there is one axis or none."""
    return int(m.shape[-1] if rowvar or m.ndim < 2 else m.shape[0]) if m.ndim else 1


def _covariance(name: str) -> Callable[..., Any]:
    def lower(**bound: Any) -> Any:
        for operand in ("m", "x", "y"):
            if operand in bound:
                bound[operand] = cast(bound[operand], np.result_type(bound[operand].dtype, float))
        if name == "cov" and _observations(bound["m"], bound.get("rowvar", True)) < (bound.get("ddof") or 0):
            raise Unsupported("rule.parameter", "numpy.cov: fewer observations than ddof")
        return getattr(jnp, name)(**bound)

    return lower


add_rule(np.cov, _covariance("cov"), "m y | rowvar bias ddof")
add_rule(np.corrcoef, _covariance("corrcoef"), "x y | rowvar")
