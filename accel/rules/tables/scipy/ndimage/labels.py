"""scipy.ndimage's labels, and what it computes for each: programs call SciPy, which sorts the elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import ndimage

from accel.rules.hosted import on_host
from accel.rules.rule import Unsupported, add_rule
from accel.rules.special import CallOnHost


def _not_single(*, input: Any, **rest: object) -> None:
    """SciPy sums up singles as singles, in the order of the memory, and makes a double of the sum: nobody sees how few
    of its digits hold."""
    if input.dtype == np.float32:
        raise Unsupported("rule.parameter", "a mean or variance of singles, whose result is a double")


for _function in (ndimage.mean, ndimage.variance, ndimage.standard_deviation):
    add_rule(_function, None, "input labels index", special=CallOnHost(), holds=_not_single)
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
    maximum: input labels index
    maximum_position: input labels index
    median: input labels index
    minimum: input labels index
    minimum_position: input labels index
    sum: input labels index
    sum_labels: input labels index
    watershed_ift: input markers structure
    """,
)
