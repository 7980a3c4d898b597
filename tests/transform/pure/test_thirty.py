"""Thirty functions through `to_jax`: under `jit`, `grad` and `vmap` they are right, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import accel
from tests.transform.pure.functions import CALLS, FUNCTIONS
from tests.transform.pure.test_functions import differences
from tests.transform.pure.thirty import THIRTY, try_and_except

jax = pytest.importorskip("jax")

REFUSED = {try_and_except: "path.exception"}
"""What has no pure form, and the reason that is given."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), jax.enable_x64(True):
        yield


PURE = [each for each in (*FUNCTIONS, *THIRTY) if each not in REFUSED]


@pytest.mark.parametrize("function", PURE, ids=lambda each: each.__name__)
def test_values_gradients_and_batches(function: Callable[..., float]) -> None:
    pure = accel.to_jax(function, *CALLS[0], examples=CALLS[1:])

    def value(x: Any, k: Any) -> Any:
        out = pure({"x": x, "k": k})
        return out["result"], out["ok"]

    both = jax.value_and_grad(value, (0, 1), has_aux=True)
    members = [np.stack(values) for values in zip(*CALLS, strict=True)]
    batch = jax.jit(jax.vmap(both))(*members)
    alone = [jax.jit(both)(x, k) for x, k in CALLS]
    for found in (alone, [jax.tree.map(lambda leaf, i=i: leaf[i], batch) for i in range(len(CALLS))]):
        for (x, k), ((result, known), slopes) in zip(CALLS, found, strict=True):
            assert bool(known)
            np.testing.assert_allclose(result, function(x, k), rtol=1e-12)
            for slope, wanted in zip(slopes, differences(function, x, k), strict=True):
                np.testing.assert_allclose(slope, wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("function", REFUSED, ids=lambda each: each.__name__)
def test_what_is_refused_says_why(function: Callable[..., float]) -> None:
    with pytest.raises(accel.Refused, match=REFUSED[function].replace(".", r"\.")):
        accel.to_jax(function, *CALLS[0])


def _wide(x: Any) -> Any:
    return np.outer(np.ones(3), x) > 0.6


MASKED: tuple[Callable[[Any], Any], ...] = (
    lambda x: np.where(_wide(x), np.log(x - 0.6), 0.0),
    lambda x: np.maximum(np.sqrt(x - 0.6), np.full((3, 4), 0.01)) if x.min() > 0.7 else x**2,
    lambda x: np.clip(np.log(np.abs(x)), np.full((3, 4), -1.0), 0.5),
    lambda x: np.select([_wide(x)], [np.log(x - 0.6)], np.sqrt(np.abs(x[1]))),
    lambda x: np.choose((x > 0.6).astype(int) + (x > 1.5), [np.sqrt(0.6 - x), np.log(x - 0.6), np.sqrt(x - 1.5)]),
)
"""What masks leave out of operands that are broadcast, and of one among several choices."""


@pytest.mark.parametrize("function", MASKED)
def test_masks_of_broadcast_operands_and_of_several_choices(function: Callable[[Any], Any]) -> None:
    x = np.array([1.0, 2.0, 0.5, 3.0])
    slope, _ = differences(lambda x, k: float(function(x).sum()), x, 0.0)
    np.testing.assert_allclose(accel.grad(lambda x: float(function(x).sum()))(x), slope, rtol=1e-7, atol=1e-8)
