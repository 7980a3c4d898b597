"""Derivatives at single points: at 0, at ties, at multiples, and where a mask or a bound keeps a singularity out.

A lowering may have the right value there, and another derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import special

import accel
from accel.rules import load
from accel.rules.rule import RULES
from accel.rules.tables import ufuncs
from accel.rules.tracing import traced

jax = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), jax.enable_x64(True):
        yield


POINTS = np.array([0.0, 0.75, -0.75, 1.0, -1.0, 2.25])
"""Zeros, ones, and multiples of 0.75."""

SLOPES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "logsumexp of equals": (
        lambda x: special.logsumexp(np.stack([x, 1.0 * x, 0.0 * x]), axis=0, b=np.array([[1.0], [2.0], [1.0]])),
        3.0 * np.exp(POINTS) / (3.0 * np.exp(POINTS) + 1.0),
    ),
    "remainder": (lambda x: np.remainder(x, 0.75), 1.0),
    "%": (lambda x: x % -0.75, 1.0),
    "divmod": (lambda x: np.divmod(x, 0.75)[1], 1.0),
    "divmod of the divisor": (lambda x: np.mod(1.5 + 0.0 * x, 0.75 + 0.0 * x), 0.0),
    "fmod": (lambda x: np.fmod(x, 0.75), 1.0),
    "% of a number": (lambda x: x * 0.0 + float(x[3]) % 0.5, [0.0, 0.0, 0.0, 6.0, 0.0, 0.0]),
    "modf": (lambda x: np.modf(x)[0], 1.0),
    "ldexp": (lambda x: np.ldexp(x, 2), 4.0),
    "logaddexp2": (lambda x: np.logaddexp2(x, x.copy()), 1.0),
    "unwrap": (lambda x: np.unwrap(x, period=1.5), 1.0),
    "i0": (lambda x: special.i0(x), special.i1(POINTS)),
    "np.i0": (lambda x: np.i0(x), special.i1(POINTS)),
    "log_expit": (lambda x: special.log_expit(x), special.expit(-POINTS)),
    "entr": (lambda x: special.entr(x - 0.5), np.where(POINTS < 0.5, 0.0, -np.log(np.maximum(POINTS, 0.6) - 0.5) - 1)),
    "xlogy by its second": (lambda x: special.xlogy(0.0, np.abs(x)), 0.0),
    "xlog1py by its second": (lambda x: special.xlog1py(np.zeros(6), x), 0.0),
    "0**0 by its base": (lambda x: x ** np.zeros(6), 0.0),
    "a power of 1.5": (lambda x: np.maximum(x, 0.0) ** 1.5, 1.5 * np.maximum(POINTS, 0.0) ** 0.5),
    "a power of 1.5 of squares": (lambda x: (x * x) ** 1.5, 3.0 * POINTS * np.abs(POINTS)),
    "a power of 2.5": (lambda x: np.maximum(x, 0.0) ** 2.5, 2.5 * np.maximum(POINTS, 0.0) ** 1.5),
    "powers by their exponents": (lambda x: np.zeros(6) ** (x + 2.0), 0.0),
    "vander": (lambda x: np.vander(x, 3), 2 * POINTS + 1),
    "//": (lambda x: x // (0.5 * (POINTS > 0)), 0.0),
    "angle of a real number": (lambda x: np.angle(x), 0.0),
    "interp": (lambda x: np.interp(x, [-0.75, 0.0, 2.0, 2.0], [-1.5, 0.0, 4.0, 7.0]), [2.0, 2.0, 2.0, 2.0, 0.0, 0.0]),
    "interp beside what is missing": (
        lambda x: np.interp(x, [0.8, 1.0, 2.0, 3.0], [np.nan, 1.0, 4.0, 5.0], left=0.0),
        [0.0, 0.0, 0.0, 3.0, 0.0, 1.0],
    ),
}


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_at_single_points(name: str) -> None:
    function, slopes = SLOPES[name]
    wanted = np.broadcast_to(slopes, POINTS.shape)
    np.testing.assert_allclose(accel.grad(lambda x: float(function(x).sum()))(POINTS), wanted, rtol=1e-9, atol=1e-12)
    pure = accel.to_jax(function, POINTS)
    np.testing.assert_allclose(pure()["result"], function(POINTS), rtol=1e-14, atol=1e-15)
    along = jax.jvp(lambda x: pure({"x": x})["result"].sum(), (POINTS,), (np.ones(6),))[1]
    np.testing.assert_allclose(along, wanted.sum(), rtol=1e-9, atol=1e-12)


def _zeroed(x: Any) -> Any:
    y = x * 1.0
    y[y < 0] = 0.0
    return y


BOUNDED: dict[str, Callable[[Any], Any]] = {
    "a root of a maximum": lambda x: np.sqrt(np.maximum(x, 0.0)),
    "a root of a maximum of arrays": lambda x: np.sqrt(np.maximum(x, np.zeros(5))),
    "a power of a selection": lambda x: np.where(x > 0, x, 0.0) ** 0.7,
    "a root of what is zeroed": lambda x: np.sqrt(_zeroed(x)),
    "a root of what is clipped": lambda x: x.clip(0.0) ** 0.5,
    "an angle of what is clipped": lambda x: np.arccos(np.clip(x, -1.0, 1.0)) * x,
    "an angle of two bounds": lambda x: np.arcsin(1.0 * np.minimum(np.maximum(x, -1.0), 1.0)),
    "through a view": lambda x: np.sqrt(np.maximum(x, 0.0)[1:].reshape(2, 2)),
    "a bound that is taken off": lambda x: np.maximum(x - 0.5, 0.0) ** 0.4 * x,
    "a number's root": lambda x: x + float(np.sqrt(max(x[4], 0.0))),
    "a chosen sum": lambda x: np.sum(np.log(x), where=x > 0),
    "a chosen mean": lambda x: np.mean(x / np.maximum(x, 0.0) + np.sqrt(x), where=x > 0),
    "a chosen variance": lambda x: np.var(np.sqrt(x), where=x > 0),
    "a chosen maximum": lambda x: np.max(np.log(x), where=x > 0, initial=-9.0),
    "a sum without NaN": lambda x: np.nansum(x * np.sqrt(x)),
    "a spread without NaN": lambda x: np.nanstd(np.where(x > 0, x, np.nan)) + np.nanmax(np.sqrt(x)),
    "a spread of a selection": lambda x: np.log(x[x > 0]).std(),
}
"""Programs whose operations are singular where a bound, a mask or a missing value keeps them out of the result."""


@pytest.mark.parametrize("name", BOUNDED)
def test_a_bound_that_is_taken_has_the_derivative_zero(name: str) -> None:
    function = BOUNDED[name]
    x = np.array([0.7, 1.9, 0.25, -0.41, -1.11])

    def total(x: Any) -> float:
        return float(np.sum(function(x)))

    steps = 1e-5 * np.eye(5)
    wanted = np.array([(total(x + step) - total(x - step)) / 2e-5 for step in steps])
    np.testing.assert_allclose(accel.grad(total)(x), wanted, rtol=1e-6, atol=1e-8)
    pure = accel.to_jax(total, x)

    def value(x: Any) -> Any:
        return pure({"x": x})["result"]

    np.testing.assert_allclose(jax.jacfwd(value)(x), wanted, rtol=1e-6, atol=1e-8)
    assert np.isfinite(jax.hessian(value)(x)).all()


def test_a_singular_point_that_is_read_stays_one() -> None:
    found = accel.grad(lambda x: float(np.sqrt(np.maximum(x, 0.0)).sum()))(np.array([0.0, 4.0, -1.0]))
    assert not np.isfinite(found[0])
    np.testing.assert_array_equal(found[1:], [0.25, 0.0])


Row = tuple[Any, int, Callable[..., Any]]


def _rows_of_one_element() -> Iterator[Row]:
    """Rules of real numbers, element by element: how many operands they have, and what JAX computes."""
    load(everything=True)
    for name in ufuncs.ROWS:
        own = getattr(np, name, None)
        ufunc = own if isinstance(own, np.ufunc) else getattr(special, name)
        if any(loop == "d" * ufunc.nin + "->" + "d" * ufunc.nout for loop in ufunc.types) and not ufunc.signature:
            rule, loop = ufuncs.rule_for(ufunc), (np.dtype(float),) * (ufunc.nin + ufunc.nout)
            yield rule, ufunc.nin, lambda *x, rule=rule, loop=loop: rule.lower(*x, loop=loop)
    for rule in dict.fromkeys(RULES.values()):
        if rule.locality.elementwise and rule.lower is not None:
            names = rule.operands
            yield rule, len(names), lambda *x, rule=rule, names=names: rule.lower(**dict(zip(names, x, strict=True)))


def _singular(rows: list[Row], values: list[float]) -> set[str]:
    """Names of rows that have a value, and no finite derivative by some operand, at some of the values."""

    def truths(values: Any) -> list[Any]:
        return [_is_singular(count, compute, values) for _, count, compute in rows]

    found = jax.jit(truths)(np.array(values))
    return {rule.name for (rule, *_), truth in zip(rows, found, strict=True) if truth}


def _is_singular(count: int, compute: Callable[..., Any], values: Any) -> Any:
    points = [grid.ravel() for grid in jax.numpy.meshgrid(*[values] * count)]

    def floats(*x: Any) -> list[Any]:
        found = compute(*x)
        parts = found if isinstance(found, tuple) else (found,)
        return [part for part in parts if part.dtype.kind == "f"]

    truth: Any = False
    for number, value in enumerate(floats(*points)):
        slopes = jax.grad(lambda *x, number=number: floats(*x)[number].sum(), tuple(range(count)))(*points)
        for slope in slopes:
            truth = truth | (~jax.numpy.isnan(value) & ~jax.numpy.isfinite(slope)).any()
    return truth


def test_rows_say_whether_they_are_singular() -> None:
    finite = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0]
    known = {"nextafter", "spacing"}  # JAX has no derivative of these
    rows = [row for row in _rows_of_one_element() if row[0].name.rpartition(".")[2] not in known]
    assert len(rows) > 85
    declared = {rule.name for rule, *_ in rows if rule.slope.singular}
    with traced(has_derivatives=True):
        found = _singular(rows, finite)
        assert found - declared == set()
        left = [row for row in rows if row[0].name in declared - found]
        assert _singular(left, [*finite, np.inf, -np.inf]) == declared - found


CONSTANTS: dict[str, Callable[[Any], Any]] = {
    "logit": lambda x: special.expit(special.logit(np.clip(x, 0.0, 1.0)) * 0.5),
    "erfinv": lambda x: np.tanh(special.erfinv(np.clip(x, -1.0, 1.0))),
    "entr": lambda x: special.entr(np.maximum(x, 0.0)),
    "logaddexp": lambda x: np.exp(np.logaddexp(np.where(x > 0, x, -np.inf), np.where(x > 0, 1.0, -np.inf))),
    "xlogy": lambda x: special.xlogy(np.maximum(x, 0.0), np.maximum(x, 0.0)),
}
"""Functions of SciPy's and others that are singular where a bound or a mask puts a constant."""


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_at_singular_points_have_the_derivative_zero(name: str) -> None:
    x = np.array([0.7, 0.25, -0.41, -1.11, 1.9])
    function = CONSTANTS[name]
    step = 1e-5
    wanted = (function(x + step) - function(x - step)) / (2 * step)
    np.testing.assert_allclose(accel.grad(lambda x: float(function(x).sum()))(x), wanted, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(np.diag(accel.jacobian(function)(x)), wanted, rtol=1e-6, atol=1e-8)
