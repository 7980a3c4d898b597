"""The public functions: SciPy's signatures, NumPy or JAX arrays in, the same kind out.

JAX arrays keep the caller's precision, jit, grad and vmap. NumPy arrays are computed in float64 whatever the process's
JAX settings, by a program compiled once per shape, dtype and set of parameters; kernels and footprints count as
parameters. Output arrays are filled after the result is complete, so they may overlap the input.
"""

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from accel.ndimage import dispatch, table
from accel.ndimage.errors import NotCovered
from accel.ndimage.interpolation import transforms

Lowering = Callable[..., Array]

# Parameters that may hold JAX arrays. If any of a call does, its result is one, too.
_ARRAYS = ("input", "coordinates", "weights", "matrix", "offset", "shift", "cval")


def _as_input(value: NDArray[Any]) -> NDArray[Any]:
    """`value` as an array that JAX can take; RuntimeError, as in SciPy, for objects, strings and extended floats."""
    array = np.asarray(value)
    if array.dtype.kind not in "biufc" or array.dtype.char in "gG":
        raise RuntimeError(f"array type {array.dtype!r} not supported")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _warn_and_settle(given: dict[str, Any]) -> None:
    """Warn as the lowering would, which is traced once only while SciPy warns in every call; and drop the cause."""
    if given.get("size") is not None and given.get("footprint") is not None:
        warnings.warn("ignoring size because footprint is set", UserWarning, stacklevel=4)
        given["size"] = None


def _separate_output(given: dict[str, Any]) -> NDArray[Any] | None:
    """The array to fill, if `output` is one; the parameter then becomes its dtype."""
    output = given["output"]
    if output is None or isinstance(output, str | type | np.dtype):
        return None
    if isinstance(output, Array):
        raise NotCovered("output: a JAX array cannot be written to; pass a dtype")
    target = np.asarray(output)
    if "output_shape" in given and given["output_shape"] is None:
        given["output_shape"] = target.shape
    given["output"] = target.dtype
    return target


def _on_jax(lowering: Lowering, given: dict[str, Any]) -> Array:
    if isinstance(given["output"], np.ndarray):
        raise NotCovered("output: an array cannot be filled from JAX arrays; pass a dtype")
    given["input"] = jnp.asarray(given["input"])
    if _plans_its_own(lowering) or dispatch.is_traced(given):
        return lowering(**given)
    static = {name: value for name, value in given.items() if name != "input"}
    return dispatch.compiled(lowering, static)(given["input"])


def _plans_its_own(lowering: Lowering) -> bool:
    """Interpolation computes its coordinates in NumPy first and compiles the rest itself."""
    return lowering.__module__ == transforms.__name__


def _on_numpy(lowering: Lowering, given: dict[str, Any]) -> NDArray[Any]:
    _warn_and_settle(given)
    target = _separate_output(given)
    stored = given["output"] if isinstance(given["output"], np.dtype) and not given["output"].isnative else None
    if stored is not None:  # JAX has native byte order alone: converted at the end
        given["output"] = stored.newbyteorder("=")
    array = _as_input(given.pop("input"))
    if "coordinates" in given and np.asarray(given["coordinates"]).dtype.byteorder == ">":
        given["coordinates"] = _as_input(given["coordinates"])
    with jax.enable_x64(True):
        if _plans_its_own(lowering):
            result = lowering(array, **given)
        else:
            result = dispatch.compiled(lowering, given)(array)
        values = np.array(result, stored)  # a copy: writable, and not aliasing memory that XLA may reuse
    if target is None:
        return values
    if target.shape != values.shape:
        raise RuntimeError("output shape not correct")
    target[...] = values
    return target


@functools.cache
def public(name: str) -> Callable[..., Any]:
    """The function that users call, with SciPy's signature. name: in `table.COVERED`."""
    lowering = table.lowering(name)
    signature = inspect.signature(lowering)

    @functools.wraps(lowering)
    def call(*args: object, **kwargs: object) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        given.update(given.pop("kwargs", {}))
        if dispatch.is_jax([given.get(name) for name in _ARRAYS]):
            return _on_jax(lowering, given)
        return _on_numpy(lowering, given)

    return call
