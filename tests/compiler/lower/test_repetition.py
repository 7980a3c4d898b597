"""Repeating constants, and values that repeat: the same bits come back, and programs that use them agree with NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import accel
from accel.compiler.lower.repetition import RepeatedValue, without_repetition
from accel.platform import config

few = settings(max_examples=60, derandomize=True)
dtypes = st.sampled_from(["bool", "int8", "int64", "uint16", "float32", "float64", "complex64", "complex128"])


def restored(array: Any) -> Any:
    """What a program would see, as a NumPy array."""
    form = without_repetition(array)
    with jax.enable_x64(True):
        found = form.restore(jax.numpy.asarray(form.stored))
        return np.asarray(found.whole() if isinstance(found, RepeatedValue) else found)


@given(data=st.data(), dtype=dtypes, shape=hnp.array_shapes(min_dims=1, max_dims=3, max_side=5))
@few
def test_every_array_comes_back_to_the_bit(data: st.DataObject, dtype: str, shape: tuple[int, ...]) -> None:
    """Repeating along any axes, of few values or of many."""
    small = tuple(1 if data.draw(st.booleans()) else size for size in shape)
    floats = {"allow_subnormal": False} if np.dtype(dtype).kind in "fc" else {}
    elements = hnp.from_dtype(np.dtype(dtype), **floats)
    if data.draw(st.booleans()):
        elements = st.sampled_from(data.draw(st.lists(elements, min_size=1, max_size=2)))
    array = np.ascontiguousarray(np.broadcast_to(data.draw(hnp.arrays(dtype, small, elements=elements)), shape))
    found = restored(array)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


@given(data=st.data(), dtype=dtypes, shape=hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
@few
def test_a_program_takes_another_array_only_if_it_restores_that(
    data: st.DataObject, dtype: str, shape: tuple[int, ...]
) -> None:
    def drawn() -> Any:
        small = tuple(1 if data.draw(st.booleans()) else size for size in shape)
        elements = st.sampled_from(
            np.array([-0.0, 0.0, 1.0, 3.0]).astype(dtype).tolist()[: data.draw(st.integers(1, 4))]
        )
        return np.ascontiguousarray(np.broadcast_to(data.draw(hnp.arrays(dtype, small, elements=elements)), shape))

    one, other = drawn(), drawn()
    form = without_repetition(one)
    own = form.of(one)
    assert own is not None and own.tobytes() == form.stored.tobytes()
    stored = form.of(other)
    if stored is None:
        assert form.stored.shape != shape or form.numbers is not None, "it knows nothing of the elements"
        return
    assert (stored.shape, stored.dtype) == (form.stored.shape, form.stored.dtype)
    with jax.enable_x64(True):
        found = form.restore(jax.numpy.asarray(stored))
        whole = np.asarray(found.whole() if isinstance(found, RepeatedValue) else found)
    assert whole.tobytes() == other.tobytes()


@pytest.mark.parametrize(
    ("array", "stored"),
    [
        (np.repeat([[1.0], [2.0], [3.0]], 4, axis=1), (3, 1)),
        (np.repeat([[1.0, 2.0, 3.0]], 4, axis=0), (1, 3)),
        (np.full((3, 4), 7.0), (3, 4)),
        (np.arange(12.0).reshape(3, 4), (3, 4)),
    ],
)
def test_what_repeats_is_stored_once(array: Any, stored: tuple[int, ...]) -> None:
    assert without_repetition(array).stored.shape == stored


def test_two_values_are_stored_as_truths() -> None:
    array = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    assert without_repetition(array).stored.dtype == np.bool_
    assert without_repetition(np.array([0.0, -0.0, np.nan])).stored.dtype == np.float64  # three, by their bits


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
