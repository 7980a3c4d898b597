"""Faults of XLA's own libraries do not reach the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import accel

pytestmark = pytest.mark.usefixtures("foreground")


def product_sum(a: Any, b: Any) -> Any:
    return (a * b).sum(3)


def last_rows(matrix: Any, x: Any) -> Any:
    return ((matrix @ x[..., None])[..., 0] ** 2).sum(1)


def transforms(x: Any) -> Any:
    for _ in range(6):
        x = np.fft.irfft2(np.fft.rfft2(x) * 0.5, s=x.shape)
    return x


def test_a_sum_over_one_of_seven_axes() -> None:
    """jaxlib 0.10.2 crashes here: its library for reductions."""
    draw = np.random.default_rng(0)
    a, b = (draw.random((3, 1, 2, 2, 8, 8, 8)).astype(np.float32) for _ in range(2))
    fast = accel.accelerate(product_sum)
    for _ in range(200):
        np.testing.assert_allclose(fast(a, b), product_sum(a, b), rtol=1e-6)


def test_the_last_rows_of_a_product_of_many() -> None:
    draw = np.random.default_rng(0)
    matrix, x = draw.random((3, 3)), draw.random((16385, 3))
    fast = accel.accelerate(last_rows)
    for _ in range(6):
        np.testing.assert_allclose(fast(matrix, x), last_rows(matrix, x), rtol=1e-12)


def test_several_transforms_in_one_program() -> None:
    x = np.random.default_rng(0).random((256, 256))
    fast = accel.accelerate(transforms)
    for _ in range(4):
        np.testing.assert_allclose(fast(x), transforms(x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", [transforms, np.negative])
def test_results_are_as_arrays_of_numpys(function: Any) -> None:
    """NumPy asks the base whether an array may become writable, and skips bases of an array's own type."""
    fast: Any = accel.accelerate(lambda x: function(x))
    for i in range(6):
        found = fast(np.ones((8, 8)) + i)
        assert found[1:].base is found and found.T.base is found
        found.flags.writeable = False
        found.flags.writeable = True
