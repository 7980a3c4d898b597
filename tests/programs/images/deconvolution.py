"""Richardson-Lucy deconvolution of a stack of photographs, and total variation denoising by Chambolle's method."""

import numpy as np
from scipy import ndimage


def phantom(n=160, seed=4):
    y, x = np.mgrid[:n, :n] / n
    image = np.zeros((n, n))
    for cx, cy, r, value in [(0.5, 0.5, 0.4, 0.3), (0.4, 0.45, 0.1, 0.6), (0.65, 0.55, 0.15, 0.4)]:
        image[(x - cx) ** 2 + (y - cy) ** 2 < r**2] += value
    rng = np.random.default_rng(seed)
    stars = rng.integers(0, n, (30, 2))
    image[stars[:, 0], stars[:, 1]] += 2.0
    return image + 0.05


def kernel(width=9, sigma=1.8):
    a = np.arange(width) - width // 2
    k = np.exp(-(a[:, None] ** 2 + a**2) / (2 * sigma**2))
    return k / k.sum()


class RichardsonLucy:
    def __init__(self, observed, psf):
        self.observed = observed
        self.psf, self.mirror = psf, psf[::-1, ::-1]
        self.estimate = np.full_like(observed, observed.mean())
        self.misfits = []

    def iterate(self):
        blurred = ndimage.convolve(self.estimate, self.psf, mode="reflect")
        ratio = self.observed / np.maximum(blurred, 1e-12)
        self.estimate = self.estimate * ndimage.convolve(ratio, self.mirror, mode="reflect")
        self.misfits.append(float(np.sqrt(np.mean((blurred - self.observed) ** 2))))


def divergence(p):
    d = np.zeros(p.shape[1:])
    d[:-1] += p[0, :-1]
    d[1:] -= p[0, :-1]
    d[:, :-1] += p[1, :, :-1]
    d[:, 1:] -= p[1, :, :-1]
    return d


def gradient(a):
    g = np.zeros((2, *a.shape))
    g[0, :-1] = a[1:] - a[:-1]
    g[1, :, :-1] = a[:, 1:] - a[:, :-1]
    return g


def denoise(image, weight=0.08, tol=2e-4, most=60):
    p = np.zeros((2, *image.shape))
    last = None
    for i in range(most):
        d = divergence(p)
        out = image + weight * d
        g = gradient(d + image / weight)
        norm = np.sqrt((g**2).sum(axis=0))
        p = (p + 0.125 * g) / (1 + 0.125 * norm)
        energy = weight * norm.sum() + 0.5 * ((out - image) ** 2).sum()
        if last is not None and abs(last - energy) < tol * abs(last):
            break
        last = energy
    return out, i


def run(steps):
    truth = phantom()
    rng = np.random.default_rng(9)
    observed = ndimage.convolve(truth, kernel()) + rng.normal(0, 0.01, truth.shape)
    solver = RichardsonLucy(np.clip(observed, 1e-3, None), kernel())
    for _ in range(steps):
        solver.iterate()
    clean, sweeps = denoise(solver.estimate)
    return {
        "estimate": solver.estimate,
        "clean": clean,
        "sweeps": np.int64(sweeps),
        "misfits": np.array(solver.misfits),
    }
