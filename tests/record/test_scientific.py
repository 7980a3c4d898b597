"""Objects of SciPy's that the program holds: interpolators, sparse matrices, factorisations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import interpolate, linalg, signal, sparse

from tests.helpers import some

KNOTS = np.array([0.0, 0.5, 1.5, 2.0, 3.5])


def holding(make: Any) -> Any:
    """Worlds with one object for several calls, and another one later."""

    def worlds() -> Any:
        held = {0: make(0), 1: make(1)}

        def arguments(i: int) -> Any:
            return held[i // 10], np.linspace(-0.7, 4.0, 9) + 0.01 * i

        return arguments

    return worlds


@pytest.mark.parametrize(
    "make",
    [
        lambda i: interpolate.CubicSpline(KNOTS, some(i, 5, 2)),
        lambda i: interpolate.CubicSpline(KNOTS, some(i, 3, 5), axis=1, extrapolate=False),
        lambda i: interpolate.CubicSpline(KNOTS, np.append(some(i, 4), some(i)[0]), bc_type="periodic"),
        lambda i: interpolate.PchipInterpolator(KNOTS, some(i, 5)),
        lambda i: interpolate.PPoly(some(i, 3, 4), KNOTS),
    ],
    ids=["columns", "axis", "periodic", "pchip", "ppoly"],
)
def test_piecewise_polynomials(check: Any, make: Any) -> None:
    def work(held: Any, x: Any) -> Any:
        return held(x), held(x.reshape(3, 3), nu=1), held(x[4]), held(x, 2, False)

    check(work, worlds=holding(make), calls=16, replays=6)


@pytest.mark.parametrize("about", [{"fill_value": "extrapolate"}, {"bounds_error": False, "fill_value": (-1.0, 9.0)}])
def test_linear_interpolation_on_a_line(check: Any, about: Any) -> None:
    make = lambda i: interpolate.interp1d(KNOTS, some(i, 5), **about)  # noqa: E731
    check(lambda held, x: (held(x.reshape(3, 3)), held(x[0])), worlds=holding(make), calls=16, replays=6)


@pytest.mark.filterwarnings("ignore:invalid value encountered")  # SciPy's, of what is infinite
def test_infinite_values_on_a_line_that_goes_on(check: Any) -> None:
    held = interpolate.interp1d(KNOTS, [-np.inf, 1.0, np.inf, 2.0, 3.0], fill_value="extrapolate")
    check(lambda x: held(x), lambda i: np.array([-1.0, 0.0, 0.3, 0.5, 1.0, 1.7, 2.0, 4.0]) + i % 3)


def test_a_number_beyond_the_ends_raises_as_in_scipy(check: Any) -> None:
    held = interpolate.interp1d(KNOTS, some(0, 5))
    check(lambda x: held(x), lambda i: np.full(4, 1.0 + i % 3), calls=12, replays=4)
    other = interpolate.RegularGridInterpolator((KNOTS, KNOTS), some(1, 5, 5))
    check(lambda x: other(x), lambda i: np.full((4, 2), 1.0 + i % 4), calls=12, replays=4)


@pytest.mark.parametrize("about", [{"fill_value": None}, {"method": "nearest", "fill_value": -3.0}])
def test_interpolation_on_a_grid(check: Any, about: Any) -> None:
    def make(i: int) -> Any:
        grid = (KNOTS, KNOTS[:4])
        return (
            interpolate.RegularGridInterpolator(grid, some(i, 5, 4), bounds_error=False, **about),
            interpolate.RegularGridInterpolator(grid, some(i, 5, 4, 2), bounds_error=False, **about),
        )

    def work(held: Any, x: Any) -> Any:
        points = np.stack([x, x[::-1]], axis=-1)
        points = np.where(points > 3.9, np.nan, points)
        return held[1](points[None]), held[0]((x[:, None], x[None, :]))

    check(work, worlds=holding(make), calls=16, replays=6)


def test_an_interpolator_whose_values_are_changed(check: Any) -> None:
    def worlds() -> Any:
        held = interpolate.CubicSpline(KNOTS, some(0, 5))

        def make(i: int) -> Any:
            if i > 6:
                held.c[-1] += 1.0
            if i == 12:
                held.extrapolate = False
            return held, np.linspace(-0.2, 3.9, 7)

        return make

    check(lambda held, x: held(x), worlds=worlds, calls=20, replays=10)


class Own(interpolate.CubicSpline):
    def __call__(self, x: Any) -> Any:
        return super().__call__(x) + 1.0


def test_interpolators_of_other_kinds_stay_on_numpy(check: Any) -> None:
    for held in (
        Own(KNOTS, some(0, 5)),
        interpolate.interp1d(KNOTS, some(0, 5), kind="cubic"),
        interpolate.make_interp_spline(KNOTS, some(0, 5)),
    ):
        check(lambda x, held=held: held(x), lambda i: np.linspace(0.0, 3.0, 5) + 0.01 * i, reason="call.opaque")


# -- sparse matrices --------------------------------------------------------------------------------------------------


def matrix(i: int, kind: Any = sparse.csr_array, dtype: Any = float) -> Any:
    dense = np.where(np.random.default_rng(i).random((6, 5)) < 0.5, some(i, 6, 5) * 4, 0.0)
    dense[2] = 0.0
    return kind(dense.astype(dtype))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(sparse.csr_array, np.float64), (sparse.csr_matrix, np.int64), (sparse.csr_array, np.complex128)],
)
def test_products_of_sparse_rows(check: Any, kind: Any, dtype: Any) -> None:
    def worlds() -> Any:
        held = [matrix(3, kind, dtype), matrix(4, kind, dtype)]

        def make(i: int) -> Any:
            if i == 8:
                held[0].data *= 2
            return held[i // 10], some(i, 5), some(i, 5, 3), np.arange(5) + i

        return make

    def work(held: Any, x: Any, y: Any, n: Any) -> Any:
        return held @ x, held.dot(y), held @ n, held @ x.astype(np.float32)

    check(work, worlds=worlds, calls=16, replays=6)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_the_shape_of_a_matrix(check: Any, kind: Any) -> None:
    held = matrix(5, kind)

    def work(a: Any, x: Any) -> Any:
        rows = a.shape[0]
        return np.full(rows, 1.0 / rows) + a @ x, a.shape, a.ndim, a.dtype, np.zeros(rows, a.dtype)

    check(work, lambda i: (held, np.arange(held.shape[1]) * (1.0 + i)))


def test_a_product_by_the_operator_of_matrices(check: Any) -> None:
    held = matrix(5, sparse.csr_matrix)
    check(lambda x: held * x, lambda i: some(i, 5))


def test_other_products_stay_with_scipy(check: Any) -> None:
    held, wide = matrix(5), sparse.csr_array(np.vstack([np.ones((1, 5000)), np.zeros((4999, 5000))]))
    check(lambda x: held.T @ x, lambda i: some(i, 6), reason="call.opaque")
    check(lambda x: held @ x, lambda i: some(i, 4), reason="call.opaque")
    check(lambda x: held.tocsc() @ x, lambda i: some(i, 5), reason="call.opaque")
    check(lambda x: wide @ x, lambda i: some(i, 5000), reason="rule.parameter")


def test_a_matrix_with_other_rows_is_another_path(check: Any) -> None:
    def worlds() -> Any:
        held = matrix(3)

        def make(i: int) -> Any:
            if i == 8:
                held.indptr[1], held.indptr[2] = held.indptr[2], held.indptr[2]
            return held, some(i, 5)

        return make

    check(lambda held, x: held @ x, worlds=worlds, calls=16, replays=6)


# -- factorisations ---------------------------------------------------------------------------------------------------


def test_held_factors_solve(check: Any) -> None:
    base = some(0, 4, 4) + 5.0 * np.eye(4)

    class Solver:
        def __init__(self) -> None:
            self.lu = linalg.lu_factor(base)
            self.cho = linalg.cho_factor(base @ base.T, lower=True)

    def worlds() -> Any:
        solver = Solver()
        return lambda i: (solver, some(i), some(i, 4, 3))

    def work(solver: Any, b: Any, many: Any) -> Any:
        return (
            linalg.lu_solve(solver.lu, b),
            linalg.lu_solve(solver.lu, many, trans=1),
            linalg.cho_solve(solver.cho, b),
            linalg.cho_solve(solver.cho, many),
        )

    check(work, worlds=worlds)


def test_factors_of_this_call_solve(check: Any) -> None:
    def work(a: Any, b: Any) -> Any:
        both = a @ a.T + np.eye(4)
        factor = linalg.cho_factor(both)
        lu, pivots = linalg.lu_factor(a)
        return linalg.cho_solve(factor, b), linalg.lu_solve((lu, pivots), b), factor, lu, pivots

    check(work, lambda i: (some(i, 4, 4) + 3.0 * np.eye(4), some(i)))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("lower", [True, False])
def test_the_other_triangle_is_as_scipy_leaves_it(check: Any, lower: bool, order: Any) -> None:
    """Of a matrix of which SciPy reads one triangle alone."""
    beside = np.triu(np.full((4, 4), 7.0), 1) if lower else np.tril(np.full((4, 4), 7.0), -1)

    def make(i: int) -> Any:
        a = some(i, 4, 4)
        return np.array(a @ a.T + np.eye(4) + beside, order=order)

    check(lambda a: linalg.cho_factor(a, lower), make)


def test_a_matrix_without_a_factor_raises_as_in_scipy(check: Any) -> None:
    def make(i: int) -> Any:
        a = some(i, 4, 4)
        made = a @ a.T + np.eye(4)
        if i == 7:
            made[0, 1] = np.nan
        return -made if i == 8 else made

    check(lambda a: linalg.cho_factor(a)[0], make, calls=14, replays=5)


def test_operands_of_all_kinds(check: Any) -> None:
    held, empty, none = sparse.csr_array(np.eye(4) * 3.0), sparse.csr_array((3, 4)), sparse.csr_array((0, 4))
    spline = interpolate.CubicSpline([0, 1, 2], [1.0, 2.0, 0.0])
    line = interpolate.RegularGridInterpolator(([0.0, 1.0, 2.0],), np.arange(3.0), bounds_error=False)

    def work(x: Any) -> Any:
        products = held @ np.broadcast_to(x[:1], (4,)), held @ x[:, None], empty @ x, none @ x + x.sum()
        return products, spline(x.astype(np.float32)), spline(np.arange(3) * x[0]), spline(x[:0]), line(x[:, None])

    check(work, some)
    for other in (
        lambda x: x @ held,
        lambda x: (held * 2.0) @ x,
        lambda x: spline(list(x)),
        lambda x: line([[x[0]], [x[1]]]),
        lambda x: line((x[:2], x)),
    ):
        check(other, some, replays=0, calls=5)


@pytest.mark.parametrize("feedback", [lambda a: a, lambda a: a[:1]])
def test_a_filter_without_a_first_coefficient_raises_as_in_scipy(check: Any, feedback: Any) -> None:
    def make(i: int) -> Any:
        return np.array([0.0 if i == 7 else 2.0 + i % 3, 0.5]), some(i, 9)

    check(lambda a, x: signal.lfilter([1.0, 0.5], feedback(a), x), make, replays=2)


def test_filters_of_a_stream_keep_their_state(check: Any) -> None:
    """Blocks of samples one after another: the state that one block leaves is where the next one begins."""
    sections = signal.butter(4, [0.1, 0.5], btype="band", output="sos")

    class Chain:
        def __init__(self) -> None:
            self.sections, self.state, self.last = sections.copy(), np.zeros((len(sections), 2)), np.zeros(1)

    def work(chain: Any, x: Any) -> Any:
        y, chain.state = signal.sosfilt(chain.sections, x, zi=chain.state)
        y, chain.last = signal.lfilter([1.0, 0.5], [1.0, -0.9], y, zi=chain.last)
        return y

    check(work, lambda i: (Chain(), np.random.default_rng(i).normal(size=64)), calls=12, replays=6)

    def scaled(chain: Any, x: Any, first: Any) -> Any:
        """SciPy raises for sections that do not begin with 1."""
        chain.sections[0, 3] = first
        return signal.sosfilt(chain.sections, x)

    check(scaled, lambda i: (Chain(), np.ones(8), 2.0 if i == 9 else 1.0), calls=12, replays=5)
