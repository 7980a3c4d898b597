"""`scipy.ndimage`'s filters and interpolation on JAX, by SciPy's rules.

    >>> import numpy as np
    >>> from accel import ndimage
    >>> ndimage.map_coordinates(np.arange(5.0) ** 2, [[-1.0]], order=1, mode="wrap")
    array([9.])

Functions, parameters and defaults are SciPy's. Each takes NumPy or JAX arrays, returns the same kind, works under the
caller's own `jax.jit`, and is differentiable where the mathematics is.

- *Shapes.* Filters return the shape of `input`, interpolation that of its coordinates or its `output_shape`.
- *Dtypes.* `input`: bool, integer, float32 or float64. The result has the dtype of `output`, else the input's.
  Computed in float64; in float32 where the caller's JAX has 64-bit types disabled and the arrays are JAX's.
- *Errors* have SciPy's types: RuntimeError for other dtypes, unknown modes and wrong numbers of axes, ValueError for
  origins outside their window, TypeError for a complex `cval`, and for complex input of order statistics.
- *Not covered.* Functions and values that are left to SciPy raise `NotCovered` with the reason: nothing is ignored.
  Complex input and weights are among them, and JAX arrays as `output`, since they cannot be written to.
- *Differences.* Sums may differ from SciPy's in the last place. In uniform filters a NaN stays in the windows that hold
  it, and in order statistics it makes their results NaN. Splines of an input with infinities may have infinities where
  SciPy has NaN.
"""

from collections.abc import Callable
from typing import Any, NoReturn

from accel.ndimage.errors import NotCovered
from accel.ndimage.table import COVERED, REFUSED

__all__ = ["NotCovered", *sorted(COVERED)]  # noqa: PLE0604  # the functions are made when they are asked for


def __getattr__(name: str) -> Callable[..., Any]:
    """A function of SciPy's. One that is refused raises `NotCovered` when it is called."""
    if name in COVERED:
        from accel.ndimage.api import public  # here, because it imports JAX

        return public(name)
    if name not in REFUSED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise NotCovered(f"accel.ndimage.{name}: {REFUSED[name]}. Use scipy.ndimage.{name}.")

    return refuse


def __dir__() -> list[str]:
    return __all__
