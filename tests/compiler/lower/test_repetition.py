"""Constants that repeat along axes: programs that compute with them agree with NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import accel
from accel.platform import config


class Sun:
    """A grid and a field, where most of what is computed repeats along rows or columns."""

    def __init__(self) -> None:
        self.lat = np.repeat(np.linspace(-1.5, 1.5, 7)[:, None], 9, axis=1)
        self.lon = np.repeat(np.linspace(0.0, 6.0, 9)[None, :], 7, axis=0)
        self.land = (self.lon + self.lat > 3.0) * 1.0
        self.heat = np.zeros((7, 9))

    def shine(self, t: float) -> Any:
        """Repeated with repeated, along the same and another axis, with fields, writes and shifts in between."""
        angle = np.cos(self.lon + t) * np.exp(np.sin(self.lon))
        height = np.sin(self.lat) * np.sin(0.4) + np.cos(self.lat) * angle
        column = np.where(self.lat > 0.0, self.lat**1.5, -(np.abs(self.lat) ** 0.25))
        column[2] = 5.0
        self.heat = self.heat * 0.5 + np.maximum(height, 0.0) * (1.0 - 0.3 * self.land) + np.roll(column, 1, axis=1)
        return angle, np.gradient(np.tanh(column), axis=0), column.sum()


def test_values_that_repeat_agree_with_numpy(books: Any) -> None:
    plain, fast = Sun(), Sun()
    shine = accel.accelerate(Sun.shine, name="shine")
    with config.override(ahead_of_time=False, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for step in range(10):
            expected, found = plain.shine(step * 0.3), shine(fast, step * 0.3)
            for left, right in zip(expected, found, strict=True):
                assert (type(left), left.dtype, left.shape) == (type(right), right.dtype, right.shape)
                np.testing.assert_allclose(right, left, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(fast.heat, plain.heat, rtol=1e-12, atol=1e-14)
            assert found[0].flags.writeable
            assert found[0].strides == expected[0].strides
    assert books.open_ledger("shine").compiled_calls >= 5
