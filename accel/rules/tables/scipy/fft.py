"""scipy.fft: as numpy.fft, in the precision of the operand."""

from __future__ import annotations

from scipy import fft

from accel.rules.hosted import on_host
from accel.rules.lowering import same
from accel.rules.rule import add_rule
from accel.rules.tables.algebra.fourier import frequencies, transform

for _name in "fft ifft rfft irfft hfft ihfft".split():
    add_rule(getattr(fft, _name), transform(_name, "x", scipys=True), "x | n axis norm", work=20.0)
for _name in "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split():
    add_rule(getattr(fft, _name), transform(_name, "x", scipys=True), "x | s axes norm", work=20.0)
for _name in ("fftshift", "ifftshift"):
    add_rule(getattr(fft, _name), same(_name, "jax.numpy.fft"), "x | axes")


for _name in ("fftfreq", "rfftfreq"):
    add_rule(getattr(fft, _name), frequencies(_name), "d | n")


on_host(
    fft,
    """
    dct: x
    dctn: x
    dst: x
    dstn: x
    hfft2: x
    hfftn: x
    idct: x
    idctn: x
    idst: x
    idstn: x
    """,
)
