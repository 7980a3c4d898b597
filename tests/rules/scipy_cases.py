"""What the conformance tests call of SciPy; see `tests.rules.cases` for the names."""

# ruff: noqa: E501  (tables read best by the line)
from __future__ import annotations

from tests.rules.cases import Row, rows

SCIPY_ROWS: list[Row] = [
    *rows(
        """
        special.erf: special.erf(a) | special.erf(v + 1) | special.erf(a, out=out) | special.erfc(a)
        special.expit: special.expit(a) | special.log_expit(a) | special.ndtr(a) | special.logit(special.expit(a))
        special.xlogy: special.xlogy(a, b) | special.xlog1py(a, np.abs(b)) | special.entr(a) | special.exprel(a)
        special.i0: special.i0(a) | special.i0e(a) | special.i1(a) | special.i1e(a)
        special.exp10: special.exp10(a) | special.huber(b, a) | special.huber(1.5, a) | special.boxcox(a, b) | special.boxcox(np.abs(a), 0.0)
        special.ndtri: special.ndtri(special.expit(a)) | special.erfinv(np.tanh(a))
        """,
        dtypes=("f", "d", "q", "i", "D"),
        loose=64.0,
    ),
    *rows(
        """
        special.gammaln: special.gammaln(np.abs(a) + 0.25) | special.gamma(np.abs(a) + 0.25) | special.psi(np.abs(a) + 0.25)
        special.logsumexp: special.logsumexp(a) | special.logsumexp(a, axis=0) | special.logsumexp(a, axis=-1, keepdims=True) | special.logsumexp(a, b=np.abs(b) + 1) | special.logsumexp(a > 0, b=np.abs(b.astype(np.float32)) + 1) | special.logsumexp(n.astype(np.int32), b=a > 0)
        special.softmax: special.softmax(a) | special.softmax(a, axis=0) | special.log_softmax(a, axis=-1) | special.softmax(n.astype(np.int32) * 1000000000) | special.log_softmax(n.astype(np.int32) * 1000000000)
        """,
        dtypes=("f", "d", "q"),
        shapes=("matrix", "vector", "transposed", "cube"),
        loose=2000.0,
        tame=True,
    ),
    *rows(
        """
        integrate.trapezoid: integrate.trapezoid(a) | integrate.trapezoid(v, x=np.arange(6.0)) | integrate.trapezoid(a, dx=0.5, axis=0) | integrate.trapezoid(a, x=c)
        integrate.simpson: integrate.simpson(a) | integrate.simpson(v) | integrate.simpson(x) | integrate.simpson(x, x=x) | integrate.simpson(a, dx=0.5, axis=0) | integrate.simpson(v, x=np.arange(6.0) ** 2) | integrate.simpson(v, dx=2) | integrate.simpson(v, dx=v[1]) | integrate.simpson(v, dx=0)
        integrate.cumulative_trapezoid: integrate.cumulative_trapezoid(a) | integrate.cumulative_trapezoid(v, x=np.arange(6.0), initial=0) | integrate.cumulative_trapezoid(a, dx=0.5, axis=0) | integrate.cumulative_trapezoid(a, axis=0, initial=0)
        """,
        dtypes=("f", "d", "q", "D"),
        loose=64.0,
        tame=True,
    ),
    *rows(
        """
        linalg.solve: linalg.solve(s, t) | linalg.solve(s, v[:3]) | linalg.solve(s, v[:3], assume_a="pos") | linalg.solve(s * 0, t)
        linalg.inv: linalg.inv(s) | linalg.det(s) | linalg.norm(s) | linalg.norm(v, 1) | linalg.inv(s * 0)
        linalg.eigvalsh: linalg.eigvalsh(p) | linalg.eigvalsh(p + np.triu(s, 1)) | linalg.eigvalsh(p + np.tril(s, -1), lower=False) | linalg.eigh(p, eigvals_only=True) | linalg.eigh(p, lower=False, eigvals_only=True)
        linalg.solve_triangular: linalg.solve_triangular(s, t) | linalg.solve_triangular(s, v[:3], lower=True) | linalg.solve_triangular(s, t, trans=1) | linalg.solve_triangular(s, v[:3], unit_diagonal=True)
        linalg.cholesky: linalg.cholesky(p) | linalg.cholesky(p, lower=True) | linalg.cholesky(p + np.triu(s, 1), lower=True) | linalg.cholesky(p + np.tril(s, -1)) | linalg.cholesky(-p)
        linalg.expm: linalg.expm(s) | linalg.expm(p * 0.1) | linalg.expm(s * 0)
        linalg.solve_banded: linalg.solve_banded((1, 1), np.stack([v, np.abs(v) * 2 + 20, u]), u) | linalg.solve_banded((1, 1), np.stack([v, np.abs(v) * 2 + 20, u]), np.outer(u, v)) | linalg.solve_banded((2, 1), np.stack([v, np.abs(v) + 9, u, v]), u)
        linalg.solveh_banded: linalg.solveh_banded(np.stack([v, np.abs(v) * 2 + 20]), u) | linalg.solveh_banded(np.stack([np.abs(v) * 2 + 20, v]), u, lower=True)
        linalg.cho_factor: linalg.cho_factor(p) | linalg.cho_factor(p, lower=True) | linalg.cho_factor(p + np.triu(s, 1), True) | linalg.cho_factor(-p)
        linalg.cho_solve: linalg.cho_solve(linalg.cho_factor(p), t) | linalg.cho_solve(linalg.cho_factor(p, True), v[:3]) | linalg.cho_solve((p, False), v[:3])
        linalg.lu_factor: linalg.lu_factor(s) | linalg.lu_factor(np.outer(v, u)[:, :2])
        linalg.lu_solve: linalg.lu_solve(linalg.lu_factor(s), t) | linalg.lu_solve(linalg.lu_factor(s), v[:3], trans=1) | linalg.lu_solve(linalg.lu_factor(s), v[:3], trans=2)
        linalg.toeplitz: linalg.toeplitz(v) | linalg.toeplitz(v, u) | linalg.toeplitz(v, x)
        """,
        dtypes=("f", "d", "D", "q"),
        loose=300.0,
        tame=True,
    ),
    *rows(
        """
        fft.fft: fft.fft(a) | fft.ifft(a, axis=0) | fft.fft(v, 8) | fft.rfft(a) | fft.irfft(a) | fft.fft2(a) | fft.ifft2(a) | fft.rfft2(a) | fft.fftn(a, norm="ortho") | fft.irfftn(a) | fft.hfft(v) | fft.ihfft(v)
        fft.dct: fft.dct(a) | fft.dct(v, norm="ortho") | fft.idct(a, axis=0) | fft.idct(v, norm="ortho") | fft.dct(a, type=1)
        fft.fftshift: fft.fftshift(a) | fft.ifftshift(a, axes=0) | fft.fftfreq(8) * z | fft.rfftfreq(7, d=0.5) * z
        """,
        dtypes=("f", "d", "D", "q"),
        shapes=("matrix", "vector", "transposed", "cube"),
        loose=300.0,
        tame=True,
    ),
    *rows(
        """
        signal.convolve: signal.convolve(v, x) | signal.convolve(x, v, mode="same") | signal.convolve(a, s, mode="valid") | signal.convolve(a, a) | signal.convolve(v, u[:2], method="direct") | signal.convolve(np.tile(v, 200), np.tile(u, 100))
        signal.fftconvolve: signal.fftconvolve(a, b) | signal.fftconvolve(a, a[:1], axes=1) | signal.fftconvolve(a, a[:1], mode="same", axes=-1) | signal.fftconvolve(a, s, mode="same") | signal.oaconvolve(v, x) | signal.fftconvolve(np.tile(v, 200), np.tile(u, 100), mode="same")
        signal.correlate: signal.correlate(v, x) | signal.correlate(x, v, mode="same") | signal.correlate(a, s, mode="valid") | signal.correlate(a, s[:2, :2])
        signal.convolve2d: signal.convolve2d(a, s) | signal.convolve2d(a, s, mode="same") | signal.convolve2d(a, s, mode="same", boundary="wrap") | signal.convolve2d(a, s, boundary="symm") | signal.convolve2d(a, s, mode="valid") | signal.convolve2d(a, s, fillvalue=2)
        signal.medfilt: signal.medfilt(v) | signal.medfilt(v, 5) | signal.medfilt(a) | signal.medfilt(a, [1, 3]) | signal.medfilt(v, 4)
        signal.savgol_filter: signal.savgol_filter(v, 5, 2) | signal.savgol_filter(a, 3, 1, axis=0) | signal.savgol_filter(v, 5, 2, deriv=1, delta=0.5) | signal.savgol_filter(v, 5, 2, mode="nearest") | signal.savgol_filter(v, 4, 2) | signal.savgol_filter(v, 3, 1, mode="mirror")
        signal.detrend: signal.detrend(v) | signal.detrend(a, axis=0) | signal.detrend(a, type="constant")
        """,
        dtypes=("f", "d", "D", "q", "i"),
        shapes=("matrix", "vector", "transposed", "one"),
        loose=2000.0,
        tame=True,
    ),
    *rows(
        """
        distance.cdist: distance.cdist(s, t) | distance.cdist(s, t, "sqeuclidean") | distance.cdist(s, t, metric="cityblock") | distance.cdist(s, t, "chebyshev") | distance.cdist(s, t, "cosine") | distance.cdist(s, t, "hamming")
        distance.pdist: distance.pdist(s) | distance.pdist(s, "cityblock") | distance.squareform(distance.pdist(s)) | distance.squareform(np.abs(v))
        """,
        dtypes=("f", "d", "q", "?"),
        loose=64.0,
        tame=True,
    ),
    *rows(
        """
        ndimage.binary_erosion: ndimage.binary_erosion(a) | ndimage.binary_erosion(a > 0, iterations=2) | ndimage.binary_erosion(m, np.ones((2, 3), bool), border_value=1) | ndimage.binary_erosion(v, origin=1) | ndimage.binary_erosion(m, ndimage.generate_binary_structure(2, 2)) | ndimage.binary_erosion(m, iterations=-1) | ndimage.binary_erosion(m, mask=m) | ndimage.binary_erosion(v, [True, False], iterations=3)
        ndimage.binary_dilation: ndimage.binary_dilation(a) | ndimage.binary_dilation(m, iterations=3) | ndimage.binary_dilation(m, np.eye(2, 3, dtype=bool), border_value=1) | ndimage.binary_dilation(v, [True, False], origin=-1)
        ndimage.binary_opening: ndimage.binary_opening(a) | ndimage.binary_opening(m, np.ones((2, 2)), iterations=2) | ndimage.binary_closing(a) | ndimage.binary_closing(m, np.eye(2), origin=(0, -1), border_value=1)
        """,
        dtypes=("d", "q", "?", "B", "D"),
        shapes=("matrix", "transposed", "reversed", "vector", "cube", "one"),
    ),
    *rows(
        """
        ndimage.grey_erosion: ndimage.grey_erosion(a, 3) | ndimage.grey_erosion(v, (2,), mode="constant", cval=1.5) | ndimage.grey_erosion(s, footprint=np.eye(3), origin=1) | ndimage.grey_erosion(s, structure=np.ones((3, 3)))
        ndimage.grey_dilation: ndimage.grey_dilation(a, 3) | ndimage.grey_dilation(a, 2, mode="wrap") | ndimage.grey_dilation(s, footprint=[[1, 1], [0, 1]]) | ndimage.grey_dilation(v, 4, origin=1)
        ndimage.grey_opening: ndimage.grey_opening(a, 3) | ndimage.grey_opening(v, 2) | ndimage.grey_closing(a, 3, mode="nearest") | ndimage.grey_closing(v, 4)
        ndimage.morphological_gradient: ndimage.morphological_gradient(a, 3) | ndimage.morphological_laplace(a, 2) | ndimage.white_tophat(a, 3) | ndimage.black_tophat(a, 2)
        """,
        dtypes=("d", "f", "q", "?", "B", "h"),
        shapes=("matrix", "transposed", "reversed", "vector", "cube", "one"),
        loose=4.0,
        tame=True,
    ),
    *rows(
        """
        ndimage.sum_labels: ndimage.sum_labels(a) | ndimage.sum_labels(a, m) | ndimage.sum_labels(v, n, 2) | ndimage.sum_labels(v, n, [0, 2, 9]) | ndimage.sum(v, n, np.arange(4)) | ndimage.sum_labels(v, n - 2, [[-1, 0], [1, 1]]) | ndimage.sum_labels(v, n) | ndimage.sum_labels(v, n, [1.5]) | ndimage.sum_labels(v, u, [1, 2])
        ndimage.mean: ndimage.mean(a) | ndimage.mean(v, n) | ndimage.mean(v, n, 2) | ndimage.mean(v, n, [0, 1, 2, 3]) | ndimage.mean(a, m, [0, 1])
        ndimage.variance: ndimage.variance(a) | ndimage.variance(v, n, (0, 1, 2)) | ndimage.variance(v, n, 1) | ndimage.standard_deviation(v, n) | ndimage.standard_deviation(a, m, [0, 1])
        ndimage.maximum: ndimage.maximum(a) | ndimage.maximum(v, n) | ndimage.maximum(v, n, 2) | ndimage.maximum(v, n, [0, 1, 2, 9]) | ndimage.maximum(a, m, [1, 0])
        ndimage.minimum: ndimage.minimum(a) | ndimage.minimum(v, n) | ndimage.minimum(v, n, 2) | ndimage.minimum(v, n, [0, 1, 2, 9]) | ndimage.minimum(a, m, [1, 0])
        """,
        dtypes=("d", "f", "q", "B", "D", "?"),
        shapes=("matrix", "transposed", "vector", "cube"),
        loose=64.0,
    ),
]
