"""Frames of a film: denoise, sharpen, find the bright spot, keep the statistics of each."""

import os

import numba
import numpy as np

frames_to_do = int(os.environ.get("STEPS", "1000"))
height, width = 240, 320
yy, xx = np.mgrid[0:height, 0:width]


def frame_at(k):
    cx, cy = width / 2 + 60 * np.cos(0.05 * k), height / 2 + 40 * np.sin(0.05 * k)
    spot = 200 * np.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / 200.0)
    grain = 10 * np.sin(0.7 * xx + 0.3 * k) * np.cos(0.9 * yy - 0.2 * k)
    return np.clip(spot + grain + 20, 0, 255)


GAUSS = np.exp(-0.5 * (np.arange(-6, 7) / 1.5) ** 2)
GAUSS /= GAUSS.sum()
BOX = np.full(7, 1 / 7)
RISE = np.array([-1.0, 0.0, 1.0])
FLAT = np.array([1.0, 2.0, 1.0])


@numba.njit(cache=True)
def mirrored(i, size):
    return -i - 1 if i < 0 else 2 * size - 1 - i if i >= size else i


@numba.njit(cache=True)
def along(image, weights, axis):
    ny, nx = image.shape
    half = len(weights) // 2
    made = np.zeros_like(image)
    for k in range(len(weights)):
        weight, by = weights[k], k - half
        first, last = max(0, -by), min(nx, nx - by)
        for j in range(ny):
            if axis == 0:
                other = mirrored(j + by, ny)
                for i in range(nx):
                    made[j, i] += weight * image[other, i]
            else:
                for i in range(first, last):
                    made[j, i] += weight * image[j, i + by]
                for i in range(first):
                    made[j, i] += weight * image[j, mirrored(i + by, nx)]
                for i in range(last, nx):
                    made[j, i] += weight * image[j, mirrored(i + by, nx)]
    return made


background = np.zeros((height, width))
track = []
results = {"mean": [], "contrast": []}
for k in range(frames_to_do):
    image = frame_at(k)
    background = 0.95 * background + 0.05 * image
    clean = along(along(image - background, GAUSS, 0), GAUSS, 1)
    sharp = clean + 0.5 * (clean - along(along(clean, BOX, 0), BOX, 1))
    edges = np.hypot(along(along(sharp, RISE, 0), FLAT, 1), along(along(sharp, RISE, 1), FLAT, 0))
    mask = sharp > sharp.mean() + 2 * sharp.std()
    weight = np.where(mask, sharp, 0.0)
    total = weight.sum() + 1e-12
    track.append((float((weight * xx).sum() / total), float((weight * yy).sum() / total)))
    results["mean"].append(float(image.mean()))
    results["contrast"].append(float(edges.max() - edges.min()))

print(len(track), "frames; last spot at (%.4f, %.4f)" % track[-1])
print("mean %.6f, contrast %.6f" % (np.mean(results["mean"]), np.mean(results["contrast"])))
