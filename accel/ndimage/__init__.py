"""`scipy.ndimage`'s filters and interpolation on JAX, by SciPy's rules.

    >>> import numpy as np
    >>> from accel import ndimage
    >>> ndimage.map_coordinates(np.arange(5.0) ** 2, [[-1.0]], order=1, mode="wrap")
    array([9.])

Functions, parameters and defaults are SciPy's. Each takes NumPy or JAX arrays, returns the same kind, works under the
caller's own `jax.jit`, and is differentiable where the mathematics is.

- *Shapes.* Filters return the shape of `input`, interpolation that of its coordinates or its `output_shape`.
- *Dtypes.* `input`: bool, integer, float32, float64 or complex; order statistics take no complex input. The result has
  the dtype of `output`, else the input's. Computed in float64; in float32 where the caller's JAX has 64-bit types
  disabled and the arrays are JAX's.
- *Errors* have SciPy's types: RuntimeError for other dtypes, unknown modes and wrong numbers of axes, ValueError for
  origins outside their window, TypeError for complex input or `cval` where there must be real ones.
- *Not covered.* Functions and values that are left to SciPy raise `NotCovered` with the reason: nothing is ignored. JAX
  arrays as `output` are among them, since they cannot be written to.
- *Differences.* Sums may differ from SciPy's in the last place. In uniform filters a NaN stays in the windows that hold
  it, and in order statistics it makes their results NaN. Splines of an input with infinities may have infinities where
  SciPy has NaN.
"""

from collections.abc import Callable
from typing import NoReturn

from accel.ndimage.api import (
    affine_transform,
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
    generic_gradient_magnitude,
    generic_laplace,
    geometric_transform,
    laplace,
    map_coordinates,
    maximum_filter,
    maximum_filter1d,
    median_filter,
    minimum_filter,
    minimum_filter1d,
    percentile_filter,
    prewitt,
    rank_filter,
    rotate,
    shift,
    sobel,
    spline_filter,
    spline_filter1d,
    uniform_filter,
    uniform_filter1d,
    zoom,
)
from accel.ndimage.errors import NotCovered
from accel.ndimage.table import REFUSED

__all__ = [
    "NotCovered",
    "affine_transform",
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "gaussian_filter",
    "gaussian_filter1d",
    "gaussian_gradient_magnitude",
    "gaussian_laplace",
    "generic_gradient_magnitude",
    "generic_laplace",
    "geometric_transform",
    "laplace",
    "map_coordinates",
    "maximum_filter",
    "maximum_filter1d",
    "median_filter",
    "minimum_filter",
    "minimum_filter1d",
    "percentile_filter",
    "prewitt",
    "rank_filter",
    "rotate",
    "shift",
    "sobel",
    "spline_filter",
    "spline_filter1d",
    "uniform_filter",
    "uniform_filter1d",
    "zoom",
]


def __getattr__(name: str) -> Callable[..., NoReturn]:
    """A stand-in for a function of SciPy's that is refused: calling it raises `NotCovered`."""
    if name not in REFUSED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise NotCovered(f"accel.ndimage.{name}: {REFUSED[name]}. Use scipy.ndimage.{name}.")

    return refuse
