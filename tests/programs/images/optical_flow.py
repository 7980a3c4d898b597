"""Optical flow by Horn and Schunck over a sequence, warped coarse to fine, and corners by Harris."""

import numpy as np
from scipy.ndimage import convolve, gaussian_filter, map_coordinates, maximum_filter, zoom

MEAN = np.array([[1, 2, 1], [2, 0, 2], [1, 2, 1]]) / 12.0


def scene(k, n=128):
    y, x = np.mgrid[:n, :n].astype(float)
    return np.sin((x - 0.7 * k) / 9) * np.cos((y + 0.4 * k) / 7) + 0.4 * np.sin((x + y - k) / 5)


def derivatives(a, b):
    mean = 0.5 * (a + b)
    iy, ix = np.gradient(mean)
    return ix, iy, b - a


def horn_schunck(a, b, u, v, alpha=0.5, rounds=20):
    ix, iy, it = derivatives(a, b)
    for _ in range(rounds):
        um = convolve(u, MEAN, mode="nearest")
        vm = convolve(v, MEAN, mode="nearest")
        t = (ix * um + iy * vm + it) / (alpha**2 + ix**2 + iy**2)
        u = um - ix * t
        v = vm - iy * t
    return u, v


def warp(image, u, v):
    y, x = np.indices(image.shape)
    return map_coordinates(image, [y + v, x + u], order=1, mode="nearest")


def pyramid(a, b, levels=2):
    """Coarse flow first, then what is left of it on finer grids."""
    if levels == 0 or min(a.shape) < 32:
        zero = np.zeros_like(a)
        return horn_schunck(a, b, zero, zero.copy())
    small = [gaussian_filter(im, 1.0)[::2, ::2] for im in (a, b)]
    u, v = pyramid(*small, levels - 1)
    u, v = (2 * zoom(f, 2, order=1) for f in (u, v))
    moved = warp(b, u, v)
    du, dv = horn_schunck(a, moved, np.zeros_like(u), np.zeros_like(v))
    return u + du, v + dv


def corners(image, k=0.05, count=20):
    iy, ix = np.gradient(image)
    sxx, syy, sxy = (gaussian_filter(p, 2.0) for p in (ix * ix, iy * iy, ix * iy))
    response = sxx * syy - sxy**2 - k * (sxx + syy) ** 2
    peaks = (response == maximum_filter(response, size=7)) & (response > 0.01 * response.max())
    where = np.argwhere(peaks)
    best = np.argsort(-response[peaks], kind="stable")[:count]
    return where[best]


def run(steps):
    before = scene(0)
    flows = []
    for k in range(1, steps + 1):
        now = scene(k)
        u, v = pyramid(before, now)
        flows.append((np.median(u), np.median(v)))
        before = now
    return {"u": u, "v": v, "flows": np.array(flows), "corners": corners(before)}
