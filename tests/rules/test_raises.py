"""What SciPy raises for infinities, NaN and indefinite matrices, calls of compiled programs raise, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg, signal
from scipy.spatial import distance

import accel

TAME = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 1.0], [0.5, 1.0, 6.0]])

CASES: dict[str, Callable[[Any], Any]] = {
    "solve": lambda x: linalg.solve(x, [1.0, 2.0, 3.0]),
    "solve for several": lambda x: linalg.solve(np.eye(3), x),
    "inv": lambda x: linalg.inv(x),
    "det": lambda x: linalg.det(x),
    "eigvalsh": lambda x: linalg.eigvalsh(x),
    "eigvalsh of the other triangle": lambda x: linalg.eigvalsh(x, lower=False),
    "eigh": lambda x: linalg.eigh(x, eigvals_only=True),
    "norm": lambda x: linalg.norm(x),
    "least norm": lambda x: linalg.norm(x, -np.inf),
    "count": lambda x: linalg.norm(x.reshape(-1), 0),
    "cho_factor": lambda x: linalg.cho_factor(x),
    "cholesky": lambda x: linalg.cholesky(x),
    "solve_triangular": lambda x: linalg.solve_triangular(x, [1.0, 2.0, 3.0]),
    "lu_factor": lambda x: linalg.lu_factor(x),
    "solve_banded": lambda x: linalg.solve_banded((1, 1), x, [1.0, 2.0, 3.0]),
    "solveh_banded": lambda x: linalg.solveh_banded(x[1:], [1.0, 2.0, 3.0], lower=True),
    "detrend": lambda x: signal.detrend(x),
    "savgol_filter": lambda x: signal.savgol_filter(x, 3, 1),
}


def spoilt(value: float, at: tuple[int, int]) -> NDArray[np.float64]:
    x = TAME.copy()
    x[at] = value
    return x


NOT_FINITE = [spoilt(value, at) for value in (np.inf, np.nan) for at in ((1, 1), (1, 2), (2, 1))]


def uncompared(function: Callable[[Any], Any], tame: Any) -> Any:
    """The accelerated function, with a program whose results nothing compares any more."""
    fast: Any = accel.accelerate(function)
    for step in range(4):
        fast(tame + 0.125 * step)
    paths = fast._self_target.paths
    assert any(path.program.has_program for path in paths)
    for path in paths:
        path.replays = path.compared_at = 10**6
    return fast


def reasons(fast: Any) -> set[str]:
    return {each.reason for each in fast._self_target.ledger.refusals}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_infinities_and_nan_raise(case: Callable[[Any], Any], foreground: None) -> None:
    fast = uncompared(case, TAME)
    for x in NOT_FINITE:
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            case(x.copy())
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            fast(x.copy())
    assert "verify.mismatch" not in reasons(fast)


def test_bands_that_are_not_positive_definite_raise(foreground: None) -> None:
    def solve(x: Any) -> Any:
        return linalg.solveh_banded(x, [1.0, 2.0, 3.0])

    fast = uncompared(solve, np.array([[0.0, 1.0, 1.0], [3.0, 3.0, 3.0]]))
    x = np.array([[0.0, 1.0, 1.0], [1.0, 0.5, 3.0]])
    for function in (solve, fast):
        with pytest.raises(np.linalg.LinAlgError, match="leading minor not positive definite"):
            function(x)


def test_chebyshevs_distance_leaves_nan_out(foreground: None) -> None:
    def apart(x: Any) -> Any:
        return distance.cdist(x, x, "chebyshev"), distance.pdist(x, "chebyshev")

    fast = uncompared(apart, TAME)
    for x in NOT_FINITE:
        for mine, theirs in zip(fast(x), apart(x), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert "verify.mismatch" not in reasons(fast)


def test_ramps_to_infinities_are_numpys(foreground: None) -> None:
    def padded(x: Any) -> Any:
        return np.pad(x, 1, mode="linear_ramp")

    fast = uncompared(padded, TAME)
    x = spoilt(np.inf, (0, 2))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(fast(x), padded(x))
    assert "verify.mismatch" not in reasons(fast)
