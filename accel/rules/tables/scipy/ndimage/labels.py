"""scipy.ndimage's reductions by label: sums, means, extremes of what has one label, or each of several.

With several labels each is a reduction over the whole array, where what has another label does not count. That is for
a few labels; for many, SciPy sorts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import ndimage

from accel.rules.hosted import on_host
from accel.rules.rule import Unsupported, rewritten

MOST_PAIRS = 1 << 22
"""Maximum number of pairs of an element and a label that are compared. Guess."""


def _groups(input: Any, labels: Any, index: Any) -> tuple[Any, Any, Any]:
    """The elements, whether each belongs to each label of `index`, and the shape of the result.

    Without labels or with a single one, the elements are those that count, and the other two None.
    """
    if input.dtype.kind not in "fiu" or input.dtype == np.float16:
        raise Unsupported("rule.parameter", "a reduction by label of truths, halves or complex numbers")
    if labels is None:
        return input, None, None
    if labels.dtype.kind not in "iub" or labels.shape != input.shape:
        raise Unsupported("rule.parameter", "labels that are no whole numbers, or of another shape")
    if index is None:
        return input[labels > 0], None, None
    if np.ndim(index) == 0:
        if not np.isscalar(index):
            raise Unsupported("rule.parameter", "an index without axes")
        return input[labels == index], None, None
    is_array = hasattr(index, "dtype")
    if not (index.dtype.kind in "iu" if is_array else all(type(each) is int for each in index)):
        raise Unsupported("rule.parameter", "labels that are no whole numbers")
    shape = index.shape if is_array else (len(index),)
    if not 0 < int(np.prod(shape)) * input.size <= MOST_PAIRS:
        raise Unsupported("rule.parameter", "no labels, or too many of them")
    wanted = np.ravel(index)[:, None] if is_array else [[each] for each in index]
    return np.ravel(input), np.ravel(labels)[None, :] == wanted, shape


def _stats(input: Any, labels: Any, index: Any, *, centred: bool = False) -> tuple[Any, Any, Any, Any]:
    """Count, sum and, on request, sum of the squared distances from the mean, of each label; and the shape."""
    values, belongs, shape = _groups(input, labels, index)
    if belongs is None:
        distance = values - values.mean() if centred else None
        return _count(values), values.sum(), None if distance is None else (distance * distance).sum(), shape
    values = values.astype(float)
    count, total = belongs.sum(axis=1), np.where(belongs, values[None, :], 0.0).sum(axis=1)
    if not centred:
        return count, total, None, shape
    mean = total / count
    distance = np.where(belongs, values[None, :] - mean[:, None], 0.0)
    return count, total, (distance * distance).sum(axis=1), shape


def _not_single(input: Any, index: Any) -> None:
    """SciPy sums up singles as singles, and makes a double of the sum: nobody sees how few of its digits hold."""
    if input.dtype == np.float32 and np.ndim(index) == 0:
        raise Unsupported("rule.parameter", "a mean or variance of singles, whose result is a double")


def _count(values: Any) -> Any:
    """Number of elements; for a selection, recorded: another number in each call."""
    return np.ones_like(values, int).sum()


def _shaped(found: Any, shape: Any) -> Any:
    return found if shape is None else np.reshape(found, shape)


@rewritten(ndimage.sum_labels, "input labels index")
def sum_labels(input: Any, labels: Any = None, index: Any = None) -> Any:
    _, total, _, shape = _stats(input, labels, index)
    return _shaped(total, shape)


@rewritten(ndimage.sum, "input labels index")
def sum_of(input: Any, labels: Any = None, index: Any = None) -> Any:
    return sum_labels(input, labels, index)


@rewritten(ndimage.mean, "input labels index")
def mean(input: Any, labels: Any = None, index: Any = None) -> Any:
    _not_single(input, index)
    count, total, _, shape = _stats(input, labels, index)
    return _shaped(total / count.astype(float), shape)


@rewritten(ndimage.variance, "input labels index")
def variance(input: Any, labels: Any = None, index: Any = None) -> Any:
    _not_single(input, index)
    count, _, squares, shape = _stats(input, labels, index, centred=True)
    return _shaped(squares / count.astype(float), shape)


@rewritten(ndimage.standard_deviation, "input labels index")
def standard_deviation(input: Any, labels: Any = None, index: Any = None) -> Any:
    return np.sqrt(variance(input, labels, index))


@rewritten(ndimage.maximum, "input labels index")
def maximum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """SciPy sorts, NaN last; a label that is not there has 0."""
    values, belongs, shape = _groups(input, labels, index)
    if belongs is None:
        return values.max()
    found = np.where(belongs, values[None, :], _end(values.dtype, lowest=True)).max(axis=1)
    return _shaped(np.where(belongs.any(axis=1), found, np.zeros_like(found)), shape)


@rewritten(ndimage.minimum, "input labels index")
def minimum(input: Any, labels: Any = None, index: Any = None) -> Any:
    values, belongs, shape = _groups(input, labels, index)
    if belongs is None:
        return values.min()
    counts = belongs & (values == values)[None, :]
    found = np.where(counts, values[None, :], _end(values.dtype, lowest=False)).min(axis=1)
    if values.dtype.kind == "f":  # a label with nothing but NaN
        found = np.where(counts.any(axis=1), found, np.full_like(found, np.nan))
    return _shaped(np.where(belongs.any(axis=1), found, np.zeros_like(found)), shape)


def _end(dtype: Any, *, lowest: bool) -> Any:
    """The number that changes no extreme."""
    if dtype.kind == "f":
        return dtype.type(-np.inf if lowest else np.inf)
    return dtype.type(np.iinfo(dtype).min if lowest else np.iinfo(dtype).max)


on_host(
    ndimage,
    """
    binary_fill_holes: input structure
    binary_propagation: input structure mask
    center_of_mass: input labels index
    distance_transform_cdt: input
    distance_transform_edt: input sampling
    extrema: input labels index
    histogram: input min max labels index
    label: input structure
    maximum_position: input labels index
    median: input labels index
    minimum_position: input labels index
    watershed_ift: input markers structure
    """,
)
