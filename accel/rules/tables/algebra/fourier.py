"""Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from accel.rules.lowering import jnp, lax, same
from accel.rules.rule import Unsupported, add_rule

_function: Any


def transform(name: str, operand: str, *, scipys: bool = False) -> Callable[..., Any]:
    """jax.numpy's transform, in the precision that NumPy and SciPy compute it in. operand: what the array is called.

    Programs look for the largest of values that are equal: with SciPy, the frequencies k and -k of real numbers are.
    With NumPy they are for float32 nearly always, as it computes in double precision.
    """

    def lower(**bound: Any) -> Any:
        a = bound.pop(operand)
        if a.dtype == np.float16:
            raise Unsupported("rule.parameter", "transforms of halves")
        axes, sizes = bound.get("axes"), bound.get("s")
        if (axes is not None and len({axis % a.ndim for axis in axes}) < len(axes)) or -1 in (sizes or ()):
            raise Unsupported("rule.parameter", "an axis that is transformed twice, or a size of -1")
        a = a.astype(float) if a.dtype.kind in "biu" else a
        if "irfft" in name or name == "hfft":
            return getattr(jnp.fft, name)(a, **bound)
        if name == "ihfft":
            return jnp.conj(_scaled("rfft", a, norm=_opposite(bound.pop("norm", None)), **bound))
        if scipys and a.dtype.kind == "f" and not name.startswith("r"):
            return _mirrored(name, a, **bound)
        if not scipys and a.dtype.itemsize == (4 if a.dtype.kind == "f" else 8):
            return _scaled(name, a.astype(np.result_type(a.dtype, np.float64)), **bound).astype(np.complex64)
        return _scaled(name, a, **bound)

    return lower


def _opposite(norm: str | None) -> str:
    """The scale with which a forward transform's conjugate is the inverse transform of real numbers."""
    return {"ortho": "ortho", "forward": "backward"}.get(norm or "", "forward")


def _mirrored(name: str, a: Any, *, norm: str | None = None, **bound: Any) -> Any:
    """The transform of real numbers: one half of it is computed, the other half is its mirror image."""
    if name.startswith("i"):
        return jnp.conj(_mirrored(name[1:], a, norm=_opposite(norm), **bound))
    half = _scaled("r" + name, a, norm=norm, **bound)
    sizes = bound.get("s")
    every = (-2, -1) if name == "fft2" else range(-len(sizes or a.shape), 0)
    axes = (bound.get("axis", -1),) if name == "fft" else tuple(bound.get("axes") or every)
    size = (sizes[-1] if sizes else bound.get("n")) or a.shape[axes[-1]]
    rest = jnp.flip(lax.slice_in_dim(half, 1, (size + 1) // 2, axis=axes[-1]), axes[-1])
    for axis in axes[:-1]:
        rest = jnp.roll(jnp.flip(rest, axis), 1, axis)
    return jnp.concatenate([half, jnp.conj(rest)], axes[-1])


def _scaled(name: str, a: Any, *, norm: str | None = None, **bound: Any) -> Any:
    """Scale real and imaginary parts one by one: in a complex product, a NaN in one would reach the other."""
    found = getattr(jnp.fft, name)(a, **bound)
    if norm not in ("ortho", "forward"):
        return found
    if name in ("fft", "ifft", "rfft"):
        lengths = [bound.get("n") or a.shape[bound.get("axis", -1)]]
    else:
        sizes, axes = bound.get("s"), bound.get("axes", (-2, -1) if name.endswith("2") else None)
        lengths = sizes or [a.shape[axis] for axis in (range(a.ndim) if axes is None else axes)]
    count = math.prod(lengths)
    factor = math.sqrt(count) if norm == "ortho" else count
    factor = np.asarray(factor if name.startswith("i") else 1 / factor, found.real.dtype)
    return lax.complex(found.real * factor, found.imag * factor)


for _name, _names in (
    *((name, "a | n axis norm") for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")),
    *((name, "a | s axes norm") for name in "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split()),
):
    add_rule(getattr(np.fft, _name), transform(_name, "a"), _names, work=20.0)


def frequencies(name: str) -> Callable[..., Any]:
    """The lowering of numpy.fft's and scipy.fft's function of that name."""

    def lower(*, n: int, d: Any = 1.0) -> Any:
        if getattr(d, "dtype", None) in (np.float16, np.float32):
            raise Unsupported("rule.parameter", f"{name} of less than double precision")
        # as NumPy, and unlike jax.numpy, by the reciprocal: it overflows for a subnormal d
        return np.rint(getattr(np.fft, name)(n) * n) * (1.0 / (n * d))

    return lower


for _name in ("fftfreq", "rfftfreq"):
    add_rule(getattr(np.fft, _name), frequencies(_name), "d | n")
for _name, _names in (("fftshift", "x | axes"), ("ifftshift", "x | axes")):
    add_rule(getattr(np.fft, _name), same(_name, "jax.numpy.fft"), _names)
