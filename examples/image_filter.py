"""Image filter: find the edges of noisy frames with `scipy.ndimage`.

The example shows SciPy's filters, a threshold that depends on the data, and a mask.

    python -m examples image_filter                                                    # plain NumPy and SciPy
    accel run --catalogue examples/catalogue.py examples image_filter        # accelerated

A pixel may lie exactly at the threshold. There a difference in the last place decides. accel reports such a
difference as "near a threshold".
"""

from __future__ import annotations

import numpy as np
from scipy import ndimage

STEPS = 300
"""Frames."""


def frame(number: int, size: int) -> np.ndarray:
    """Return a noisy picture of a disc that moves, shape (size, size), float64 between about 0 and 1."""
    noise = np.random.default_rng(number)
    y, x = np.mgrid[0:size, 0:size] / size
    disc = np.hypot(x - 0.3 - 0.002 * number, y - 0.5) < 0.2
    return 0.2 + 0.6 * disc + noise.normal(0.0, 0.05, (size, size))


def edges(image, sigma, strength):
    """Return where the edges of an image are, and how strong, shape as `image`; 0 elsewhere.

    sigma: width of the smoothing in pixels. strength: threshold in standard deviations of the gradient.
    """
    smooth = ndimage.gaussian_filter(image, sigma, mode="nearest")
    sharp = image + 0.5 * (smooth - ndimage.gaussian_filter(smooth, 2.0 * sigma, mode="nearest"))
    calm = ndimage.gaussian_filter(ndimage.median_filter(sharp, size=3), sigma)
    gradient = np.hypot(ndimage.sobel(calm, axis=0), ndimage.sobel(calm, axis=1))
    threshold = gradient.mean() + strength * gradient.std()
    return np.where(gradient > threshold, gradient, 0.0)


def run(steps: int = STEPS, size: int = 384) -> np.ndarray:
    """Return the sum of the edges of `steps` frames, shape (size, size)."""
    total = np.zeros((size, size))
    for number in range(steps):
        total += edges(frame(number, size), 1.5, 1.0)
    return total


def describe(total: np.ndarray) -> str:
    return f"edges: {np.count_nonzero(total)} pixels, sum {total.sum():.4f}"


if __name__ == "__main__":
    print(describe(run()))
