"""SciPy's argument rules, shared by all functions: outputs, sequences, axes, origins, footprints.

Each raises what SciPy raises, with a message to the same effect.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from accel.ndimage.errors import NotCovered

if TYPE_CHECKING:
    from jax import Array


def output_dtype(output: object, input_dtype: DTypeLike) -> np.dtype:
    """The result's dtype for SciPy's `output` parameter: None, a type, a dtype or a dtype's name.

    Arrays are handled by the caller. Raises NotCovered for complex numbers.
    """
    base = np.dtype(input_dtype)
    if base.kind == "c":
        raise NotCovered("complex numbers")
    if output is None:
        return base
    if isinstance(output, str):
        named = np.dtype(output)
        if not issubclass(named.type, np.number):
            raise RuntimeError("output must have numeric dtype")
        return named
    if not isinstance(output, type | np.dtype):
        raise NotCovered(f"output: a lowering takes None or a dtype, not {type(output).__name__}")
    return np.dtype(output)


def per_axis(value: object, rank: int) -> list[Any]:
    """`value` once per axis; a sequence must have that length, else RuntimeError."""
    if isinstance(value, str) or not np.iterable(value):
        return [value] * rank
    values = list(value)
    if len(values) != rank:
        raise RuntimeError("sequence argument must have length equal to input rank")
    return values


def check_axes(axes: object, ndim: int) -> tuple[int, ...]:
    """The axes as a tuple; None means all. ValueError if they are no distinct integers.

    As in SciPy, several are normalised, while a single one stays as it is.
    """
    if axes is None:
        return tuple(range(ndim))
    if np.isscalar(axes):
        listed = [operator.index(axes)]  # type: ignore[arg-type]
    elif isinstance(axes, Iterable):
        listed = [operator.index(axis) for axis in axes]
        for axis in listed:
            if not -ndim <= axis < ndim:
                raise ValueError(f"specified axis: {axis} is out of range")
        listed = [axis % ndim for axis in listed]
    else:
        raise ValueError("axes must be an integer, iterable of integers, or None")
    if len(set(listed)) != len(listed):
        raise ValueError("axes must be unique")
    return tuple(listed)


def is_sequence_of_modes(mode: object) -> bool:
    return not isinstance(mode, str) and isinstance(mode, Iterable)


def spread(values: Sequence[Any], axes: Sequence[int], ndim: int, fill: object) -> list[Any]:
    """One value per array axis, `fill` on the axes that are not filtered."""
    spread_values = [fill] * ndim
    for axis, value in zip(axes, values, strict=True):
        spread_values[axis] = value
    return spread_values


def expand_kernel(kernel: Array | NDArray[Any], axes: Sequence[int], ndim: int, name: str) -> Any:
    """A kernel or footprint given for `axes` alone, with axes of length 1 for the others."""
    if len(axes) == ndim:
        return kernel
    if kernel.ndim != len(axes):
        raise RuntimeError(f"{name}.ndim ({kernel.ndim}) must match len(axes) ({len(axes)})")
    return np.expand_dims(kernel, tuple(axis for axis in range(ndim) if axis not in axes))


def check_window(size: int, origin: int) -> int:
    """The window's reach to the left, size // 2 + origin. ValueError if it leaves the window."""
    reach = size // 2 + operator.index(origin)
    if not 0 <= reach < size:
        raise ValueError("invalid origin")
    return reach


def fill_value(cval: Any) -> Any:
    """`cval` as a real number; TypeError for anything else, as from SciPy's C code. Traced values pass."""
    if isinstance(cval, int | float):
        return float(cval)
    if np.iscomplexobj(cval) or isinstance(cval, str):
        raise TypeError(f"must be real number, not {type(cval).__name__}")
    if isinstance(cval, np.generic | np.ndarray):
        return float(cval)
    return cval


def as_footprint(footprint: object) -> NDArray[np.bool_]:
    return np.asarray(footprint, dtype=bool)
