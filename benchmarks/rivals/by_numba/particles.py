"""Charged particles in a trap with drag, with the history of the run in lists."""

import os

import numba
import numpy as np

rng = np.random.default_rng(1)
count = 300
steps = int(os.environ.get("STEPS", "3000"))
dt = 0.01
pos = rng.normal(size=(count, 3))
vel = np.zeros_like(pos)
charge = rng.uniform(0.5, 1.5, count)


@numba.njit(cache=True)
def advance(pos, vel, charge, dt):
    count = len(pos)
    force = np.zeros_like(pos)
    for a in range(count):
        for b in range(count):
            if a != b:
                x, y, z = pos[a, 0] - pos[b, 0], pos[a, 1] - pos[b, 1], pos[a, 2] - pos[b, 2]
                inv = charge[a] * charge[b] / (x * x + y * y + z * z + 1.0) ** 1.5
                force[a, 0] += inv * x
                force[a, 1] += inv * y
                force[a, 2] += inv * z
    force = force / count - pos
    vel += dt * (force - 0.1 * vel)
    pos += dt * vel


energies = []
centres = []
spread = []
for step in range(steps):
    advance(pos, vel, charge, dt)
    energies.append(0.5 * np.sum(vel**2) + 0.5 * np.sum(pos**2))
    centres.append(pos.mean(axis=0))
    spread.append(float(pos.std()))

print(len(energies), f"{energies[0]:.8f} {energies[-1]:.8f}", f"{spread[-1]:.8f}")
print("centre", np.round(np.array(centres)[-1], 8))
