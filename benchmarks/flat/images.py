"""Frames of a film: denoise, sharpen, find the bright spot, keep the statistics of each."""

import os

import numpy as np
from scipy import ndimage

frames_to_do = int(os.environ.get("STEPS", "1000"))
height, width = 240, 320
yy, xx = np.mgrid[0:height, 0:width]


def frame_at(k):
    cx, cy = width / 2 + 60 * np.cos(0.05 * k), height / 2 + 40 * np.sin(0.05 * k)
    spot = 200 * np.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / 200.0)
    grain = 10 * np.sin(0.7 * xx + 0.3 * k) * np.cos(0.9 * yy - 0.2 * k)
    return np.clip(spot + grain + 20, 0, 255)


background = np.zeros((height, width))
track = []
results = {"mean": [], "contrast": []}
for k in range(frames_to_do):
    image = frame_at(k)
    background = 0.95 * background + 0.05 * image
    clean = ndimage.gaussian_filter(image - background, 1.5)
    sharp = clean + 0.5 * (clean - ndimage.uniform_filter(clean, 7))
    edges = np.hypot(ndimage.sobel(sharp, 0), ndimage.sobel(sharp, 1))
    mask = sharp > sharp.mean() + 2 * sharp.std()
    weight = np.where(mask, sharp, 0.0)
    total = weight.sum() + 1e-12
    track.append((float((weight * xx).sum() / total), float((weight * yy).sum() / total)))
    results["mean"].append(float(image.mean()))
    results["contrast"].append(float(edges.max() - edges.min()))

print(len(track), "frames; last spot at (%.4f, %.4f)" % track[-1])
print("mean %.6f, contrast %.6f" % (np.mean(results["mean"]), np.mean(results["contrast"])))
