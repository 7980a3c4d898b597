"""Programs that kernels once gave wrong results for, or that made them give up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel.backend import segmented
from accel.compiler.kernels import machine_code
from accel.compiler.kernels.segments import Kernel

pytest.importorskip("llvmlite")


def kernel_results(function: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """What one kernel gives for a function of JAX's."""
    import jax

    def whole(given: list[Any], constants: list[Any], scalars: dict[str, Any]) -> Any:
        return list(function(*given)), {}

    with jax.enable_x64(True):
        made = segmented.built(whole, ([jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays], [], {}), {})
    assert [type(each) for each in made.segments] == [Kernel]
    found: list[np.ndarray[Any, Any]] = made(arrays, [], {})[0]
    return found


def rows_at(source: Any, places: Any) -> Any:
    return source.at[places].get(mode="promise_in_bounds")


def test_parts_that_are_results_are_gathered_from_the_whole() -> None:
    x, places = np.arange(6.0), np.array([5, 0, 2])

    def function(x: Any, places: Any) -> Any:
        part = x[::-1].reshape(6, 1)
        return part, rows_at(part, places)

    found = kernel_results(function, x, places)
    np.testing.assert_array_equal(found[1], x[::-1].reshape(6, 1)[places])


def _bordered(xp: Any, x: Any, y: Any) -> list[Any]:
    """Rows of one product behind a row of another, read after much else was computed."""

    def around(z: Any) -> Any:
        return xp.roll(z, 1, 1) - xp.roll(z, -1, 1)

    tripled = around(x * y + 1.0) * 3.0
    z = xp.roll(tripled, 2, 1) * xp.roll(tripled, -1, 0)
    for _ in range(4):
        z = around(z)
    return [xp.concatenate([(y * 3.0)[:1], tripled[1:]]) + z]


def test_a_stored_value_is_not_computed_again_from_memory_that_is_gone() -> None:
    """In a merge of rows, the operands of a stored value were read after their memory had been given to others."""
    import jax.numpy as jnp

    x, y = np.random.default_rng(5).normal(size=(2, 40, 48))
    (found,) = kernel_results(lambda x, y: _bordered(jnp, x, y), x, y)
    np.testing.assert_array_equal(found, _bordered(np, x, y)[0])


def test_a_nest_that_reads_what_was_not_planned_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax.numpy as jnp

    from accel.compiler.kernels.memory import Pointer
    from accel.compiler.kernels.nest import LoopNest

    x, y = np.ones((2, 40, 48))
    pointers = [Pointer(number, 0) for number in range(400)]
    monkeypatch.setattr(LoopNest, "text", lambda self, text=LoopNest.text: (*text(self)[:2], pointers))
    with pytest.raises(RuntimeError, match="not planned"):
        kernel_results(lambda x, y: _bordered(jnp, x, y), x, y)


def test_rows_and_columns_that_come_from_the_same_arrays_are_told_apart() -> None:
    """Both borders were one value where an array is as long as it is wide."""
    import jax.numpy as jnp

    def bordered(xp: Any, x: Any, y: Any) -> list[Any]:
        return [xp.concatenate([x[:1], y[1:]]) - 2.0 * xp.concatenate([x[:, :1], y[:, 1:]], 1)]

    x, y = np.random.default_rng(7).normal(size=(2, 5, 5, 8))
    (found,) = kernel_results(lambda x, y: bordered(jnp, x, y), x, y)
    np.testing.assert_array_equal(found, bordered(np, x, y)[0])


def test_a_long_chain_that_no_result_needs_is_not_computed() -> None:
    def function(x: Any, y: Any) -> Any:
        for _ in range(120):
            y = y * 1.5 + 1.0
        return [x + 1.0]

    x, y = np.random.default_rng(6).normal(size=(2, 9, 33))
    (found,) = kernel_results(function, x, y)
    np.testing.assert_array_equal(found, x + 1.0)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint64])
def test_places_of_few_bits_reach_into_long_arrays(dtype: Any) -> None:
    from jax import lax

    x, places = np.arange(300.0), np.array([0, 100, 127, 3], dtype)
    about = lax.GatherDimensionNumbers((), (0,), (0,))
    found = kernel_results(lambda x, at: [lax.gather(x, at[:, None], about, (1,), mode="clip")], x, places)
    np.testing.assert_array_equal(found[0], x[places])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(7, 17), (1, 9), (9, 1), (300, 2)])
def test_sums_of_negative_zeros_are_zero(shape: tuple[int, ...], dtype: Any) -> None:
    x = np.full(shape, -0.0, dtype)
    for mine, theirs in zip(
        kernel_results(lambda x: [x.sum(), x.sum(0), x.sum(1)], x), (x.sum(), x.sum(0), x.sum(1)), strict=True
    ):
        np.testing.assert_array_equal(np.signbit(mine), np.signbit(theirs))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint64])
@pytest.mark.parametrize("shape", [(5,), (33,), (7, 17), (130, 3), (1, 9), (9, 1), (3, 4, 5)])
def test_products_and_running_sums_go_from_left_to_right(shape: tuple[int, ...], dtype: Any) -> None:
    """In another order, numbers as large as these overflow elsewhere, and 0 meets infinity."""
    from jax import lax

    exponents = np.random.default_rng(3).choice([-60.0, -20.0, -1.0, 0.0, 1.0, 20.0, 60.0], shape)
    x = (10.0**exponents * np.random.default_rng(4).choice([1.1, -1.3, 3.0], shape)).clip(-1e37, 1e37)
    x = x.astype(dtype) if np.dtype(dtype).kind == "f" else np.arange(1, x.size + 1).reshape(shape).astype(dtype)
    last = len(shape) - 1

    def function(x: Any) -> Any:
        return [
            lax.reduce_prod(x, range(len(shape))),
            lax.reduce_prod(x, [0]),
            lax.reduce_prod(x, [last]),
            *(run(x, axis) for axis in (0, last) for run in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin)),
        ]

    running = (np.add, np.multiply, np.maximum, np.minimum)
    with np.errstate(all="ignore"):
        expected = [np.multiply.reduce(x, axis, dtype) for axis in (None, 0, last)]
        expected += [run.accumulate(x, axis, dtype) for axis in (0, last) for run in running]
    for mine, theirs in zip(kernel_results(function, x), expected, strict=True):
        assert mine.tobytes() == np.ascontiguousarray(theirs).tobytes()


def test_running_sums_keep_the_sign_of_a_zero_and_what_is_not_a_number() -> None:
    from jax import lax

    x = np.array([-0.0, -0.0, np.nan, 1.0, -0.0])
    found = kernel_results(lambda x: [lax.cumsum(x), lax.cummax(x), lax.cumprod(x[::-1])], x)
    for mine, theirs in zip(found, (x.cumsum(), np.maximum.accumulate(x), x[::-1].cumprod()), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(np.signbit(mine)[:2], np.signbit(theirs)[:2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_subnormal_numbers_have_whole_quotients(dtype: Any) -> None:
    from accel.rules import quotients

    x = np.array([1.0, -1.0, 7.5, 0.0]) * np.finfo(dtype).smallest_subnormal
    found = kernel_results(lambda x: [quotients.floor_divide(x, dtype(3)), quotients.remainder(x, dtype(3))], x)
    for mine, theirs in zip(found, np.divmod(x, dtype(3)), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_unsigned_numbers_are_shifted_beyond_their_width_with_their_first_bit() -> None:
    from jax import lax

    x, count = np.array([200, 100, 128], np.uint8), np.array([9, 9, 2], np.uint8)
    found = kernel_results(lambda x, count: [lax.shift_right_arithmetic(x, count)], x, count)
    np.testing.assert_array_equal(found[0], np.array([255, 0, 224], np.uint8))


def test_a_choice_among_three_literals_and_padding_without_axes_are_taken() -> None:
    from jax import lax

    def function(x: Any) -> Any:
        chosen = lax.select_n(np.int32(1), np.float64(1), np.float64(2), np.float64(3))
        return [x + chosen, lax.pad(x, np.float64(0), [])]

    found = kernel_results(function, np.asarray(4.0))
    assert [float(each) for each in found] == [6.0, 4.0]


def test_a_result_that_is_asked_for_twice_is_two_arrays() -> None:
    def function(x: Any) -> Any:
        y = x * 2.0 + 1.0
        return y, y, y

    found = kernel_results(function, np.arange(20.0))
    found[0][:] = 0.0
    found[1][:] = 1.0
    np.testing.assert_array_equal(found[2], np.arange(20.0) * 2.0 + 1.0)


@pytest.mark.parametrize("signed", [np.int8, np.int16, np.int32, np.int64])
def test_pieces_of_other_signedness_are_not_computed_alike(signed: Any) -> None:
    """LLVM has one type for both."""
    from jax import lax
    from jax import numpy as jnp

    unsigned = np.dtype(f"u{np.dtype(signed).itemsize}")
    x = np.iinfo(unsigned).max - np.arange(35, dtype=unsigned).reshape(5, 7)
    y = np.arange(-17, 18).astype(signed).reshape(5, 7)

    def function(x: Any, y: Any) -> Any:
        wide, halves = (lax.convert_element_type(each, float) for each in (x, y)), (x // 2, y // 2)
        return [
            *(jnp.concatenate([left[:2], right[2:]]) for left, right in (tuple(wide), (x > 3, y > 3))),
            jnp.stack([lax.convert_element_type(each, np.int64) for each in halves]),
        ]

    expected = (
        np.concatenate([x[:2].astype(float), y[2:].astype(float)]),
        np.concatenate([x[:2] > 3, y[2:] > 3]),
        np.stack([(x // 2).astype(np.int64), (y // 2).astype(np.int64)]),
    )
    for mine, theirs in zip(kernel_results(function, x, y), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_threads_that_run_a_new_program_at_once_load_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax

    with jax.enable_x64(True):
        form = jax.ShapeDtypeStruct((50,), np.float64)
        made = segmented.built(lambda given, constants, scalars: ([given[0] * 2.0], {}), ([form], [], {}), {})
    start, loaded, load = threading.Barrier(4), [], machine_code.Loaded

    def counted(code: bytes) -> machine_code.Loaded:
        loaded.append(load(code))
        return loaded[-1]

    def run() -> None:
        start.wait()
        made([np.ones(50)], [], {})

    monkeypatch.setattr(machine_code, "Loaded", counted)
    threads = [threading.Thread(target=run) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(loaded) == 1


def test_any_byte_but_zero_is_true() -> None:
    bytes_ = np.array([0, 1, 2, 4, 255, 3, 0, 2, 8, 16, 0, 32, 64, 128, 1, 2, 4, 8, 0, 6], np.uint8).reshape(4, 5)
    x = bytes_.view(bool)

    def function(x: Any) -> Any:
        return x.any(1), x.all(1), x.astype(float), ~x, x.T | x[0, 0], x.max()

    truths = bytes_ != 0
    expected = truths.any(1), truths.all(1), truths.astype(float), ~truths, truths.T, np.asarray(True)
    for mine, theirs in zip(kernel_results(function, x), expected, strict=True):
        assert mine.tobytes() == np.ascontiguousarray(theirs).tobytes()
