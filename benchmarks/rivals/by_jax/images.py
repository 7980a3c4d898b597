"""Frames of a film: denoise, sharpen, find the bright spot, keep the statistics of each."""

import os

import jax
import numpy as np
from jax import numpy as jnp

jax.config.update("jax_enable_x64", True)

frames_to_do = int(os.environ.get("STEPS", "1000"))
height, width = 240, 320
yy, xx = np.mgrid[0:height, 0:width]


def frame_at(k):
    cx, cy = width / 2 + 60 * jnp.cos(0.05 * k), height / 2 + 40 * jnp.sin(0.05 * k)
    spot = 200 * jnp.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / 200.0)
    grain = 10 * jnp.sin(0.7 * xx + 0.3 * k) * jnp.cos(0.9 * yy - 0.2 * k)
    return jnp.clip(spot + grain + 20, 0, 255)


GAUSS = np.exp(-0.5 * (np.arange(-6, 7) / 1.5) ** 2)
GAUSS /= GAUSS.sum()
BOX = np.full(7, 1 / 7)
RISE = np.array([-1.0, 0.0, 1.0])
FLAT = np.array([1.0, 2.0, 1.0])


def along(image, weights, axis):
    half, size = len(weights) // 2, image.shape[axis]
    pads = [(half, half) if each == axis else (0, 0) for each in (0, 1)]
    padded = jnp.pad(image, pads, mode="symmetric")
    return sum(w * jax.lax.slice_in_dim(padded, k, k + size, axis=axis) for k, w in enumerate(weights))


@jax.jit
def numbers_of(background, k):
    image = frame_at(k)
    background = 0.95 * background + 0.05 * image
    clean = along(along(image - background, GAUSS, 0), GAUSS, 1)
    sharp = clean + 0.5 * (clean - along(along(clean, BOX, 0), BOX, 1))
    edges = jnp.hypot(along(along(sharp, RISE, 0), FLAT, 1), along(along(sharp, RISE, 1), FLAT, 0))
    mask = sharp > sharp.mean() + 2 * sharp.std()
    weight = jnp.where(mask, sharp, 0.0)
    total = weight.sum() + 1e-12
    spot = (weight * xx).sum() / total, (weight * yy).sum() / total
    return background, spot, image.mean(), edges.max() - edges.min()


background = np.zeros((height, width))
track = []
results = {"mean": [], "contrast": []}
for k in range(frames_to_do):
    background, spot, mean, contrast = numbers_of(background, k)
    track.append(tuple(map(float, spot)))
    results["mean"].append(float(mean))
    results["contrast"].append(float(contrast))

print(len(track), "frames; last spot at (%.4f, %.4f)" % track[-1])
print("mean %.6f, contrast %.6f" % (np.mean(results["mean"]), np.mean(results["contrast"])))
