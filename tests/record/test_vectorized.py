"""numpy.vectorize: functions that only compute are recorded for all elements at once; others say why not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SOLAR = 1361.0


def some(i: int, *shape: int) -> Any:
    return np.random.default_rng(i).normal(size=shape or (12,))


def positive(i: int, *shape: int) -> Any:
    return np.abs(some(i, *shape)) + 0.1


def flux(t: float, albedo: float = 0.3) -> float:
    return 5.67e-8 * t**4 - SOLAR * (1.0 - albedo) / 4.0


def pressure(t: float) -> float:
    return 611.0 * math.exp(17.27 * (t - 273.15) / (t - 35.85))


def wave(a: float, b: float) -> float:
    c = np.sin(a) * 2.0
    return np.sqrt(a * a + b**2) + c / (1.0 + abs(b)) + math.pi


@np.vectorize
def both(x: float, y: float) -> float:
    return wave(x, y) - 2 * x


narrow = np.vectorize(flux, otypes=[np.float32])

GOOD = {
    "numbers": (lambda x: np.vectorize(flux)(x * 10.0 + 280.0), some),
    "math": (lambda x: np.vectorize(pressure)(x * 10.0 + 280.0) * x, some),
    "ufuncs": (lambda x, y: np.vectorize(wave)(x, y), lambda i: (some(i, 3, 4), some(i + 1, 4))),
    "two": (lambda x: both(x, 2.0) + both(x, x), some),
    "otypes": (lambda x: narrow(x * 10.0 + 280.0), some),
    "a lambda": (lambda x: np.vectorize(lambda v: v * v + 1)(x) + np.vectorize(lambda v: 1 / v)(x), positive),
    "truths": (lambda x: np.vectorize(lambda v: v > 0.5)(x) & (x < 1.0), some),
    "powers": (lambda x: np.vectorize(lambda v: v**0.5 + 2.0**v + v % 3.0 + v // 0.7 - v**3)(x), positive),
    "logarithms": (lambda x: np.vectorize(lambda v: math.log(v) + math.atan2(v, 2.0) + math.sqrt(v))(x), positive),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_only_computes_is_compiled(check: Any, name: str) -> None:
    function, make = GOOD[name]
    check(function, make)


@given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=6))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_values_at_will(check: Any, values: list[float]) -> None:
    x = np.array(values)
    check(
        lambda x: np.vectorize(lambda v: (v - 1.0) * 0.5 + v / 3.0 - np.tanh(v))(x), lambda i: x + i, calls=4, replays=1
    )


def branching(v: float) -> float:
    return v if v > 0 else -v


def printing(v: float) -> float:
    print(v)
    return v


REFUSED = {
    "branches": (lambda x: np.vectorize(branching)(x), "that branches"),
    "branches of a callee": (lambda x: np.vectorize(lambda v: branching(v) + 1.0)(x), "that branches"),
    "max": (lambda x: np.vectorize(lambda v: max(v, 0.0))(x), "that uses max"),
    "effects": (lambda x: np.vectorize(printing)(x), "that does more than compute"),
    "integers": (lambda x: np.vectorize(lambda v: v + 1)(np.arange(5) + x.astype(int)[:5]), "other than float64"),
    "texts": (lambda x: np.vectorize(str)(x), "cannot run by itself"),
    "signature": (lambda x: np.vectorize(np.sum, signature="(n)->()")(x), "cannot run by itself"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_more_is_refused_with_the_cause(check: Any, name: str) -> None:
    function, why = REFUSED[name]
    checked = check(function, some, reason="call.opaque")
    assert any(why in refusal.detail for refusal in checked.ledger.refusals), checked.ledger.refusals


def test_what_python_raises_for_an_element_is_raised(check: Any) -> None:
    check(
        lambda x: np.vectorize(lambda v: 1.0 / v)(x),
        lambda i: some(i) * (np.arange(12) != i % 7 + 20 * (i < 6)),
        replays=2,
    )


def test_the_function_s_names_are_guarded(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check(
        lambda x: np.vectorize(flux)(x + 280.0),
        some,
        before=lambda i: monkeypatch.setitem(globals(), "SOLAR", 1361.0 + (i % 9 if i > 5 else 0)),
        replays=2,
    )


changing = np.vectorize(flux, otypes="d")


def test_changed_otypes_are_another_path(check: Any) -> None:
    check(
        lambda x: changing(x + 280.0),
        some,
        before=lambda i: setattr(changing, "otypes", "f" if i > 6 else "d"),
        replays=3,
    )
