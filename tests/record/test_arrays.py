"""Arrays: in-place work, views that write through, aliasing, layouts and dtypes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from accel.record import Completed, record


def some(i: int, *shape: int, dtype: Any = float) -> Any:
    values = np.random.default_rng(i).normal(size=shape or (4,)) * 10
    return values.astype(dtype)


# -- in place ---------------------------------------------------------------------------------------------------------


def test_in_place_operators(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        x += y
        x *= 2.0
        x -= 1
        x /= y * y + 1
        return x

    check(work, lambda i: (some(i), some(i + 50)))


def test_in_place_casts_to_the_dtype_of_the_array(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        x += y
        z = x * 1
        z *= y
        return z, z + z

    check(work, lambda i: (some(i, dtype=np.float32), some(i + 50)))


def test_in_place_broadcasts(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        x += y
        np.add(y, 1.0, out=x)
        return x * 2

    check(work, lambda i: (some(i, 3, 4), some(i + 50, 4)))


def test_out_and_where(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        np.divide(x, y, out=x, where=y > 0)
        z = np.zeros_like(y)
        np.sqrt(y, out=z, where=y > 0)
        np.multiply(z, 2.0, z)
        np.clip(z, 0.0, 3.0, out=z)
        x.mean(axis=0, out=z[0])
        return z

    check(work, lambda i: (some(i, 3, 4), some(i + 50, 3, 4)))


def test_outs_that_share_memory(check: Any) -> None:
    """Which of the results an element holds afterwards is NumPy's affair."""

    def work(x: Any) -> Any:
        np.modf(x, out=(x, x[::-1]))
        return x

    check(work, some, reason="rule.parameter")


def test_out_of_another_dtype(check: Any) -> None:
    def work(x: Any) -> Any:
        out = np.zeros(x.shape, dtype=np.float32)
        np.multiply(x, 3.0, out=out)
        whole = np.zeros(x.shape, dtype=int)
        np.floor(x, out=whole, casting="unsafe")
        return out, out + 1, whole

    check(work, some)


ODD_OUT = "path.exception" if np.lib.NumpyVersion(np.__version__) >= "2.5.0" else "rule.parameter"
"""Why an `out` of another shape is refused. From NumPy 2.5 on, NumPy raises."""


@pytest.mark.parametrize("scan", [np.cumsum, np.add.accumulate, np.nancumsum])
def test_scans_into_a_longer_out(check: Any, scan: Any) -> None:
    """A scan of one element leaves the rest of `out` as it is."""
    check(lambda x, out: scan(x, axis=0, out=out), lambda i: (some(i, 1, 4), some(i, 2, 4)), reason=ODD_OUT)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_number_of_parts_that_changes(check: Any, wrapped: bool) -> None:
    def work(x: Any, parts: int) -> Any:
        return [part * 2 for part in np.array_split(x, [parts] if wrapped else parts)]

    check(work, lambda i: (some(i), 2 + i // 6), calls=12, replays=3)


def test_item_assignment(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        x[0] = 7.0
        x[1:3, 1] = y[0]
        x[..., -1] = y
        x[::2] += 1
        x[:, 0] *= y
        x[[0, 2]] = 5.0
        return None

    check(work, lambda i: (some(i, 3, 4), some(i + 9, 3)))


def test_assignment_of_lists_and_numbers(check: Any) -> None:
    def work(x: Any, s: float) -> Any:
        x[0] = [s, 2 * s, 3]
        x[1] = (x[0, 1], s, -0.0)
        x[2, :2] = x[0, 0]
        return x.copy()

    check(work, lambda i: (some(i, 3, 3), 1.5 + i))


def test_copyto_putmask_fill_sort(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        np.copyto(x, y, where=y > 0)
        np.putmask(y, y < -1, 0.5)
        z = y[1:]
        z.fill(3.0)
        x.sort()
        return z

    check(work, lambda i: (some(i, 5), some(i + 9, 5)))


def test_nan_to_num_without_copy_changes_the_argument_and_returns_it(check: Any) -> None:
    def work(x: Any) -> Any:
        x[1] = np.nan
        x[2] = np.inf
        return np.nan_to_num(x, copy=False, nan=0.25)

    check(work, some)


def test_nan_to_num_without_copy_through_a_view(check: Any) -> None:
    def work(x: Any) -> Any:
        x[1] = np.nan
        y = np.nan_to_num(x[1:3], copy=False)
        return y + 1

    check(work, some)


def test_the_argument_itself_and_views_of_it_are_returned(check: Any) -> None:
    def work(x: Any) -> Any:
        x += 1
        return x, x[1:], x.reshape(2, 2).T, x

    check(work, some)


# -- views ------------------------------------------------------------------------------------------------------------


def test_views_write_through(check: Any) -> None:
    def work(x: Any) -> Any:
        y = x[1:]
        y[0] = 5.0
        z = y.reshape(3, 4).T[1:, ::-1]
        z += 1.0
        x *= 2.0
        return z.sum(), y, z

    check(work, lambda i: some(i, 13))


def test_chain_of_views_of_a_new_array(check: Any) -> None:
    def work(x: Any) -> Any:
        a = x * 1.0
        b = a.reshape(4, 3)[1:].T
        b[0] = -1.0
        c = b.swapaxes(0, 1)[None, ..., 0]
        c -= x[0]
        return a, b

    check(work, lambda i: some(i, 12))


def test_view_written_after_its_base_was_replaced(check: Any) -> None:
    def work(x: Any) -> Any:
        y = x[1:3]
        x = x * 2.0
        y[0] = 9.0
        x[0] = 1.0
        return x, y

    check(work, some)


def test_reading_a_view_before_and_after_a_write(check: Any) -> None:
    def work(x: Any) -> Any:
        v = x[::2]
        before = v + 0.0
        x[0] = 100.0
        after = v + 0.0
        return before, after, v.sum()

    check(work, some)


def test_expand_squeeze_ravel_transpose_are_views(check: Any) -> None:
    def work(x: Any) -> Any:
        np.expand_dims(x, 0)[0, 0] = 1.0
        np.ravel(x)[3] = 2.0
        np.squeeze(x[None])[1, 1] = 3.0
        np.moveaxis(x, 0, 1)[2, 0] = 4.0
        np.atleast_2d(x)[1, 2] = 5.0
        np.flip(x, 0)[0, 0] = 6.0
        np.swapaxes(x, 0, 1)[2, 1] += 1
        x.T[0] *= 2
        return x.ravel(), x.flatten()

    check(work, lambda i: some(i, 2, 3))


def test_real_and_imag_are_views(check: Any) -> None:
    def work(z: Any) -> Any:
        z.real[0] = 1.0
        z.imag[...] = 2.0
        z.imag += z.real
        return z.real, z.conj(), abs(z)

    check(work, lambda i: some(i) + 1j * some(i + 5))


def test_the_imaginary_part_of_real_numbers_is_read_only(check: Any) -> None:
    def work(x: Any) -> Any:
        y = np.sort(x).imag
        return y, y[1:], x.imag + 1.0, np.imag(x), (x > 0.0).imag

    check(work, some)


def test_views_of_an_array_of_numpys_own_are_read_only(check: Any) -> None:
    def work(x: Any, z: float) -> Any:
        return np.broadcast_to(z, 3), np.broadcast_to([z, x[0]], (2, 2)), np.diagonal([[1.0, z], [x[0], 3.0]])

    check(work, lambda i: (some(i), float(i)))


def test_an_out_that_numpy_does_not_give_back(check: Any) -> None:
    def work(x: Any) -> Any:
        out, number = np.ones((2, 3), complex), np.ones(())
        return np.fft.ifft2(x, s=(2, 3), out=out), out, np.dot(x[0], x[0], out=number), number

    check(work, lambda i: some(i, 4, 5), replays=0, reason=ODD_OUT)


def test_a_view_object_that_is_returned_twice(check: Any) -> None:
    def work(x: Any) -> Any:
        y = (x * 2)[1:]
        return y, y

    check(work, some, replays=0)


def test_a_whole_view_of_the_argument_is_another_object(check: Any) -> None:
    def work(x: Any) -> Any:
        return x.view(), x.real

    check(work, some, replays=0)


def test_overlapping_in_place_shift(check: Any) -> None:
    def work(x: Any) -> Any:
        x[1:] += x[:-1]
        x[:-1] = x[1:]
        return None

    check(work, some)


def test_iterating_rows_writes_through(check: Any) -> None:
    def work(x: Any) -> Any:
        for row in x:
            row += row[0]
        total = 0.0
        for value in x[0]:
            total = total + value
        return total

    check(work, lambda i: some(i, 3, 4))


# -- aliasing ---------------------------------------------------------------------------------------------------------


def test_the_same_array_twice(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        x += 1
        return x * y

    def make(i: int) -> Any:
        x = some(i)
        return x, x

    check(work, make)


def test_aliasing_that_differs_between_calls(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        x += 1
        return x * y

    def make(i: int) -> Any:
        x = some(i)
        return (x, x) if i % 2 else (x, some(i + 40))

    check(work, make, calls=14, replays=4)


def test_overlapping_arguments_that_are_written(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        x += 1
        return x.sum() + y.sum()

    def make(i: int) -> Any:
        x = some(i, 6)
        return x, x[1:]

    check(work, make, reason="alias.overlap")


OVERLAPS = """
a[m] = a[: m.sum()] | np.place(a, m, a) | np.concatenate((a[1:], a[:1]), out=a) | m[m[::-1]] = False
np.copyto(m, False, where=m[::-1]) | np.place(m[1:], m[:-1], [False]) | j[j] += 1
"""
"""Statements that read memory while they write to it: NumPy makes no copy, so that the order decides."""

SAFE = "a[m] = a[3:4] | m[m] = a[m] > 0 | np.concatenate((a[1:], b[:1]), out=a) | np.copyto(a[1:], a[:-1], where=m[1:])"


@pytest.mark.parametrize(
    ("line", "reason"),
    [(line.strip(), "alias.overlap") for line in OVERLAPS.replace("\n", "|").split("|") if line.strip()]
    + [(line.strip(), None) for line in SAFE.split("|")],
)
def test_what_is_read_while_it_is_written(check: Any, line: str, reason: str | None) -> None:
    namespace: dict[str, Any] = {"np": np}
    exec(f"def work(a, b, m, j):\n    {line}\n    return a * 2", namespace)
    make = lambda i: (some(i, 9), some(i + 9, 9), some(i + 3, 9) > 0, np.arange(9) % 7)  # noqa: E731
    check(namespace["work"], make, reason=reason)


def test_overlap_on_a_later_call_only(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        x += 1
        return x.sum() + y.sum()

    def make(i: int) -> Any:
        x = some(i, 6)
        return (x[:5], x[1:]) if i == 7 else (x[:5], some(i + 30, 5))

    check(work, make, reason="alias.overlap", replays=2)


def test_overlapping_arguments_that_are_only_read(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        z = np.zeros(5)
        np.add(x, y, out=z)
        return z, np.add(x, y)

    def make(i: int) -> Any:
        x = some(i, 6)
        return x[:5], x[1:]

    check(work, make)


def test_identity_of_arrays_decides_the_path(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        return x * 2 if x is y else x + y * 10

    def make(i: int) -> Any:
        x = some(i)
        return (x, x) if i % 3 == 2 else (x, some(i + 40))

    check(work, make, calls=16, replays=4)


def test_read_only_argument(check: Any) -> None:
    def work(x: Any) -> Any:
        x[0] = 1.0
        return x

    def make(i: int) -> Any:
        x = some(i)
        x.flags.writeable = i != 7
        return x

    check(work, make, replays=2)


def test_setting_flags_is_no_secret(check: Any) -> None:
    def work(x: Any) -> Any:
        y = x + 1 if x.flags.c_contiguous else x
        x.flags.writeable = False
        return y

    check(work, some, reason="rule.missing")


def test_results_are_writable_and_their_own(check: Any) -> None:
    checked = check(lambda x: (x + 1, np.zeros(3), np.broadcast_to(x, (2, 4)).copy()), some)
    for made in checked.function(some(3)):
        assert type(made) is np.ndarray
        made[...] = 5
    assert checked.function(some(3))[1].tolist() == [0, 0, 0]


# -- layouts, shapes and dtypes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int32, np.uint8, np.int64, bool, complex, np.complex64])
def test_dtypes(check: Any, dtype: Any) -> None:
    def work(x: Any) -> Any:
        y = x * 2
        z = np.where(x, y, 1)
        return y, z, x + 1.5, x.astype(float).sum(), x == y, x[1:].mean(), x.max() if x.dtype.kind != "c" else 0

    check(work, lambda i: some(i, dtype=dtype))


def test_sums_of_unsigned_integers(check: Any) -> None:
    check(lambda x: x.sum(), lambda i: some(i, dtype=np.uint8))


def test_integer_overflow_wraps(check: Any) -> None:
    check(lambda x: (x * x, x + np.int8(100), x << 1), lambda i: np.arange(-4 + i, 60 + i, 16).astype(np.int8))


def test_a_number_that_the_dtype_cannot_hold_raises(check: Any) -> None:
    check(lambda x, n: x + n, lambda i: (np.arange(4, dtype=np.int8), 300 if i == 7 else i), replays=2)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (1, 1, 1)])
def test_shapes(check: Any, shape: tuple[int, ...]) -> None:
    def work(x: Any) -> Any:
        y = x + 1.0
        z = np.asarray(y) * 1
        return y, z, x.sum(), np.stack([x, x]), x.reshape(-1)

    check(work, lambda i: np.asarray(some(i, *(shape or (1,)))).reshape(shape))


def test_zero_dimensional_in_place(check: Any) -> None:
    def work(x: Any) -> Any:
        x += 1
        x[()] *= 2
        x[...] = x - 0.5
        return float(x), x.item(), x[()], x

    check(work, lambda i: np.array(0.5 + i))


def test_fortran_order_and_strides(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        z = x + y
        x[0] = 1.0
        return z, x.ravel(), x.T.reshape(-1), y.sum(axis=0), y.reshape(6, 2)

    check(work, lambda i: (np.asfortranarray(some(i, 4, 3)), some(i + 9, 8, 6)[::2, ::2]))


@pytest.mark.parametrize(
    "make",
    [
        lambda i: np.array([1, "a", None], dtype=object),
        lambda i: np.array(["a", "b"]),
        lambda i: np.arange(3.0).astype(">f8"),
        lambda i: np.array(["2020-01-01"], dtype="datetime64[D]"),
    ],
)
def test_arrays_that_have_no_counterpart(check: Any, make: Any) -> None:
    def work(x: Any) -> Any:
        return x[1:], x.shape

    def same(x: Any) -> Any:
        result = work(x)
        return result[0].tolist(), result[1]

    del same
    check(lambda x: repr(work(x)), make, reason="array.unknown")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda i: np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]), "array.masked"),
        (lambda i: np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), "array.records"),
    ],
)
def test_arrays_that_are_known_otherwise(check: Any, make: Any, reason: str) -> None:
    check(lambda x: (x.tolist(), x.shape), make, reason=reason)


def test_matrix_is_refused(check: Any) -> None:
    with pytest.warns(PendingDeprecationWarning):
        one = np.matrix([[1.0, 2.0]])
    check(lambda x: x.shape, lambda i: one, reason="array.unknown")


# -- indices ----------------------------------------------------------------------------------------------------------


def test_an_index_out_of_bounds_raises_as_numpy_does(check: Any) -> None:
    check(lambda x, k: x[k], lambda i: (some(i), np.array([0, 9 if i == 6 else i % 3])), replays=3)


def test_a_scalar_index_out_of_bounds_raises(check: Any) -> None:
    check(lambda x, n: x[n] * 2, lambda i: (some(i), 1 if i < 7 else 11), replays=2)


def test_take_and_scatter_with_arrays(check: Any) -> None:
    def work(x: Any, k: Any) -> Any:
        y = x[k] + np.take(x, k)
        x[k] = y
        x[k] += 1.0
        return y, x[k[0]]

    check(work, lambda i: (some(i), np.array([2, 0])), replays=0)


def test_ranges_as_indices(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        x[:, range(3), range(1, 4)] += y
        return x[range(2)], x[..., range(3, 0, -2)]

    check(work, lambda i: (some(i, 2, 3, 4), some(i + 50, 2, 3)))


def test_repeated_indices_keep_the_last_value(check: Any) -> None:
    def work(x: Any, k: Any, y: Any) -> Any:
        x[k] = y
        return x

    check(work, lambda i: (some(i), np.array([[0, 1, 2], [1, 1, 2]][i == 7]), some(i + 9, 3)), replays=0)


def test_argmax_as_index(check: Any) -> None:
    def work(x: Any) -> Any:
        k = np.argmax(x)
        return x[k], int(k), k

    check(work, lambda i: np.array([1.0, 5 + i, 2.0, 3.0]))


def test_singular_matrix(check: Any) -> None:
    check(np_inverse, lambda i: np.zeros((2, 2)) if i == 7 else np.eye(2) * (i + 1), replays=2)


def np_inverse(x: Any) -> Any:
    return np.linalg.inv(x)


def test_not_finite_matrix_is_no_error(check: Any) -> None:
    check(np_inverse, lambda i: np.full((2, 2), np.nan) if i < 2 else np.eye(2) * (i + 1), replays=0, calls=12)


def test_casts_of_floats_to_integers(check: Any) -> None:
    def work(x: Any, k: Any) -> Any:
        k[0] = x[0]
        k[1:3] = x[1:3]
        return x.astype(int), np.array(x, dtype=np.int32), np.asarray(x).astype(np.int8), k, int(x[1])

    def make(i: int) -> Any:
        x = np.array([1.5 + i, -2.5, 3.9, 100.0])
        if i == 7:
            x[1] = 2.0**40
        return x, np.zeros(4, dtype=int)

    with np.errstate(invalid="ignore"):
        check(work, make, replays=2)


@pytest.mark.parametrize("kind", [None, "quicksort", "heapsort"])
def test_the_order_of_different_keys_is_compiled(check: Any, kind: Any) -> None:
    def work(x: Any) -> Any:
        return np.argsort(x, axis=0, kind=kind), x.argsort(axis=None), np.argsort(-x)[:, :2]

    checked = check(work, lambda i: some(i, 60, 5), exact=True)
    assert not checked.refusals


def test_the_order_of_equal_keys_is_numpy_s(check: Any) -> None:
    """In a call that is recorded, and in one that is replayed: NumPy's default kind is not stable. NumPy sorts then."""

    def work(cell: Any, y: Any) -> Any:
        return y[np.argsort(cell)]

    def make(few: Any) -> Any:
        return lambda i: (np.random.default_rng(i).integers(0, 5 if few(i) else 10**9, 200), some(i, 200))

    check(work, make(lambda i: True), calls=20)
    check(work, make(lambda i: i in (6, 8)), replays=3)
    check(work, make(lambda i: i < 3), replays=4, calls=12)


@pytest.mark.parametrize("pair", [(np.nan, np.nan), (0.0, -0.0)])
def test_keys_that_are_equal_in_numpy_s_order(check: Any, pair: Any) -> None:
    def make(i: int) -> Any:
        keys = some(i, 100)
        keys[[70, 5]] = pair
        return keys

    check(lambda x: np.argsort(x), make)


def test_the_order_of_equal_keys_by_a_stable_kind_is_compiled(check: Any) -> None:
    def work(x: Any) -> Any:
        return np.argsort(x, kind="stable"), np.argsort(x, stable=True), np.argsort(np.argsort(x, kind="mergesort"))

    checked = check(work, lambda i: np.random.default_rng(i).integers(0, 5, 100))
    assert not checked.refusals


def test_loops_that_sort_check_each_round(check: Any) -> None:
    def work(x: Any) -> Any:
        total = np.zeros(x.shape[1])
        for row in x:
            total = total + row[np.argsort(row)]
        return total

    def make(i: int) -> Any:
        rows = some(i, 12, 40)
        if i == 7:
            rows[8] = np.random.default_rng(i).integers(0, 3, 40)
        return rows

    check(work, make, replays=4)


@pytest.mark.filterwarnings("ignore:future versions will not create a writeable array:FutureWarning")
def test_broadcast_arrays_are_as_writeable_as_numpy_s(check: Any) -> None:
    def work(a: Any, b: Any) -> Any:
        same, wide = np.broadcast_arrays(a, b)
        done = np.broadcast_arrays(np.broadcast_to(b, a.shape), a)[0]
        return same, wide, wide[1:], done, np.broadcast_arrays(a * 2, b * 3)[1], np.broadcast_to(b, (3, 4))

    def read_only(i: int) -> Any:
        b = some(i, 4)
        b.flags.writeable = False
        return some(i, 3, 4), b

    check(work, lambda i: (some(i, 3, 4), some(i + 9, 4)))
    check(work, read_only)


def test_at_least_so_many_axes_are_views(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        row, column = np.atleast_2d(x), np.atleast_3d(y)
        row[0, 1] = 3.0
        for line in np.atleast_2d(x):
            line += 1.0
        column *= 2.0
        pair = np.atleast_1d([x[0], 2.0]), np.atleast_2d(x.sum()), np.atleast_3d(x)
        return row, column, pair, np.atleast_2d(y)

    check(work, lambda i: (np.arange(4.0) + i, np.ones((2, 3)) * i))


@pytest.mark.parametrize("text", ["ii->i", "iij->ji", "...ii->...i", "ij->ji", "ij"])
def test_einsum_gives_views_that_write_through(check: Any, text: str) -> None:
    def work(x: Any) -> Any:
        view = np.einsum(text, x)
        view += 2.0
        x *= 3.0
        return view, view.sum(), x.sum()

    check(work, lambda i: some(i, 3, 3, 3) if "..." in text or len(text.partition("->")[0]) == 3 else some(i, 3, 3))


def test_outer_products_of_lists(check: Any) -> None:
    def work(x: Any) -> Any:
        return np.outer(x, [1.0, 2.0, 3.0]), np.linalg.outer((1, 2), x), np.outer([x[0], 2.0], x), np.outer(x, 2.0)

    check(work, lambda i: (np.random.default_rng(i).standard_normal(5),))


def test_calls_that_a_function_is_written_as_warn_of_nothing() -> None:
    """Infinity less infinity, where `np.isclose` itself is silent."""
    x = np.array([np.inf, 1.0, np.nan])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        recorded = record(lambda a: np.isclose(a, a), (x,), {}, max_nodes=100)
    assert isinstance(recorded, Completed) and recorded.trace is not None
    np.testing.assert_array_equal(recorded.result, [True, True, False])
    assert not caught
