"""Flow through random porous media: clusters that span, pressure by red and black relaxation, tracers, grain sizes."""

import numpy as np
from scipy import ndimage
from scipy.spatial import cKDTree


def medium(n, rng, porosity):
    noise = ndimage.gaussian_filter(rng.standard_normal((n, n)), 2.0, mode="wrap")
    return noise > np.quantile(noise, 1 - porosity)


def spanning(pores):
    """The pores that are connected from top to bottom."""
    labels, count = ndimage.label(pores)
    both = np.intersect1d(labels[0], labels[-1])
    both = both[both > 0]
    return np.isin(labels, both), count


def relax(pores, p, sweeps=30, omega=1.6):
    n, m = pores.shape
    checker = (np.add.outer(np.arange(n), np.arange(m)) % 2).astype(bool)
    inside = pores.astype(float)
    pad_in = np.pad(inside, 1)
    weight = pad_in[:-2, 1:-1] + pad_in[2:, 1:-1] + pad_in[1:-1, :-2] + pad_in[1:-1, 2:]
    for k in range(2 * sweeps):
        padded = np.pad(p * inside, 1)
        total = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        target = np.where(weight > 0, total / np.maximum(weight, 1), p)
        update = pores & (checker if k % 2 else ~checker)
        update[0] = update[-1] = False
        p[update] += omega * (target[update] - p[update])
    return p


def velocity(pores, p):
    gy, gx = np.zeros_like(p), np.zeros_like(p)
    open_y = pores[1:] & pores[:-1]
    open_x = pores[:, 1:] & pores[:, :-1]
    gy[:-1] = np.where(open_y, p[:-1] - p[1:], 0.0)
    gx[:, :-1] = np.where(open_x, p[:, :-1] - p[:, 1:], 0.0)
    return gy, gx


def move(at, gy, gx, pores, dt):
    """Tracers with the flow; those that would enter a grain stay."""
    i = at.astype(int)
    v = np.stack([gy[i[:, 0], i[:, 1]], gx[i[:, 0], i[:, 1]]], axis=1)
    new = at + dt * v
    new[:, 1] %= pores.shape[1]
    new[:, 0] = np.clip(new[:, 0], 0, pores.shape[0] - 1.001)
    j = new.astype(int)
    allowed = pores[j[:, 0], j[:, 1]]
    return np.where(allowed[:, None], new, at)


def crowding(at):
    """The mean distance to the third neighbour."""
    distances, _ = cKDTree(at).query(at, k=4)
    return distances[:, 3].mean()


def grain_sizes(pores):
    depth = ndimage.distance_transform_edt(~pores)
    peaks = (ndimage.maximum_filter(depth, size=5) == depth) & (depth > 1.0)
    return np.histogram(depth[peaks], bins=8, range=(1.0, 9.0))[0]


def run(steps):
    rng = np.random.default_rng(10)
    fluxes, counts, sizes, near = [], [], [], []
    for k in range(steps):
        pores = medium(120, rng, 0.62 + 0.002 * k)
        open_pores, count = spanning(pores)
        p = np.linspace(1, 0, 120)[:, None] * np.ones(120)
        p = relax(open_pores, p)
        gy, gx = velocity(open_pores, p)
        at = np.argwhere(open_pores)[::15] + 0.5
        for _ in range(5):
            at = move(at, gy * 100, gx * 100, open_pores, 0.2)
        fluxes.append(gy[60].sum())
        counts.append(count)
        sizes.append(grain_sizes(pores))
        near.append(crowding(at))
    return {"fluxes": np.array(fluxes), "counts": np.array(counts), "sizes": np.array(sizes), "near": np.array(near)}
