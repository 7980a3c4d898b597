"""Percolation: clusters of random lattices by ndimage.label, their moments, and invasion by a front."""

import os

import numpy as np
from scipy import ndimage

steps = int(os.environ.get("STEPS", "90"))

rng = np.random.default_rng(9)
n = 300


def moments(open_cells):
    labels, count = ndimage.label(open_cells)
    sizes = np.bincount(labels.ravel())[1:]
    spans = np.intersect1d(labels[0], labels[-1])
    spanning = bool((spans > 0).any())
    largest = sizes.max()
    rest = (sizes.astype(float) ** 2).sum() - float(largest) ** 2
    return count, largest / open_cells.size, rest / open_cells.sum(), spanning


def invade(resistance, rounds):
    filled = np.zeros(resistance.shape, dtype=bool)
    filled[0] = True
    limit = 0.3
    for _ in range(rounds):
        near = ndimage.binary_dilation(filled) & ~filled
        taken = near & (resistance < limit)
        if not taken.any():
            limit += 0.02
        filled |= taken
    return filled, limit


for k in range(steps):
    p = 0.55 + 0.09 * k / steps
    field = rng.random((n, n))
    count, largest, susceptibility, spanning = moments(field < p)
    filled, limit = invade(field, 40)
    if k % 10 == 0:
        print(
            f"p={p:.4f} {count:6d} {largest:.8f} {susceptibility:.6f} {spanning} filled {filled.mean():.7f} {limit:.2f}"
        )
