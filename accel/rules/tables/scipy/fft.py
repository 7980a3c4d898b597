"""scipy.fft: as numpy.fft, in the precision of the operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import fft

from accel.rules.hosted import on_host
from accel.rules.lowering import Lazy, same
from accel.rules.rule import Unsupported, add_rule
from accel.rules.tables.algebra.fourier import frequencies, transform

jfft: Any = Lazy("jax.scipy.fft")


for _name in "fft ifft rfft irfft hfft ihfft".split():
    add_rule(getattr(fft, _name), transform(_name, "x", scipys=True), "x | n axis norm", work=20.0)
for _name in "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split():
    add_rule(getattr(fft, _name), transform(_name, "x", scipys=True), "x | s axes norm", work=20.0)
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
    add_rule(getattr(fft, _name), _cosine(_name), "x | type axis norm", work=20.0)


for _name in ("fftfreq", "rfftfreq"):
    add_rule(getattr(fft, _name), frequencies(_name), "d | n")


on_host(
    fft,
    """
    dctn: x
    dst: x
    dstn: x
    hfft2: x
    hfftn: x
    idctn: x
    idst: x
    idstn: x
    """,
)
