"""From the double in which SciPy computes to the dtype that it stores.

SciPy's filters convert with a plain C cast, its interpolation rounds half away from zero and clips first. XLA's own
conversion saturates and sends NaN to 0, so the C cast is spelled out here as x86-64 performs it (what SciPy's wheels
do; the C standard leaves out-of-range values open).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import DTypeLike

from accel.ndimage import arguments

# Integers narrower than this are cut out of a 32-bit conversion, the others out of a 64-bit one.
_VIA_32_BIT = ("int8", "uint8", "int16", "uint16", "int32")
# The types that SciPy's C code has a case for.
_STORABLE = frozenset("?bBhHiIlLqQfd")


def working_dtype() -> np.dtype:
    """float64, or float32 where the caller's JAX has 64-bit types disabled."""
    return np.dtype(jax.dtypes.canonicalize_dtype(np.float64))


def result_dtype(output: object, input_dtype: DTypeLike) -> np.dtype:
    """The dtype SciPy would return, or its 32-bit form where the caller's JAX has 64-bit types disabled."""
    dtype = arguments.output_dtype(output, input_dtype)
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype)) if dtype.char in "lLqQdD" else dtype


def to_working(x: Array) -> Array:
    """`x` (any real dtype, any shape) in the dtype that the arithmetic runs in."""
    return x.astype(working_dtype())


def require_storable(*dtypes: DTypeLike) -> None:
    """Raise RuntimeError for a dtype that SciPy's C code has no case for (float16, longdouble, object, ...)."""
    for each in dtypes:
        dtype = np.dtype(each)
        parts = np.dtype(dtype.type(0).real.dtype) if dtype.kind == "c" else dtype
        if parts.char not in _STORABLE:
            raise RuntimeError(f"array type {parts!r} not supported")


def _wrapped_integer(x: Array, dtype: np.dtype) -> Array:
    """C's conversion of a double to an integer type: truncate, then keep the low bits."""
    bits = 32 if dtype.name in _VIA_32_BIT or working_dtype() == np.float32 else 64
    limit = 2.0 ** (bits - 1)
    carrier = jnp.int32 if bits == 32 else jnp.int64
    below = -limit - 1 if bits == 32 else np.nextafter(-limit, -np.inf)  # largest double that truncates out of range
    if dtype.name == "uint64" and bits == 64:
        high = x >= limit
        low = jnp.where(high, x - limit, x)
        low = jnp.where((low > below) & (low < limit), low, -limit)
        return lax.convert_element_type(low.astype(carrier), jnp.uint64) ^ jnp.where(
            high, jnp.uint64(1 << 63), jnp.uint64(0)
        )
    inside = (x > below) & (x < limit)
    return lax.convert_element_type(jnp.where(inside, x, -limit).astype(carrier), dtype)


def store(x: Array, dtype: DTypeLike) -> Array:
    """`x` (working dtype) as SciPy's filters store it: a C cast. A bool is True where the stored byte is not 0."""
    target = np.dtype(dtype)
    if target.kind == "b":
        return _wrapped_integer(x, np.dtype(np.uint8)) != 0
    if target.kind in "iu":
        return _wrapped_integer(x, target)
    return x.astype(target)


def between_passes(dtype: DTypeLike) -> np.dtype:
    """The dtype in which a filter of several passes keeps its intermediate result: a bool is a byte in C."""
    target = np.dtype(dtype)
    return np.dtype(np.uint8) if target.kind == "b" else target


def store_rounded(x: Array, dtype: DTypeLike) -> Array:
    """`x` (working dtype) as SciPy's interpolation stores it: integers round half away from zero and clip."""
    target = np.dtype(dtype)
    if target.kind not in "iu":
        return store(x, target)
    info = np.iinfo(target)
    rounded = jnp.where(x > 0, x + 0.5, x - 0.5 if target.kind == "i" else 0.0)
    return _wrapped_integer(jnp.clip(rounded, float(info.min), float(info.max)), target)


def truncated_quotient(x: Array, divisor: int) -> Array:
    """x / divisor rounded toward zero, exactly, for integral `x` below 2**52.

    XLA turns a division by a constant into a product with its reciprocal, which is one short at some exact multiples.
    """
    magnitude = jnp.abs(x)
    quotient = jnp.trunc(magnitude * (1.0 / divisor))
    rest = magnitude - quotient * divisor
    quotient = quotient + jnp.where(rest >= divisor, 1.0, jnp.where(rest < 0, -1.0, 0.0))
    return jnp.where(x < 0, -quotient, quotient)


def unfused_product(x: Array, weight: Array | float) -> Array:
    """x * weight that LLVM does not contract into a fused multiply-add.

    SciPy rounds every product; where the sum is then truncated to an integer the last bit decides. The maximum changes
    no finite product and keeps it apart from the sum. (A selection of equal values does not: LLVM sees through it.)
    """
    return jnp.maximum(x * weight, np.finfo(x.dtype).min)
