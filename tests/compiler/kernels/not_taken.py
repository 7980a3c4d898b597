"""What XLA computes, and no kernel: expressions of the rules' rows, of the plain matrix of float64, by reason."""

# ruff: noqa: E501  (tables read best by the line)
from __future__ import annotations

_TABLE = {
    "complex numbers and half precision": """
        np.add(a, 1j) | np.multiply(a, m, dtype=complex) | np.sort_complex(v) | np.sort_complex(a) | np.stack([a, b], dtype=complex) | np.array(a, dtype=complex)
        np.astype(a, complex) | a.astype(complex) | a.astype(np.float16) | np.full(3, z, dtype=complex)
    """,
    "linear algebra": """
        np.polyfit(v, u, 2) | np.linalg.norm(s, 2) | np.linalg.norm(s, "nuc") | np.linalg.matrix_norm(s, ord=2) | np.linalg.slogdet(s)
        np.linalg.eigh(p)[0]
        np.linalg.eigh(s, "U")[0] | np.linalg.svd(s)[1]
        np.abs(np.linalg.qr(s)[1])
        np.matmul(*np.linalg.qr(s))
        linalg.solve_triangular(s, t) | linalg.solve_triangular(s, v[:3], lower=True) | linalg.solve_triangular(s, t, trans=1)
        linalg.solve_triangular(s, v[:3], unit_diagonal=True) | linalg.cholesky(p) | linalg.cholesky(p, lower=True)
        linalg.cholesky(p + np.triu(s, 1), lower=True) | linalg.cholesky(p + np.tril(s, -1))
        linalg.solve_banded((1, 1), np.stack([v, np.abs(v) * 2 + 20, u]), u) | linalg.solve_banded((1, 1), np.stack([v, np.abs(v) * 2 + 20, u]), np.outer(u, v))
        linalg.cho_solve(linalg.cho_factor(p), t)
        linalg.cho_solve(linalg.cho_factor(p, True), v[:3]) | linalg.cho_solve((p, False), v[:3])
    """,
    "sorts of several operands": """
        np.lexsort((v, n)) | np.lexsort((b, a)) | np.unique(a) | np.unique(n) | np.unique(n, return_counts=True)
        np.unique(a, return_index=True, return_inverse=True, return_counts=True) | np.unique(a, equal_nan=False) | np.union1d(v, u) | np.union1d(n, a)
        np.intersect1d(n, n + 1) | np.intersect1d(v, u) | np.setdiff1d(n, n + 1) | np.setdiff1d(v, u) | np.setxor1d(n, n + 1) | np.setxor1d(v, u)
        np.interp(v, x, u[:5], period=5.0) | np.interp(v, u, v, period=-2.5) | np.interp(v, u, v, left=5, right=3, period=k)
        np.interp(v, [3.0, k + 0.5, 1.0], [1, 2, 5], period=4)
    """,
    "special functions": """
        np.nextafter(a, b) | np.nextafter(a, 2) | np.nextafter(3, b) | np.nextafter(a, c) | np.i0(a) | np.corrcoef(s) | np.corrcoef(v, u)
        special.i0(a) | special.i0e(a) | special.i1(a) | special.i1e(a)
    """,
    "transforms": """
        np.fft.fft(a) | np.fft.ifft(a) | np.fft.fft(a, axis=0) | np.fft.fft(v, 8) | np.fft.fft(v, 4, norm="ortho") | np.fft.rfft(a) | np.fft.irfft(a)
        np.fft.irfft(v, 9) | np.fft.hfft(v) | np.fft.ihfft(v) | np.fft.fft2(a) | np.fft.ifft2(a) | np.fft.rfft2(a) | np.fft.irfft2(a) | np.fft.fftn(a)
        np.fft.ifftn(a) | np.fft.rfftn(a) | np.fft.irfftn(a) | np.fft.fft(a, norm="forward") | np.fft.fft2(a, s=(3, 3)) | np.fft.irfft(a, axis=0) | fft.fft(a)
        fft.ifft(a, axis=0) | fft.fft(v, 8) | fft.rfft(a) | fft.irfft(a) | fft.fft2(a) | fft.ifft2(a) | fft.rfft2(a) | fft.fftn(a, norm="ortho") | fft.irfftn(a)
        fft.hfft(v) | fft.ihfft(v)
        signal.convolve(np.tile(v, 200), np.tile(u, 100)) | signal.fftconvolve(np.tile(v, 200), np.tile(u, 100), mode="same")
    """,
}
"""By reason, expressions as tests/rules/cases.py has them, apart by bars."""

NOT_TAKEN = frozenset(
    text.strip() for rows in _TABLE.values() for line in rows.strip().splitlines() for text in line.split(" | ")
)

COMPLEX_SINCE_2_5 = frozenset({"np.sort(np.linalg.eigvals(p).real)"})
"""Expressions of complex numbers from NumPy 2.5 on, which gives all eigenvalues as such."""
