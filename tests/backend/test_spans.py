"""Spans: large arrays reach a program where they lie, wherever that is, and no memory beyond their own pages does."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.backend import spans
from accel.backend.underway import queues
from accel.dispatch.comparing import policy
from accel.dispatch.paths import path as paths


@pytest.fixture(autouse=True)
def undisturbed(foreground: None, by_xla: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests have left compiling does not matter."""
    monkeypatch.setattr(queues, "busy", lambda: False)


def placed(array: Any, offset: int, room: Any = None) -> Any:
    """The array so many bytes behind the beginning of a page; of `room`, or of one in the middle of new memory."""
    if room is None:
        room = np.full(array.nbytes + 4 * mmap.PAGESIZE, 255, np.uint8)
        room = room[-room.ctypes.data % mmap.PAGESIZE + mmap.PAGESIZE :]
    made = room[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def numbers(shape: tuple[int, ...], dtype: str = "float64") -> Any:
    return (np.arange(int(np.prod(shape))) % 7).reshape(shape).astype(dtype)


@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple),
    dtype=st.sampled_from(["float64", "float32", "complex128", "bool", "int8", "uint16", "float16"]),
    offset=st.integers(0, 2 * mmap.PAGESIZE // 16).map(lambda sixteens: 16 * sixteens),
)
def test_a_span_holds_its_array_where_it_lies(shape: tuple[int, ...], dtype: str, offset: int) -> None:
    array = placed(numbers(shape, dtype), offset)
    span = spans.span_of(array)
    memory, place = span.of(array)
    assert memory.ctypes.data % 64 == 0 and memory.shape == (span.length,) and memory.dtype == array.dtype
    inside = memory[place : place + array.size].reshape(shape)
    np.testing.assert_array_equal(inside, array)
    if inside.ctypes.data == array.ctypes.data:
        first = array.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
        last = -(-(array.ctypes.data + array.nbytes) // mmap.PAGESIZE) * mmap.PAGESIZE
        assert first <= memory.ctypes.data and memory.ctypes.data + memory.nbytes <= last
    else:  # only where it fills its pages, but for less than one line of memory
        assert -(array.nbytes + offset % mmap.PAGESIZE) % mmap.PAGESIZE < 64 and offset % mmap.PAGESIZE < 64


def test_what_fills_its_pages_is_copied() -> None:
    """Memory before and behind it need not be there: a file that is mapped, a page that is protected."""
    array = placed(numbers((mmap.PAGESIZE // 8,)), 0, np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.uint8))
    memory, place = spans.span_of(array).of(array)
    assert not np.shares_memory(memory, array)
    np.testing.assert_array_equal(memory[place : place + array.size], array)


@pytest.mark.parametrize(
    "other",
    [lambda x: x[:, ::2], lambda x: x.T, lambda x: x[:, :0]],
    ids=["strided", "transposed", "empty"],
)
def test_what_is_not_in_one_piece_is_copied(other: Any) -> None:
    array = other(placed(numbers((8, 8)), 16))
    memory, place = spans.span_of(array).of(array)
    np.testing.assert_array_equal(memory[place : place + array.size].reshape(array.shape), array)


LARGE = (260, 300)


CALLS = 24
"""Calls of an accelerated function until its program takes arrays from spans that it would have to copy, and more."""


def compiled_spans(function: Any) -> Any:
    """The spans that the only compiled program of an accelerated function takes."""
    (path,) = function._self_target.paths
    return path.variant.executable.spans


def work(x: Any, y: Any) -> Any:
    z = np.sin(x) + 2.0 * y
    z[1:] -= z[:-1] * x[1:]
    return z, x, z.sum(axis=0)


@pytest.mark.parametrize("writeable", [True, False])
def test_results_are_numpys_wherever_arrays_lie(writeable: bool) -> None:
    fast = accel.accelerate(work)
    x, y = numbers(LARGE) / 7, numbers(LARGE) / 3
    for k in range(2 * CALLS):
        lines = (16 * (k % 3 + 1), 48) if k < CALLS else (16 * (k % 9), 16 * (k % 5))
        mine = [placed(x + k, lines[0]), placed(y - k, lines[1])]
        for array in mine:
            array.flags.writeable = writeable
        before = [array.copy() for array in mine]
        for got, wanted in zip(fast(*mine), work(*before), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
        for array, old in zip(mine, before, strict=True):
            np.testing.assert_array_equal(array, old)
    assert len(compiled_spans(fast)) == 2


def test_aligned_arrays_and_small_ones_come_as_they_are() -> None:
    fast = accel.accelerate(lambda x, y: x + y[0])
    for _ in range(CALLS):
        fast(placed(numbers(LARGE), 64), placed(numbers((3, 300)), 16))
    assert not compiled_spans(fast)


def test_what_seldom_has_to_be_copied_comes_as_it_is() -> None:
    """As what other programs made does: arrays are aligned there, and read faster so."""
    fast = accel.accelerate(lambda x: x + 1.0)
    for k in range(2 * CALLS):
        fast(placed(numbers(LARGE), 16 if k % 3 == 0 else 64))
    assert not compiled_spans(fast)


def test_a_program_with_spans_is_compared_before_it_is_trusted() -> None:
    fast = accel.accelerate(lambda x: x * 3.0)
    for _ in range(CALLS):
        fast(placed(numbers(LARGE), 16))
    (path,) = fast._self_target.paths
    assert path.variant.executable.spans
    assert fast._self_target.ledger.comparisons >= 2 * policy.FIRST_COMPARED


def test_a_constant_that_changes_while_spans_are_prepared_is_no_constant_afterwards() -> None:
    """The program that is still being compiled was made for the old one."""
    box = {"gain": 2.0}
    fast = accel.accelerate(lambda x: x * box["gain"])
    for _ in range(3 + paths.SPAN_SAMPLES):
        fast(placed(numbers(LARGE), 16))
    (path,) = fast._self_target.paths
    assert path.successor is not None
    box["gain"] = 5.0
    for _ in range(CALLS):
        np.testing.assert_array_equal(fast(placed(numbers(LARGE), 16)), numbers(LARGE) * 5.0)


def test_what_is_changed_comes_as_it_is() -> None:
    def change(x: Any, y: Any) -> None:
        x += y

    fast = accel.accelerate(change)
    for k in range(CALLS):
        x, y = placed(numbers(LARGE), 16), placed(numbers(LARGE) + k, 16)
        fast(x, y)
        np.testing.assert_array_equal(x, numbers(LARGE) * 2 + k)
    assert list(compiled_spans(fast).values()) == [spans.span_of(numbers(LARGE))]


def test_what_is_changed_is_no_reason_to_compile_again() -> None:
    def double(x: Any) -> None:
        x *= 2.0

    fast = accel.accelerate(double)
    for _ in range(CALLS):
        fast(placed(numbers(LARGE), 16))
    (path,) = fast._self_target.paths
    assert path.replays > paths.SPAN_SAMPLES
    assert not path.spanned and path.successor is None


def test_a_program_keeps_the_memory_that_it_reads() -> None:
    """The array is gone once the call is over; nobody has written to its memory before that."""
    fast = accel.accelerate(lambda x: np.cumsum(x, axis=0)[-1])
    for k in range(CALLS):
        np.testing.assert_array_equal(fast(placed(numbers(LARGE) + k, 48)), (numbers(LARGE) + k).sum(axis=0))


def halves(x: Any) -> Any:
    return x[::2] == x[1::2], x[3] if x.dtype == bool else -x[3]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int16", "uint8", "bool", "complex64", "complex128"])
def test_each_kind_of_number(dtype: str) -> None:
    fast = accel.accelerate(halves)
    for offset in (16, 32, 0, 48, 16, 80) * 4:
        x = placed(numbers((2048, 256), dtype), offset)
        for got, wanted in zip(fast(x), halves(x), strict=True):
            np.testing.assert_array_equal(got, wanted)
            assert got.dtype == wanted.dtype
    assert len(compiled_spans(fast)) == 1
