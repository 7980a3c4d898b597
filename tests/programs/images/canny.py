"""Edges in the frames of a moving scene: Gaussian, Sobel, non-maximum suppression, hysteresis until nothing changes."""

import numpy as np
from scipy import ndimage


def frame(k, n=200):
    y, x = np.mgrid[:n, :n]
    image = 0.3 + 0.2 * np.sin(x / 15 + k / 10)
    image[(x - 60 - k) ** 2 + (y - 80) ** 2 < 900] = 0.9
    image[110:160, 40 + k : 120 + k] = 0.1
    noise = np.random.default_rng(k).normal(0, 0.03, image.shape)
    return image + noise


def gradient(image):
    smooth = ndimage.gaussian_filter(image, 1.5)
    gx = ndimage.sobel(smooth, axis=1)
    gy = ndimage.sobel(smooth, axis=0)
    return np.hypot(gx, gy), np.arctan2(gy, gx)


def thin(mag, angle):
    """Keep the ridges: a pixel stays if it is no less than both its neighbours along the gradient."""
    sector = np.round(angle / (np.pi / 4)).astype(int) % 4
    padded = np.pad(mag, 1)
    n, m = mag.shape
    offsets = [(0, 1), (1, 1), (1, 0), (1, -1)]
    keep = np.zeros(mag.shape, bool)
    for s, (dy, dx) in enumerate(offsets):
        ahead = padded[1 + dy : 1 + dy + n, 1 + dx : 1 + dx + m]
        behind = padded[1 - dy : 1 - dy + n, 1 - dx : 1 - dx + m]
        keep |= (sector == s) & (mag >= ahead) & (mag >= behind)
    return np.where(keep, mag, 0.0)


def hysteresis(ridge, low, high):
    strong = ridge > high
    weak = ridge > low
    while True:
        grown = ndimage.maximum_filter(strong.astype(np.uint8), size=3).astype(bool) & weak
        if np.array_equal(grown, strong):
            return strong
        strong = grown


def edges(image):
    mag, angle = gradient(image)
    ridge = thin(mag, angle)
    high = np.percentile(mag, 95)
    return hysteresis(ridge, 0.4 * high, high)


def run(steps):
    total = np.zeros((200, 200), int)
    counts = []
    for k in range(steps):
        found = edges(frame(k))
        total += found
        counts.append(int(found.sum()))
    return {"total": total, "counts": np.array(counts)}
