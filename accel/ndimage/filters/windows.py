"""Windows of filters that compare: what a footprint gives, and values as SciPy compares and stores them.

`axes` are those that the filter runs over; `origins` and `footprint` have one entry, one axis, for each of `input`'s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from accel.ndimage import arguments, casting, kernels
from accel.ndimage.boundary import FILTER_RULES, rule_of
from accel.ndimage.errors import NotCovered


def require_real(input: Array) -> None:
    """Raise TypeError for complex input, as SciPy does: complex numbers have no order."""
    if jnp.iscomplexobj(input):
        raise TypeError("Complex type not supported")


def comparable(input: Array, rule: str, cval: object) -> Array:
    """`input` in a dtype whose comparisons give SciPy's result, which compares doubles.

    Floats up to double are compared as they are (rounding is monotone); so are small integers, unless a `cval` that is
    no such integer enters.
    """
    dtype = np.dtype(input.dtype)
    if dtype.kind == "f":
        return input
    small = dtype.itemsize <= 4 and dtype.kind in "iu"
    if small and (rule != "constant" or (isinstance(cval, float) and cval == np.clip(round(cval), *bounds(dtype)))):
        return input
    return casting.to_working(input)


def bounds(dtype: np.dtype) -> tuple[int, int]:
    """The smallest and the largest integer of an integer dtype."""
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def stored(x: Array, dtype: np.dtype) -> Array:
    """`x` in the dtype of the result, as SciPy stores its doubles."""
    if x.dtype == dtype:
        return x
    return casting.store(x, dtype) if x.dtype.kind == "f" else x.astype(dtype)


def fit_footprint(footprint: NDArray[np.bool_], axes: tuple[int, ...], ndim: int) -> NDArray[np.bool_]:
    """A footprint over `axes` as one over all axes. Raises RuntimeError where it has another number of axes."""
    footprint = arguments.expand_kernel(footprint, axes, ndim, "footprint")
    if sum(n > 0 for n in footprint.shape) != ndim:
        raise RuntimeError(f"footprint.ndim ({footprint.ndim}) must match len(axes) ({len(axes)})")
    return footprint


def shifted_copies(
    input: Array, footprint: NDArray[np.bool_], origins: Sequence[int], mode: Any, cval: object, as_given: bool = False
) -> list[Array]:
    """One shifted copy of `input` per true cell of the footprint (same number of axes).

    as_given: SciPy compares the input's own dtype, not doubles.
    """
    reach = [arguments.check_window(n, o) for n, o in zip(footprint.shape, origins, strict=True)]
    rule, cval = rule_of(mode, FILTER_RULES), arguments.fill_value(cval)
    compared = input if as_given else comparable(input, rule, cval)
    padded = kernels.pad_all(compared, reach, footprint.shape, rule, cval)
    return [kernels.shifted(padded, index, input.shape) for index in zip(*np.nonzero(footprint), strict=True)]


def element_cval(input: Array, cval: object) -> Any:
    """With a footprint SciPy wraps `cval` round to the input's own type; bools have a byte: -3.0 is 253, and true.

    Raises NotCovered for NaN and infinity in an array of integers or bools: C does not say what they become.
    """
    if input.dtype.kind not in "biu" or not isinstance(cval, int | float):
        return cval
    if not math.isfinite(cval):
        raise NotCovered(f"cval={cval} in an array of {input.dtype}")
    lowest, highest = (0, 255) if input.dtype == np.bool_ else bounds(input.dtype)
    return float((int(cval) - lowest) % (highest - lowest + 1) + lowest)
