"""Charged particles in a trap with drag, with the history of the run in lists."""

import os

import jax
import numpy as np
from jax import numpy as jnp

jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(1)
count = 300
steps = int(os.environ.get("STEPS", "3000"))
dt = 0.01
pos = rng.normal(size=(count, 3))
vel = np.zeros_like(pos)
charge = rng.uniform(0.5, 1.5, count)


@jax.jit
def advance(pos, vel):
    delta = pos[:, None, :] - pos[None, :, :]
    dist2 = (delta**2).sum(axis=-1) + 1.0
    inv = charge[:, None] * charge[None, :] / dist2**1.5
    inv = jnp.fill_diagonal(inv, 0.0, inplace=False)
    force = (inv[:, :, None] * delta).sum(axis=1) / count - pos
    vel = vel + dt * (force - 0.1 * vel)
    return pos + dt * vel, vel


energies = []
centres = []
spread = []
for step in range(steps):
    pos, vel = advance(pos, vel)
    energies.append(0.5 * np.sum(vel**2) + 0.5 * np.sum(pos**2))
    centres.append(pos.mean(axis=0))
    spread.append(float(pos.std()))

print(len(energies), f"{energies[0]:.8f} {energies[-1]:.8f}", f"{spread[-1]:.8f}")
print("centre", np.round(np.array(centres)[-1], 8))
