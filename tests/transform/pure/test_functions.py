"""Functions with branches, loops, state and masks: their values, gradients and batches are NumPy's."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import accel
from tests.transform.pure.functions import (
    CALLS,
    FIRST,
    FUNCTIONS,
    SECOND,
    THIRD,
    finite_only,
    masked_log,
    masked_quotient,
    overwritten,
)

jax = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), jax.enable_x64(True):
        yield


def differences(function: Callable[..., float], x: Any, k: float, step: float = 1e-4) -> tuple[Any, float]:
    """The gradient by central differences of fourth order."""

    def along(ahead: Callable[[float], float]) -> float:
        return (8 * (ahead(step) - ahead(-step)) - (ahead(2 * step) - ahead(-2 * step))) / (12 * step)

    by_x = [along(lambda by, i=i: function(x + by * np.eye(len(x))[i], k)) for i in range(len(x))]
    return np.array(by_x), along(lambda by: function(x, k + by))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_gradients_are_central_differences(function: Callable[..., float]) -> None:
    both = accel.value_and_grad(function, (0, 1))
    for x, k in CALLS:
        value, slopes = both(x.copy(), k)
        assert type(value) is float
        np.testing.assert_allclose(value, function(x, k), rtol=1e-12)
        for slope, wanted in zip(slopes, differences(function, x, k), strict=True):
            np.testing.assert_allclose(slope, wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_batches_are_calls_one_by_one(function: Callable[..., float]) -> None:
    members = np.stack([FIRST, SECOND, THIRD, -FIRST])
    found = accel.vmap(function, in_axes=(0, None))(members, 0.5)
    np.testing.assert_allclose(found, [function(each, 0.5) for each in members], rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "x", "slope"),
    [
        (masked_log, [0.0, 2.0, -1.0, 4.0], [0.0, 0.25, 0.0, 0.125]),
        (masked_quotient, [0.0, 1.0, 4.0, 0.25], [0.0, 1.75, 8.0 - 1 / 32, 0.5 - 2.0]),
        (overwritten, [0.0, 2.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]),
        (finite_only, [0.0, 2.0, 1.0, 0.5], [0.0, -0.125, -0.5, -2.0]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_a_mask_leaves_out_is_not_in_the_gradient(function: Any, x: list[float], slope: list[float]) -> None:
    np.testing.assert_allclose(accel.grad(function)(np.array(x), 0.5), slope, rtol=1e-12)
    np.testing.assert_allclose(accel.jacobian(function)(np.array(x), 0.5), slope, rtol=1e-12)
    pure = accel.to_jax(function, np.array(x), 0.5)
    curvature = jax.hessian(lambda x: pure({"x": x})["result"])(np.array(x))
    assert np.isfinite(curvature).all()


def test_a_true_singularity_stays_one() -> None:
    """NaN is honest where the derivative does not exist, and no mask says that it is not read."""
    assert not np.isfinite(accel.grad(lambda x: float(np.sqrt(x).sum()))(np.array([0.0, 1.0]))).all()


@pytest.mark.parametrize(
    "norm",
    [
        lambda u, v: np.sqrt(u**2 + v**2),
        lambda u, v: np.sqrt(u * u + np.square(v)),
        lambda u, v: (1.0 * u**2 + v**2) ** 0.5,
        np.hypot,
    ],
)
def test_a_norm_has_the_derivative_zero_where_it_is_zero(norm: Any) -> None:
    u, v = np.array([0.0, 3.0, 0.0, -0.0]), np.array([0.0, 4.0, 2.0, 0.0])

    def speed(u: Any, v: Any) -> float:
        return float(norm(u, v).sum())

    value, (by_u, by_v) = accel.value_and_grad(speed, (0, 1))(u, v)
    assert value == speed(u, v)
    np.testing.assert_allclose(by_u, [0.0, 0.6, 0.0, 0.0], rtol=1e-14)
    np.testing.assert_allclose(by_v, [0.0, 0.8, 1.0, 0.0], rtol=1e-14)
    pure = accel.to_jax(speed, u, v)
    found = jax.jvp(lambda u: pure({"u": u})["result"], (u,), (np.ones(4),))[1]
    np.testing.assert_allclose(found, 0.6, rtol=1e-14)  # forward mode, too
    distance = accel.grad(lambda u, v: float(np.sqrt(np.sum((u - v) ** 2))))
    np.testing.assert_array_equal(distance(u, u.copy()), np.zeros(4))


def _changes_its_argument(a: Any, b: Any) -> float:
    a += b
    return float((a * b).sum())


def test_an_array_that_is_given_twice_is_two_arguments() -> None:
    x = np.array([1.0, 2.0])
    slopes = accel.grad(_changes_its_argument, (0, 1))
    for other in (x.copy(), x, x[:]):
        found = slopes(x, other)
        np.testing.assert_array_equal(found[0], [1.0, 2.0])
        np.testing.assert_array_equal(found[1], [3.0, 6.0])
    np.testing.assert_array_equal(x, [1.0, 2.0])


FACTOR = np.array([1.0, 2.0])


class _Background:
    def __init__(self) -> None:
        self.field = np.array([1.0, 3.0, 5.0])

    def product(self, x: Any) -> float:
        return float((x * self.field[: x.size]).sum())

    def added(self, x: Any) -> float:
        self.field += x
        return float((self.field * x).sum())


def test_an_argument_that_the_program_holds_too_is_its_own() -> None:
    model = _Background()
    found = accel.grad(lambda x: float((x * FACTOR).sum()))(FACTOR)
    np.testing.assert_array_equal(found, FACTOR)
    for slopes in (accel.grad(model.product), accel.grad(lambda x: model.product(x))):
        np.testing.assert_array_equal(slopes(model.field), model.field)
        np.testing.assert_array_equal(slopes(model.field[::-2]), model.field[:2])
    np.testing.assert_array_equal(accel.grad(_Background.product, wrt="x")(model, x=model.field), model.field)
    np.testing.assert_array_equal(accel.grad(model.added)(model.field), 3 * model.field)
    pure = accel.to_jax(model.product, model.field)
    assert set(pure.inputs) == {"x", "self.field"}
    np.testing.assert_array_equal(jax.grad(lambda x: pure({"x": x})["result"])(model.field), model.field)


class _Two:
    def __init__(self) -> None:
        self.a, self.b, self.flag, self.k = np.array([1.0, 2.0]), np.array([1.0, 2.0]), True, 3.0

    def total(self, x: Any) -> float:
        a = self.a
        a += x
        return float((a * self.b).sum()) * self.k if self.flag else float(x.sum())


def test_what_a_call_finds_changed_is_seen() -> None:
    """A number, a flag, and two arrays that have become one."""
    two, x = _Two(), np.array([1.0, 1.0])
    both = accel.value_and_grad(two.total)
    for change in ("nothing", "k", "flag", "one"):
        if change == "k":
            two.k = 5.0
        elif change == "flag":
            two.flag = not two.flag
        elif change == "one":
            two.flag, two.b = True, two.a
        slope = differences(lambda x, k: _value_of(two, x), x, 0.0)[0]
        value, found = both(x)
        np.testing.assert_allclose(value, _value_of(two, x), rtol=1e-13)
        np.testing.assert_allclose(found, slope, rtol=1e-8, err_msg=change)
    np.testing.assert_array_equal(two.a, [1.0, 2.0])


def _value_of(two: _Two, x: Any) -> float:
    return copy.deepcopy(two).total(x)


def test_numbers_have_the_types_that_the_function_gives() -> None:
    both = accel.value_and_grad(lambda k: max(1, k) * 2.0)
    assert [type(both(k)[0]) for k in (0.5, 2.5)] == [float, float]
    assert both(2.5)[0] == 5.0


def shifted_rows(x: Any) -> Any:
    rows = x.reshape(40, -1) * 2.0
    rows[1:] = rows[:-1]
    return rows


def shifted_then_spread(x: Any) -> Any:
    v = x * 2.0
    v[100:2000] = v[99:1999]
    spread = np.zeros(2 * v.size)
    spread[::2] = v
    return spread


def shifted_by_data(x: Any) -> Any:
    rows = x.reshape(40, -1) * 2.0
    k = int(x[0] > -9.0)
    rows[k : k + 30] = rows[k - 1 : k + 29] * 0.5
    return rows


def shifted_complex(x: Any) -> Any:
    v = x * 1j
    v[2:] += v[:-2]
    return np.abs(np.array([v]))


@pytest.mark.parametrize(
    "shifted", [shifted_rows, shifted_then_spread, shifted_by_data, shifted_complex], ids=lambda each: each.__name__
)
def test_all_is_read_before_it_is_overwritten(shifted: Callable[[Any], Any]) -> None:
    def cost(x: Any) -> float:
        return float((shifted(x) ** 2).sum())

    x, along = np.random.default_rng(5).standard_normal((2, 4000))
    np.testing.assert_allclose(accel.to_jax(shifted, x)()["result"], shifted(x), rtol=1e-14)
    np.testing.assert_allclose(accel.vmap(shifted)(np.stack([x, along])), [shifted(x), shifted(along)], rtol=1e-14)
    slope = (cost(x + 1e-3 * along) - cost(x - 1e-3 * along)) / 2e-3  # exact: the cost is a square
    np.testing.assert_allclose((accel.grad(cost)(x) * along).sum(), slope, rtol=1e-9)


@pytest.mark.parametrize(
    "function",
    [lambda x, flag: x * 2.0 if flag else x, lambda x, flag: x * flag, lambda x, flag: np.where(flag, x, 0.0)]
    + [lambda x, flag: flag, lambda x, flag: x.sum() if x[0] < 2.0 else x.sum() * flag],
)
def test_each_member_has_its_flags(function: Any) -> None:
    x = np.arange(6.0).reshape(3, 2)
    for flags in ([True] * 3, [False] * 3, [True, False, True], [False, True, False]):
        wanted = [function(each, flag) for each, flag in zip(x, flags, strict=True)]
        np.testing.assert_array_equal(accel.vmap(function)(x, np.array(flags)), wanted)


def test_each_member_has_its_text() -> None:
    x, names = np.arange(6.0).reshape(2, 3), np.array(["a", "b", "a"])
    found = accel.vmap(lambda x, name: (x * (name == "a"), x), in_axes=(1, 0))(x, names)
    np.testing.assert_array_equal(found[0], x.T * (names == "a")[:, None])
    np.testing.assert_array_equal(found[1], x.T)
    with pytest.raises(accel.Refused, match=r"\[pure.result\]"):
        accel.vmap(lambda x, flag: x if flag else (x, x))(x, np.array([True, False]))


def test_members_that_no_int64_holds_are_refused() -> None:
    with pytest.raises(accel.Refused, match="an integer of 2\\*\\*63 or more"):
        accel.vmap(lambda n: n // 2)(np.array([1, 2**63 + 1], np.uint64))
    np.testing.assert_array_equal(accel.vmap(lambda n: n // 2)(np.array([1, 5], np.uint64)), [0, 2])


def test_a_number_that_is_a_constant_of_some_paths_is_refused() -> None:
    """-2**63 has no place among the numbers of a program."""
    low, high = np.array([3, -(2**63)]), np.array([2, -1])
    with pytest.raises(accel.Refused, match="a constant of some paths"):
        accel.vmap(lambda a, b: max(a, b))(low, high)
