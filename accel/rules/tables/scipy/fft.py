"""scipy.fft: as numpy.fft, in the precision of the operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import fft

from accel.rules.lowering import Lazy, jnp, same
from accel.rules.rule import Unsupported, add_rule, rule

jfft: Any = Lazy("jax.scipy.fft")


def _transform(name: str) -> Callable[..., Any]:
    def lower(*, x: Any, **bound: Any) -> Any:
        if x.dtype == np.float16:
            raise Unsupported("rule.parameter", "transforms of halves")
        axes, sizes = bound.get("axes"), bound.get("s")
        if (axes is not None and len({axis % x.ndim for axis in axes}) < len(axes)) or -1 in (sizes or ()):
            raise Unsupported("rule.parameter", "an axis that is transformed twice, or a size of -1")
        x = x.astype(float) if x.dtype.kind in "biu" else x
        return getattr(jnp.fft, name)(x, **bound)

    return lower


for _name in "fft ifft rfft irfft hfft ihfft".split():
    add_rule(getattr(fft, _name), _transform(_name), "x | n axis norm")
for _name in "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split():
    add_rule(getattr(fft, _name), _transform(_name), "x | s axes norm")
for _name in ("fftshift", "ifftshift"):
    add_rule(getattr(fft, _name), same(_name, "jax.numpy.fft"), "x | axes")


def _cosine(name: str) -> Callable[..., Any]:
    def lower(*, x: Any, type: int = 2, axis: int = -1, norm: str | None = None) -> Any:
        if type != 2 or x.dtype.kind == "c" or x.dtype == np.float16:
            raise Unsupported("rule.parameter", f"scipy.fft.{name} of another type than 2, or of complex numbers")
        if norm not in (None, "backward", "ortho"):
            raise Unsupported("rule.parameter", f"scipy.fft.{name}: norm={norm!r}")
        x = x if x.dtype.kind == "f" else x.astype(float)
        return getattr(jfft, name)(x, type=2, axis=axis, norm=norm)

    return lower


for _name in ("dct", "idct"):
    add_rule(getattr(fft, _name), _cosine(_name), "x | type axis norm")


@rule(fft.fftfreq, "d | n")
def fftfreq(*, n: int, d: Any = 1.0) -> Any:
    return jnp.fft.fftfreq(n, d)


@rule(fft.rfftfreq, "d | n")
def rfftfreq(*, n: int, d: Any = 1.0) -> Any:
    return jnp.fft.rfftfreq(n, d)
