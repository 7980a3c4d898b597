"""Travel-time tomography: an eikonal solver, rays back along gradients, damped least squares."""

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates


def eikonal(slowness, source, h, sweeps=4):
    """First arrivals by repeated relaxation over the grid."""
    t = np.full(slowness.shape, 1e6)
    t[source] = 0.0
    for _ in range(sweeps * max(slowness.shape) // 2):
        padded = np.pad(t, 1, constant_values=1e6)
        tx = np.minimum(padded[:-2, 1:-1], padded[2:, 1:-1])
        ty = np.minimum(padded[1:-1, :-2], padded[1:-1, 2:])
        low, high = np.minimum(tx, ty), np.maximum(tx, ty)
        sh = slowness * h
        one = low + sh
        root = np.maximum(2 * sh**2 - (high - low) ** 2, 0.0)
        two = 0.5 * (low + high + np.sqrt(root))
        new = np.where(high - low < sh, two, one)
        t = np.minimum(t, new)
        t[source] = 0.0
    return t


def trace(t, receivers, source, n=80, step=0.6):
    """Rays from receivers down the gradient to the source: points of all rays."""
    gy, gx = np.gradient(t)
    norm = np.hypot(gy, gx) + 1e-12
    gy, gx = gy / norm, gx / norm
    at = receivers.astype(float).copy()
    rays = np.empty((n, len(receivers), 2))
    for k in range(n):
        rays[k] = at
        dy = map_coordinates(gy, at.T, order=1, mode="nearest")
        dx = map_coordinates(gx, at.T, order=1, mode="nearest")
        near = np.hypot(at[:, 0] - source[0], at[:, 1] - source[1]) < 1.0
        move = np.where(near[:, None], 0.0, step * np.stack([dy, dx], axis=1))
        at = np.clip(at - move, 0, np.array(t.shape) - 1)
    return rays


def kernel(rays, shape, cell, h, step=0.6):
    """Length of each ray in each cell of a coarser grid."""
    coarse = (shape[0] // cell, shape[1] // cell)
    iy = np.minimum((rays[..., 0] / cell).astype(int), coarse[0] - 1)
    ix = np.minimum((rays[..., 1] / cell).astype(int), coarse[1] - 1)
    moving = np.any(np.diff(rays, axis=0, append=rays[-1:]) != 0, axis=2)
    g = np.zeros((rays.shape[1], coarse[0] * coarse[1]))
    ray = np.broadcast_to(np.arange(rays.shape[1]), iy.shape)
    np.add.at(g, (ray, iy * coarse[1] + ix), step * h * moving)
    return g


def invert(g, residual, damping):
    n = g.shape[1]
    a = np.vstack([g, damping * np.eye(n)])
    b = np.concatenate([residual, np.zeros(n)])
    return np.linalg.lstsq(a, b, rcond=None)[0]


class Survey:
    def __init__(self, n=48, cell=8, seed=9):
        rng = np.random.default_rng(seed)
        self.n, self.cell, self.h = n, cell, 10.0
        self.true = 1 / (2000 + 300 * gaussian_filter(rng.normal(size=(n, n)), 6) * 10)
        self.model = np.full((n, n), 1 / 2000.0)
        self.receivers = np.stack([np.linspace(2, n - 3, 20), np.full(20, n - 2)], axis=1)

    def times(self, slowness, source):
        t = eikonal(slowness, source, self.h)
        return t, map_coordinates(t, self.receivers.T, order=1)

    def shot(self, k):
        source = (4 + (7 * k) % (self.n - 8), 2)
        _, observed = self.times(self.true, source)
        t, computed = self.times(self.model, source)
        g = kernel(trace(t, self.receivers, source), self.model.shape, self.cell, self.h)
        update = invert(g, observed - computed, 20.0)
        coarse = update.reshape(self.n // self.cell, -1)
        fine = np.repeat(np.repeat(coarse, self.cell, axis=0), self.cell, axis=1)
        self.model = np.clip(self.model + 0.5 * gaussian_filter(fine, 2.0), 1 / 4000, 1 / 1000)
        return np.sqrt(np.mean((observed - computed) ** 2))


def run(steps):
    survey = Survey()
    misfit = [survey.shot(k) for k in range(steps)]
    return {"misfit": np.array(misfit), "model": survey.model}
