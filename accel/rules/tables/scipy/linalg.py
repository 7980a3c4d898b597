"""scipy.linalg: systems of equations, factorisations, the matrix exponential.

SciPy warns of ill-conditioned matrices, which replays do not. What it raises for infinities and NaN, replays check.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from accel.rules.core import all_finite, cast, in_common_dtype
from accel.rules.hosted import on_host
from accel.rules.lowering import Array, Lazy, jnp, lax
from accel.rules.rule import Unsupported, rewritten, rule
from accel.rules.special import Finite
from accel.rules.tables.algebra.linalg import from_triangle

jla: Any = Lazy("jax.scipy.linalg")


_finite = all_finite  # SciPy raises for infinities and NaN


def _floating(*arrays: Any) -> list[Any]:
    """Single and double precision as they are, all else as double."""
    if any(array.dtype == np.float16 or not array.size for array in arrays):
        raise Unsupported("rule.parameter", "a matrix of halves, or of nothing")
    return in_common_dtype(*(array if array.dtype.kind in "fc" else cast(array, np.dtype(float)) for array in arrays))


def _square(a: Any) -> None:
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise Unsupported("rule.parameter", "several matrices at once")
    if a.dtype != np.float32 and np.can_cast(a.dtype, np.float32):
        raise Unsupported("rule.parameter", "small whole numbers, with which SciPy computes in single precision")


@rewritten(linalg.solve, "a b | check_finite assume_a", holds=_finite, or_on_host=True)
def solve(a: Any, b: Any, check_finite: bool = True, assume_a: str | None = None) -> Any:
    """By Gauss's elimination, whatever is known of the matrix: the solution differs by no more than rounding."""
    _square(a)
    if assume_a not in (None, "gen", "general", "pos", "positive definite", "sym", "symmetric"):
        raise Unsupported("rule.parameter", f"scipy.linalg.solve: assume_a={assume_a!r}")
    if assume_a in ("pos", "positive definite", "sym", "symmetric"):
        raise Unsupported("rule.parameter", "scipy.linalg.solve of which one triangle is read")
    return np.linalg.solve(a, b)


@rewritten(linalg.inv, "a | check_finite", holds=_finite, or_on_host=True)
def inv(a: Any, check_finite: bool = True) -> Any:
    _square(a)
    return np.linalg.inv(a)


@rewritten(linalg.eigvalsh, "a | lower check_finite", holds=_finite, or_on_host=True)
def eigvalsh(a: Any, lower: bool = True, check_finite: bool = True) -> Any:
    """By NumPy's own; eigenvectors, of which SciPy's driver chooses other signs, are refused."""
    _square(a)
    return np.linalg.eigvalsh(a, UPLO="L" if lower else "U")


@rewritten(linalg.eigh, "a | lower eigvals_only check_finite", holds=_finite, or_on_host=True)
def eigh(a: Any, lower: bool = True, eigvals_only: bool = False, check_finite: bool = True) -> Any:
    if not eigvals_only:
        raise Unsupported("rule.parameter", "scipy.linalg.eigh with eigenvectors: their signs are the driver's")
    return eigvalsh(a, lower, check_finite)


@rule(linalg.solve_triangular, "a b | trans lower unit_diagonal check_finite", holds=_finite, special=Finite())
def solve_triangular(
    *,
    a: Array,
    b: Array,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    check_finite: bool = True,
) -> Any:
    _square(a)
    a, b = _floating(a, b)
    return jla.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit_diagonal)


def _factor(a: Array, lower: bool) -> Any:
    """Cholesky's factor; only the triangle that SciPy reads is read."""
    # the other triangle is filled in for the derivative, which takes it for symmetric
    found = lax.linalg.cholesky(from_triangle(a, not lower), symmetrize_input=False)
    return found if lower else found.conj().T


@rule(linalg.cholesky, "a | lower check_finite", holds=_finite, special=Finite())
def cholesky(*, a: Array, lower: bool = False, check_finite: bool = True) -> Any:
    _square(a)
    (a,) = _floating(a)
    return _factor(a, lower)


_A_FACTOR = linalg.cho_factor(np.ones((2, 2)) + np.eye(2))
_TELLS_BY_ARRAY = isinstance(_A_FACTOR[1], np.ndarray)
"""Whether SciPy says in an array which triangle a factor is in: it does from 1.18 on."""
_CLEARS = not _A_FACTOR[0][1, 0]
"""Whether SciPy clears the other triangle: it does from 1.18 on, unless it may overwrite the matrix."""


@rewritten(linalg.cho_factor, "a | lower check_finite")
def cho_factor(a: Any, lower: bool = False, check_finite: bool = True) -> Any:
    """The factor in its triangle; in the other one are zeros, or what the matrix has there."""
    _square(a)
    if a.dtype not in (np.float64, np.float32, np.complex128, np.complex64):
        raise Unsupported("rule.parameter", "scipy.linalg.cho_factor of whole numbers or halves")
    if check_finite and not np.isfinite(a).all():
        raise Unsupported("rule.parameter", "scipy.linalg.cho_factor of infinities or NaN")
    half = np.tril(a) if lower else np.conj(np.triu(a)).T
    factor = np.linalg.cholesky(half + np.conj(np.tril(half, -1)).T)
    found = factor if lower else np.conj(factor).T
    if not _CLEARS:
        found = found + (np.triu(a, 1) if lower else np.tril(a, -1))
    return found, np.array(lower) if _TELLS_BY_ARRAY else lower


@rule(linalg.cho_solve, "*c_and_lower b | check_finite", holds=_finite)
def cho_solve(*, c_and_lower: Any, b: Array, check_finite: bool = True) -> Any:
    factor, lower = c_and_lower
    _square(factor)
    c, b = _floating(factor, b)
    if jnp.ndim(lower) or b.ndim > 2:
        raise Unsupported("rule.parameter", "scipy.linalg.cho_solve of several matrices at once")
    if isinstance(lower, (bool, int, np.bool_)):
        return jla.cho_solve((c, bool(lower)), b)
    return jla.cho_solve((jnp.where(lower, c, jnp.conj(c).T), True), b)


@rule(linalg.solve_banded, "ab b | l_and_u check_finite", holds=_finite, special=Finite())
def solve_banded(*, l_and_u: Any, ab: Array, b: Array, check_finite: bool = True) -> Any:
    """Of tridiagonal matrices."""
    if tuple(map(int, l_and_u)) != (1, 1) or b.ndim > 2:
        raise Unsupported("rule.parameter", f"scipy.linalg.solve_banded with bands {tuple(l_and_u)}")
    ab, b = _floating(ab, b)
    none = jnp.zeros(1, ab.dtype)
    below, above = jnp.concatenate([none, ab[2, :-1]]), jnp.concatenate([ab[0, 1:], none])
    found = lax.linalg.tridiagonal_solve(below, ab[1], above, b[:, None] if b.ndim == 1 else b)
    return found.reshape(b.shape)


on_host(
    linalg,
    """
    det: a
    eig: a b
    eigh_tridiagonal: d e
    eigvals: a b
    expm: A
    fractional_matrix_power: A
    logm: A
    lstsq: a b
    lu: a
    lu_factor: a
    lu_solve: *lu_and_piv b
    matmul_toeplitz: *c_or_cr x
    norm: a
    null_space: A
    orth: A
    orthogonal_procrustes: A B
    pinv: a
    pinvh: a
    polar: a
    qr: a
    schur: a
    solve_circulant: c b
    solve_continuous_are: a b q r
    solve_continuous_lyapunov: a q
    solve_discrete_are: a b q r
    solve_discrete_lyapunov: a q
    solve_sylvester: a b q
    solve_toeplitz: *c_or_cr b
    solveh_banded: ab b
    sqrtm: A
    subspace_angles: A B
    svd: a
    svdvals: a
    toeplitz: c r
    """,
)
