"""An image blurred and noisy is restored by total variation, with the primal-dual method of Chambolle and Pock."""

import argparse
import os

import numpy as np
from scipy.ndimage import gaussian_filter

steps = int(os.environ.get("STEPS", "700"))

parser = argparse.ArgumentParser()
parser.add_argument("--weight", type=float, default=0.03)
options = parser.parse_args()


def gradient(u):
    g = np.zeros((2, *u.shape))
    g[0, :-1] = u[1:] - u[:-1]
    g[1, :, :-1] = u[:, 1:] - u[:, :-1]
    return g


def divergence(p):
    d = np.zeros(p.shape[1:])
    d[:-1] += p[0, :-1]
    d[1:] -= p[0, :-1]
    d[:, :-1] += p[1, :, :-1]
    d[:, 1:] -= p[1, :, :-1]
    return d


def blur(u):
    return gaussian_filter(u, 2.0, mode="wrap")


def restore(seen, weight, iterations):
    u, bar = seen.copy(), seen.copy()
    p, q = np.zeros((2, *seen.shape)), np.zeros_like(seen)
    tau = sigma = 1 / np.sqrt(9.0)
    energies = []
    for k in range(iterations):
        p = p + sigma * gradient(bar)
        p /= np.maximum(1, np.sqrt((p**2).sum(axis=0)) / weight)
        q = (q + sigma * (blur(bar) - seen)) / (1 + sigma)
        before = u
        u = u - tau * (blur(q) - divergence(p))
        bar = 2 * u - before
        if k % 50 == 0:
            energy = weight * np.sqrt((gradient(u) ** 2).sum(axis=0)).sum() + 0.5 * ((blur(u) - seen) ** 2).sum()
            energies.append(energy)
            print(f"{k:4d} energy {energy:.8f}")
            if len(energies) > 1 and abs(energies[-1] - energies[-2]) < 1e-9 * energies[-1]:
                break
    return u, energies


rng = np.random.default_rng(5)
y, x = np.mgrid[0:256, 0:256] / 256
image = ((x - 0.3) ** 2 + (y - 0.4) ** 2 < 0.04) * 0.8 + (np.abs(x - 0.7) + np.abs(y - 0.6) < 0.15) * 0.5
seen = blur(image.astype(float)) + 0.02 * rng.normal(size=image.shape)
restored, energies = restore(seen, options.weight, steps)
print(f"error {np.sqrt(np.mean((restored - image) ** 2)):.9f}, before {np.sqrt(np.mean((seen - image) ** 2)):.9f}")
