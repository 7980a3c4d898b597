"""scipy.signal: convolution and correlation; filters of other kinds are calls on the host."""

from __future__ import annotations

import functools
import itertools
import operator
from typing import Any

import numpy as np
from scipy import signal

from accel.rules.core import all_finite, cast, in_common_dtype
from accel.rules.hosted import on_host
from accel.rules.lowering import Array, axes_of, jnp, lax, number
from accel.rules.rule import Unsupported, rule

MOST_TAPS = 512
"""Maximum elements of a kernel that is written out as a sum of slices; larger ones use transforms. Guess."""


_finite = all_finite
"""The padding's zeros times an infinity would be NaN, and a transform spreads one over everything."""


def _convolved(a: Any, v: Any, mode: str) -> Any:
    """The convolution of two arrays of as many axes, of the part that `mode` names; "same" is of the first's shape."""
    if a.ndim != v.ndim or not a.ndim or not a.size or not v.size or mode not in ("full", "same", "valid"):
        raise Unsupported("rule.parameter", f"scipy.signal.convolve of nothing, or mode={mode!r}")
    if a.size == v.size == 1:
        raise Unsupported("rule.parameter", "scipy.signal.convolve of two numbers")
    a, v = in_common_dtype(a, v)
    if a.dtype.kind == "b" or a.dtype == np.float16:
        raise Unsupported("rule.parameter", "scipy.signal.convolve of truths or halves")
    starts, lengths = _part(a.shape, v.shape, mode)
    if v.size > a.size:
        a, v = v, a
    if v.size <= MOST_TAPS:
        return _sum_of_slices(a, v, starts, lengths)
    if a.dtype.kind in "iu":
        raise Unsupported("rule.parameter", f"scipy.signal.convolve of whole numbers with {v.size} taps")
    return _by_transforms(a, v, starts, lengths)


def _part(a: tuple[int, ...], v: tuple[int, ...], mode: str) -> tuple[list[int], list[int]]:
    """Start and shape of the part in the full convolution."""
    full = [n + m - 1 for n, m in zip(a, v, strict=True)]
    if mode == "full":
        return [0] * len(full), full
    if mode == "same":
        return [(whole - n) // 2 for whole, n in zip(full, a, strict=True)], list(a)
    if not (all(map(operator.ge, a, v)) or all(map(operator.ge, v, a))):
        raise Unsupported("rule.parameter", "scipy.signal.convolve: neither array fits into the other")
    smaller = [min(n, m) for n, m in zip(a, v, strict=True)]
    return [m - 1 for m in smaller], [max(n, m) - min(n, m) + 1 for n, m in zip(a, v, strict=True)]


def _sum_of_slices(a: Any, v: Any, starts: list[int], lengths: list[int]) -> Any:
    padded = lax.pad(a, number(0, a), [(m - 1, m - 1, 0) for m in v.shape])

    def term(at: tuple[int, ...]) -> Any:
        begin = [start - k + m - 1 for start, k, m in zip(starts, at, v.shape, strict=True)]
        box = lax.slice(padded, begin, [low + length for low, length in zip(begin, lengths, strict=True)])
        return box * v[at]

    return functools.reduce(operator.add, map(term, itertools.product(*map(range, v.shape))))


def _by_transforms(a: Any, v: Any, starts: list[int], lengths: list[int]) -> Any:
    size = [n + m - 1 for n, m in zip(a.shape, v.shape, strict=True)]
    there, back = (jnp.fft.fftn, jnp.fft.ifftn) if a.dtype.kind == "c" else (jnp.fft.rfftn, jnp.fft.irfftn)
    axes = tuple(range(a.ndim))
    whole = back(there(a, size, axes) * there(v, size, axes), size, axes)
    return lax.slice(whole, starts, [low + length for low, length in zip(starts, lengths, strict=True)])


def _by_method(a: Any, v: Any, mode: str, method: str) -> Any:
    """By transforms, SciPy's whole numbers are cast from floats: what needs more than 32 bits becomes another one."""
    dtype = np.result_type(a.dtype, v.dtype)
    if method != "direct" and dtype.kind in "iu" and dtype.itemsize in (2, 4):
        raise Unsupported("rule.parameter", f"scipy.signal.convolve of {dtype} by method={method!r}")
    return _convolved(a, v, mode)


@rule(signal.convolve, "in1 in2 | mode method", holds=_finite)
def convolve(*, in1: Array, in2: Array, mode: str = "full", method: str = "auto") -> Any:
    return _by_method(in1, in2, mode, method)


def _floats(*arrays: Any) -> list[Any]:
    """Whole numbers as double precision; along an axis of length 1 SciPy multiplies them as they are."""
    if any(array.dtype.kind not in "fc" and 1 in array.shape for array in arrays):
        raise Unsupported("rule.parameter", "scipy.signal.fftconvolve of whole numbers along an axis of length 1")
    return [array if array.dtype.kind in "fc" else cast(array, np.dtype(float)) for array in arrays]


def _along(axes: Any, a: Any, v: Any) -> None:
    """Along some axes alone: that is what all make of it where one array has a single element along the others."""
    chosen = axes_of(axes, a.ndim)
    if any(min(n, m) != 1 for axis, (n, m) in enumerate(zip(a.shape, v.shape, strict=True)) if axis not in chosen):
        raise Unsupported("rule.parameter", "scipy.signal.fftconvolve: axes along which both arrays go on")


@rule(signal.fftconvolve, "in1 in2 | mode axes", holds=_finite)
def fftconvolve(*, in1: Array, in2: Array, mode: str = "full", axes: Any = None) -> Any:
    first, second = _floats(in1, in2)
    _along(axes, first, second)
    return _convolved(first, second, mode)


@rule(signal.oaconvolve, "in1 in2 | mode axes", holds=_finite)
def oaconvolve(*, in1: Array, in2: Array, mode: str = "full", axes: Any = None) -> Any:
    return fftconvolve(in1=in1, in2=in2, mode=mode, axes=axes)


@rule(signal.correlate, "in1 in2 | mode method", holds=_finite)
def correlate(*, in1: Array, in2: Array, mode: str = "full", method: str = "auto") -> Any:
    if mode == "valid" and not all(map(operator.ge, in1.shape, in2.shape)):
        raise Unsupported("rule.parameter", "scipy.signal.correlate of the parts of a larger second array")
    turned = in2[tuple([slice(None, None, -1)] * in2.ndim)]
    return _by_method(in1, turned.conj() if turned.dtype.kind == "c" else turned, mode, method)


_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


@rule(signal.convolve2d, "in1 in2 | mode boundary fillvalue", holds=_finite)
def convolve2d(*, in1: Array, in2: Array, mode: str = "full", boundary: str = "fill", fillvalue: float = 0) -> Any:
    a, v = in1, in2
    if a.ndim != 2 or v.ndim != 2 or boundary not in _BOUNDARIES:
        raise Unsupported("rule.parameter", f"scipy.signal.convolve2d: boundary={boundary!r}")
    if a.dtype.kind == "b":
        a = cast(a, v.dtype)
    if any(m > n for n, m in zip(a.shape, v.shape, strict=True)):
        raise Unsupported("rule.parameter", "scipy.signal.convolve2d with a second array that is larger")
    if boundary == "fill" and not fillvalue:
        return _convolved(a, v, mode)
    starts, lengths = _part(a.shape, v.shape, mode)
    about = {"constant_values": fillvalue} if boundary == "fill" else {}
    wide = jnp.pad(a, [(m - 1, m - 1) for m in v.shape], mode=_BOUNDARIES[boundary], **about)
    whole = _convolved(wide, v, "valid")
    return lax.slice(whole, starts, [low + length for low, length in zip(starts, lengths, strict=True)])


on_host(
    signal,
    """
    argrelmax: data
    bessel: N Wn fs | output
    butter: N Wn fs | output
    cheby1: N rp Wn fs | output
    cheby2: N rs Wn fs | output
    chirp: t f0 t1 f1
    ellip: N rp rs Wn fs | output
    firwin: numtaps cutoff fs
    freqz: b a worN
    gausspulse: t fc
    get_window: Nx
    iirnotch: w0 Q fs
    iirpeak: w0 Q fs
    lfilter_zi: b a
    savgol_coeffs: window_length polyorder
    savgol_filter: x
    sosfilt: sos x zi
    sawtooth: t
    sosfilt_zi: sos
    square: t duty
    argrelmin: data
    coherence: x y
    csd: x y
    decimate: x
    detrend: data
    filtfilt: b a x
    hilbert: x
    lfilter: b a x zi
    find_peaks: x height threshold distance prominence width
    istft: Zxx
    lombscargle: x y freqs
    medfilt: volume
    medfilt2d: input
    order_filter: a domain
    peak_prominences: x peaks
    peak_widths: x peaks rel_height
    periodogram: x
    resample: x
    resample_poly: x
    sosfiltfilt: sos x
    spectrogram: x
    stft: x
    upfirdn: h x
    welch: x
    wiener: im
    """,
)
on_host(
    signal.windows,
    """
    blackman: M
    boxcar: M
    cosine: M
    gaussian: M std
    hamming: M
    hann: M
    kaiser: M beta
    triang: M
    tukey: M alpha
    """,
)
