"""Charged particles in a trap with drag, with the history of the run in lists."""

import os

import numpy as np

rng = np.random.default_rng(1)
count = 300
steps = int(os.environ.get("STEPS", "3000"))
dt = 0.01
pos = rng.normal(size=(count, 3))
vel = np.zeros_like(pos)
charge = rng.uniform(0.5, 1.5, count)

energies = []
centres = []
spread = []
for step in range(steps):
    delta = pos[:, None, :] - pos[None, :, :]
    dist2 = (delta**2).sum(axis=-1) + 1.0
    inv = charge[:, None] * charge[None, :] / dist2**1.5
    np.fill_diagonal(inv, 0.0)
    force = (inv[:, :, None] * delta).sum(axis=1) / count - pos
    vel += dt * (force - 0.1 * vel)
    pos += dt * vel
    energies.append(0.5 * np.sum(vel**2) + 0.5 * np.sum(pos**2))
    centres.append(pos.mean(axis=0))
    spread.append(float(pos.std()))

print(len(energies), f"{energies[0]:.8f} {energies[-1]:.8f}", f"{spread[-1]:.8f}")
print("centre", np.round(np.array(centres)[-1], 8))
