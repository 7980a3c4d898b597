"""NaN goes through reductions over large arrays as through small ones: XLA's own on the CPU lose it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft

import accel

CASES: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: np.sin(x).max(),
    "min": lambda x: np.sin(x).min(),
    "max of all": lambda x: np.max(x),
    "min by columns": lambda x: np.min(x * 2.0, axis=0),
    "max by rows": lambda x: np.max(x * 2.0, axis=1),
    "max by rows, kept": lambda x: np.max(x * 2.0, axis=1, keepdims=True),
    "largest of some": lambda x: np.max(x, initial=-5.0, where=x != 0.5),
    "smallest or less": lambda x: np.min(x, initial=-5.0),
    "ptp": lambda x: np.ptp(x, axis=1),
    "minimum.reduce": lambda x: np.minimum.reduce(x + 1.0),
    "maximum.reduce": lambda x: np.maximum.reduce(x + 1.0, axis=None),
    "maximum.reduceat": lambda x: np.maximum.reduceat(x, [0, 100, 300], axis=1),
    "minimum.accumulate": lambda x: np.minimum.accumulate(x, axis=1)[:, ::50],
    "clipped": lambda x: np.clip(x, -1.0, 1.0).min(),
    "of two": lambda x: np.minimum(x, 1.0).min(),
    "slice": lambda x: x[100:, 50:].min(),
    "selected": lambda x: x[x != 0.25].max(),
    "norm, least": lambda x: np.linalg.norm(x, -np.inf, axis=0),
    "norm, largest": lambda x: np.linalg.norm(x, np.inf),
    "norm of columns": lambda x: np.linalg.norm(x, 1),
    "nanmax": lambda x: np.nanmax(x, axis=1),
    "argmax": lambda x: np.argmax(x, axis=1),
    "median": lambda x: np.median(x[200:202]),
    "maximum.at": lambda x: _at(x),
    "padded with extremes": lambda x: np.pad(x, 2, mode="maximum") + np.pad(x, 2, mode="minimum"),
}


def _at(x: Any) -> Any:
    most = np.zeros(4)
    np.maximum.at(most, np.arange(500) % 4, x[250])
    return most


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_nan_goes_through(case: Callable[[Any], Any], dtype: Any, foreground: None) -> None:
    x = np.random.default_rng(0).standard_normal((500, 500)).astype(dtype)
    spoilt = x.copy()
    spoilt[250, 251] = np.nan
    fast: Any = accel.accelerate(case)
    for given in (x, x + dtype(0.5), x, spoilt, spoilt, x):
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(fast(given), case(given), rtol=1e-5 if dtype == np.float32 else 1e-12)
    target = fast._self_target
    if any(path.program.has_program for path in target.paths):
        for path in target.paths:
            path.replays = path.compared_at = 10**6  # nothing is compared any more
        for given in (spoilt, x, spoilt):
            np.testing.assert_allclose(fast(given), case(given), rtol=1e-5 if dtype == np.float32 else 1e-12)


WRAPPING: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: (x * 2 + 1).max(axis=1),
    "min": lambda x: (x * 2 + 1).min(axis=0),
    "max of all": lambda x: (x * 3 - 7).max(),
    "mean": lambda x: (x * 2 + 1).mean(axis=1),
    "sum": lambda x: ((x * 2 + 1) * 0.5).sum(axis=1),
    "sum in double": lambda x: (x * 2 + 1).sum(dtype=np.float64),
    "negative": lambda x: (-x).max(axis=1),
    "made on the way": lambda x: ((x > 3).astype(np.int8) * 100 + x.astype(np.int8)).astype(np.float64).sum(axis=1),
    "any": lambda x: ((x * 2 + 1) > 100).any(axis=1),
}


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("case", WRAPPING.values(), ids=list(WRAPPING))
def test_integers_of_8_bits_wrap_in_front_of_reductions(
    case: Callable[[Any], Any], dtype: Any, foreground: None
) -> None:
    x = np.random.default_rng(0).integers(1, 20, (300, 300)).astype(dtype)
    spoilt = x.copy()
    spoilt[5, 7] = 100 if dtype == np.int8 else 200
    fast: Any = accel.accelerate(case)
    for _ in range(6):
        np.testing.assert_allclose(fast(x), case(x), rtol=1e-12)
    for path in fast._self_target.paths:
        path.replays = path.compared_at = 10**6
    assert fast._self_target.ledger.compiled_calls
    for given in (spoilt, x, spoilt):
        np.testing.assert_allclose(fast(given), case(given), rtol=1e-12)


TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "fft": lambda x, norm: np.fft.fft(x, axis=0, norm=norm),
    "ifft": lambda x, norm: np.fft.ifft(x, 11, norm=norm),
    "rfft": lambda x, norm: np.fft.rfft(x, 6, norm=norm),
    "ihfft": lambda x, norm: np.fft.ihfft(x, norm=norm),
    "fft2": lambda x, norm: np.fft.fft2(x, norm=norm),
    "ifftn": lambda x, norm: np.fft.ifftn(x, (3, 9), (0, 1), norm=norm),
    "rfftn": lambda x, norm: np.fft.rfftn(x, axes=(1, 0), norm=norm),
    "scipy": lambda x, norm: scipy.fft.rfft(x, norm=norm),
}


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_scaling_a_transform_keeps_real_and_imaginary_parts_apart(name: str, norm: str, foreground: None) -> None:
    fast: Any = accel.accelerate(lambda x: TRANSFORMS[name](x, norm))
    plain = np.random.default_rng(0).standard_normal((6, 8))
    for number in range(4):
        fast(plain + number)
    assert any(path.program.has_program for path in fast._self_target.paths)
    for path in fast._self_target.paths:
        path.replays = path.compared_at = 10**6  # nothing is compared any more
    before = fast._self_target.ledger.compiled_calls
    for value in (0.0, np.nan, np.inf, -np.inf):
        x = plain.copy()
        x[2, 3] = value
        with np.errstate(invalid="ignore"):
            given, want = fast(x), TRANSFORMS[name](x, norm)
        np.testing.assert_allclose(given.real, want.real, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(given.imag, want.imag, rtol=1e-12, atol=1e-12)
    assert fast._self_target.ledger.compiled_calls == before + 4
