"""Functions of several numbers where some are far larger than others: what is left of the small ones is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import linalg, special

import accel
from accel.dispatch.replay import StagedOutputs
from accel.dispatch.replay.commit import commit
from tests.replays import variant_of

Case = tuple[Callable[..., Any], list[tuple[Any, ...]]]

MATRICES = [
    (np.diag([1e200, 1e200, 1e-300]),),
    (np.diag([1e-200, 1e-200, 1e300]),),
    (np.array([[0.0, 1e8, 0.0], [-1e-8, 0.0, 0.0], [0.0, 0.0, 1.0]]),),
    (np.array([[1e-160, 2e-160, 0.0], [3e-160, 1e-160, 0.0], [0.0, 0.0, 1.0]]),),
    (np.array([[-1e20, 1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -2.0]]),),
]
WEIGHTED = [
    (np.array([0.0, -40.0, -50.0]), np.array([1.0, 2.0, -1.0])),
    (np.array([1000.0, 0.0, -1.0]), np.array([0.0, 1.0, 1.0])),
    (np.array([1e-17, -45.0, -45.0]), np.array([1.0, 1.0, 1.0])),
    (np.array([3.0, 3.0, 0.0]), np.array([1.0, -1.0, 1.0])),
    (np.array([3.0, 1.0, 0.0]), np.array([-1.0, 1.0, 1.0])),
    (np.array([np.inf, 1.0, 0.0]), np.array([0.0, 1.0, 1.0])),
    (np.array([np.inf, 1.0, 0.0]), np.array([1.0, 1.0, 1.0])),
    (np.array([-np.inf, -np.inf, -np.inf]), np.array([1.0, 1.0, 1.0])),
]

CASES: dict[str, Case] = {
    "det": (lambda a: np.linalg.det(a), MATRICES),
    "slogdet": (lambda a: tuple(np.linalg.slogdet(a)), MATRICES),
    "slogdet of two rows": (lambda a: tuple(np.linalg.slogdet(a[:2, :2])), MATRICES),
    "scipy.linalg.det": (lambda a: linalg.det(a), MATRICES),
    "expm": (lambda a: linalg.expm(a), MATRICES),
    "cond": (lambda a: np.linalg.cond(a * 1e100, 1), MATRICES),
    "cond by squares": (lambda a: np.linalg.cond(a * 1e160, "fro"), MATRICES[2:3]),
    "gradient": (lambda a: np.gradient(a[0] * 0.0 + 0.1, edge_order=2), MATRICES),
    "logsumexp": (lambda a, b: special.logsumexp(a), WEIGHTED),
    "logsumexp of rows": (lambda a, b: special.logsumexp(a[:, None] + a, axis=1, keepdims=True), WEIGHTED),
    "logsumexp with weights": (lambda a, b: special.logsumexp(a, b=b), WEIGHTED),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_of_very_different_sizes(name: str, by_xla: None) -> None:
    """What the program itself gives, uncompared; where its assumptions fail, NumPy computes the call."""
    function, given = CASES[name]
    usual = (np.eye(3) + 0.1,) if len(given[0]) == 1 else tuple(np.linspace(1.0, 2.0, 3) for _ in given[0])
    variant = variant_of(function, lambda seed: usual)
    assert variant is not None
    for values in given:
        staged = variant.run(variant.trace.inputs.fetch(values, {})[0])
        if isinstance(staged, StagedOutputs):
            with np.errstate(all="ignore"):
                expected = function(*values)
            np.testing.assert_allclose(commit(staged), expected, rtol=1e-11, atol=1e-308, err_msg=str(values))
        else:
            assert name == "expm" or name.startswith("cond"), staged


def test_batches_have_the_same_values() -> None:
    """These programs can be derived, and their functions are written in another way."""
    x = np.array([[-1.0, 2.0, -1e10, np.inf, -np.inf], [0.5, -0.25, 1e300, -3.0, 7.0]])
    z = np.array([[-1, 1j, -1j, -2, 3], [2, -0.5j, 0.25, 1j, -1j]])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(accel.vmap(lambda x: np.spacing(x))(x), np.spacing(x))
        for exponent in (-3, 3, 6):
            found = accel.vmap(lambda z: z**exponent)(z)  # noqa: B023
            np.testing.assert_allclose([found.real, found.imag], [(z**exponent).real, (z**exponent).imag], 1e-14, 0)
