"""Arrays whose elements decide the path: compared as a whole, constants to the program; and indices checked at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import ndimage

import accel
from accel.ir.bits import Content
from accel.platform.ledger import open_ledger
from accel.record import record
from accel.record.state.pinned import MANY
from accel.rules import core

pytestmark = pytest.mark.usefixtures("foreground")


def product(start: Any, column: Any, value: Any, x: Any) -> Any:
    """A sparse matrix in rows, times a vector."""
    y = np.empty(start.size - 1, value.dtype)
    for i in range(start.size - 1):
        row = slice(start[i], start[i + 1])
        y[i] = value[row] @ x[column[row]]
    return y


def sparse(rows: int, seed: int, dtype: str = "uint32") -> tuple[Any, ...]:
    """Rows of no to six elements."""
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(rng.integers(0, 7, rows))]).astype(dtype)
    count = int(start[-1])
    return start, rng.integers(-rows, rows, count), rng.standard_normal(count), rng.standard_normal(rows)


def outcomes_of(function: Any, *args: Any) -> list[Any]:
    recorded = record(function, args, {}, max_nodes=10**5)
    assert recorded.refusal is None
    return [outcome for outcome in recorded.trace.tape.outcomes if not outcome.node.host]


@pytest.mark.parametrize("dtype", ["uint32", "int64", "int16"])
def test_a_sparse_product_is_compiled_for_its_rows(dtype: str) -> None:
    fast = accel.accelerate(product)
    start, column, value, x = sparse(200, 1, dtype)
    for k in range(6):
        given = start.copy(), np.roll(column, k), value + k, x * k
        np.testing.assert_allclose(fast(*given), product(*given), rtol=1e-12, atol=1e-12)
    (path,) = fast._self_target.paths
    assert path.replays == 3
    assert len(path.program.variant.executable.program.outcomes) == 1  # that the columns are within x


def test_other_rows_are_another_path() -> None:
    fast = accel.accelerate(product)
    first, second = sparse(60, 1), sparse(60, 2)
    for k in range(12):
        start, column, value, x = (first, second)[k % 2]
        np.testing.assert_allclose(
            fast(start, column, value, x + k), product(start, column, value, x + k), rtol=1e-12, atol=1e-12
        )
    assert [path.replays > 0 for path in fast._self_target.paths] == [True, True]


def test_one_element_that_differs_is_seen() -> None:
    def last(flags: Any, x: Any) -> Any:
        return sum((x[i] if flags[i] else -x[i]) for i in range(len(flags)))

    fast = accel.accelerate(last)
    flags, x = np.arange(MANY + 8) % 3 == 0, np.arange(MANY + 8.0)
    for k in range(8):
        assert fast(flags, x + k) == last(flags, x + k)
    for i in (0, MANY // 2, MANY + 7):
        other = flags.copy()
        other[i] ^= True
        assert fast(other, x) == last(other, x)


def test_arrays_of_which_few_elements_are_needed_are_not_compared() -> None:
    def some(start: Any, x: Any) -> Any:
        return [x[: start[i]].sum() for i in range(4)]

    assert len(outcomes_of(some, np.arange(1000), np.ones(10))) == 4
    trace = record(some, (np.arange(1000), np.ones(10)), {}, max_nodes=10**5).trace
    assert not trace.pinned


def test_arrays_that_are_written_are_not_compared() -> None:
    def count_down(left: Any, x: Any) -> Any:
        total = 0.0
        for i in range(len(left)):
            total += x[: left[i]].sum()
            left[i] -= 1
        return total

    trace = record(count_down, (np.arange(1, 51), np.ones(64)), {}, max_nodes=10**5).trace
    assert not trace.pinned
    fast = accel.accelerate(count_down)
    mine, theirs = np.arange(10, 60), np.arange(10, 60)
    for _ in range(6):
        assert fast(mine, np.ones(64)) == count_down(theirs, np.ones(64))
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float16", "int8", "bool", "longdouble"])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_contents_are_compared_bit_by_bit(dtype: str, step: int) -> None:
    array = np.arange(24).astype(dtype).reshape(4, 6)[:, ::step]
    content = Content(array)
    assert content.is_same(array.copy()) and content.is_same(array)
    for place in ((0, 0), (3, array.shape[1] - 1)):
        other = np.arange(24).astype(dtype).reshape(4, 6)[:, ::step]
        other[place] = 5
        assert not content.is_same(other) or array[place] == other[place]
    if np.dtype(dtype).kind == "f":
        assert not Content(np.zeros(2, dtype)).is_same(-np.zeros(2, dtype))
        nans = np.full(2, np.nan, dtype)
        assert Content(nans).is_same(nans.copy())  # extended floats have unused bytes, which may differ


# -- indices ----------------------------------------------------------------------------------------------------------


def parts(index: Any, x: Any) -> Any:
    return [x[index[k : k + 3]].sum() for k in range(20)]


def test_parts_of_an_index_array_are_checked_at_once() -> None:
    nodes = [outcome.node for outcome in outcomes_of(parts, np.arange(40) % 9, np.ones(9))]
    assert [(node.rule, node.args[0].rule.name) for node in nodes] == [(core.IN_BOUNDS, "accel.input")]


def test_an_index_that_nobody_uses_may_be_anything() -> None:
    index, x = np.arange(40) % 9, np.arange(9.0)
    index[39] = 10**6
    assert len(outcomes_of(parts, index, x)) == 20
    fast = accel.accelerate(parts)
    for k in range(8):
        index[39] = 10**6 if k > 4 else 0
        assert fast(index, x) == parts(index, x)


def test_an_index_beyond_the_end_raises() -> None:
    fast = accel.accelerate(parts)
    index, x = np.arange(40) % 9, np.arange(9.0)
    for _ in range(6):
        fast(index, x)
    index[7] = 9
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 9"):
        fast(index, x)


@pytest.mark.parametrize("count", [3, MANY + 3])
def test_numbers_of_a_table_may_shape_the_program(count: int) -> None:
    """`ndimage.rotate` needs its angle as a plain number. A table of angles that changes is another path."""

    def projected(x: Any, angles: Any) -> Any:
        return np.array([ndimage.rotate(x, a, reshape=False, order=1).sum(axis=0) for a in angles])

    fast = accel.accelerate(projected, name=f"projected {count}")
    for i in range(16):
        x = np.random.default_rng(i).random((9, 9))
        angles = np.linspace(0.0, 180.0, count, endpoint=False) + (1.0 if i > 8 else 0.0)
        np.testing.assert_allclose(fast(x, angles), projected(x, angles), rtol=1e-10, atol=1e-12)
    assert open_ledger(f"projected {count}").compiled_calls > 4


@pytest.mark.parametrize(
    "made", [lambda a: -a, lambda a: 90.0 - a * 0.5, lambda a: np.rad2deg(1.0) + a / 3.0 + 2.0 * a]
)
def test_so_may_arithmetic_on_them(made: Any) -> None:
    """As the back projection of a tomography does: it turns each projection back by `-angle`."""

    def smeared(rows: Any, angles: Any) -> Any:
        total = np.zeros((9, 9))
        for i, a in enumerate(angles):
            total += ndimage.rotate(np.tile(rows[i], (9, 1)), made(a), reshape=False, order=1)
        return total

    fast = accel.accelerate(smeared, name=f"smeared {made}")
    for i in range(16):
        rows = np.random.default_rng(i).random((5, 9))
        angles = np.linspace(0.0, 180.0, 5, endpoint=False) + (1.0 if i > 8 else 0.0)
        np.testing.assert_allclose(fast(rows, angles), smeared(rows, angles), rtol=1e-10, atol=1e-12)
    assert open_ledger(f"smeared {made}").compiled_calls > 4


def test_arithmetic_on_a_table_and_on_what_an_array_made_may_not() -> None:
    def turned(x: Any, angles: Any) -> Any:
        return ndimage.rotate(x, angles[0] + x.mean(), reshape=False, order=1)

    refusal = record(turned, (np.ones((5, 5)), np.ones(3)), {}, max_nodes=1000).refusal
    assert refusal is not None and refusal.reason == "value.forced"


def test_a_number_that_an_array_made_may_not() -> None:
    def turned(x: Any) -> Any:
        return ndimage.rotate(x, x.mean(), reshape=False, order=1)

    refusal = record(turned, (np.ones((5, 5)),), {}, max_nodes=1000).refusal
    assert refusal is not None and refusal.reason == "value.forced"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("size", [3, 200, 300, 70_000])
def test_indices_of_every_dtype_stay_within_any_axis(dtype: str, size: int) -> None:
    """Of which some cannot hold the size of the axis."""
    from jax import enable_x64
    from jax import numpy as jnp

    info = np.iinfo(dtype)
    values = [info.min, max(info.min, -size), max(info.min, -size - 1), 0, min(info.max, size - 1), min(info.max, size)]
    for value in (*values, info.max):
        index = np.array([value], dtype)
        expected = -size <= int(value) < size
        with enable_x64(True):
            assert bool(core.in_bounds(index, size)) == bool(core.in_bounds(jnp.asarray(index), size)) == expected


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("size", [100, 300, 70_000])
def test_small_indices_into_long_axes(dtype: str, size: int) -> None:
    def pick(index: Any, x: Any) -> Any:
        x[index[:2]] = 7.0
        return x[index] * 2.0

    fast = accel.accelerate(pick)
    low = -90 if dtype.startswith("i") else 0
    for k in range(6):
        index = np.array([3, 50, low + k, 7 * k], dtype)
        mine, theirs = np.arange(float(size)), np.arange(float(size))
        np.testing.assert_array_equal(fast(index, mine), pick(index, theirs))
        np.testing.assert_array_equal(mine, theirs)
    (path,) = fast._self_target.paths
    assert path.replays == 3


@pytest.mark.parametrize("dtype", "? i1 u2 i4 i8 f2 f4 f8 c8 c16".split())
@pytest.mark.parametrize("shape", [(), (0,), (3,), (3, 4), (2, 0, 3), (200_000,)])
def test_contents_of_all_dtypes_and_memory_orders(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.asarray(np.random.default_rng(0).uniform(0.0, 5.0, shape)).astype(dtype)
    forms = [array, np.asfortranarray(array), np.repeat(array[..., None], 2, axis=-1)[..., 0]]
    for one in forms:
        content = Content(one.copy(order="K"))
        for other in forms:
            assert content.is_same(other) is True
            if array.size:
                changed = other.copy(order="K")
                changed.ravel(order="K").view("u1")[-1] ^= 1  # a view: it is contiguous in either order
                assert content.is_same(changed) is False
