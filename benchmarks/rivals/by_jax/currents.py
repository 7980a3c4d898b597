"""Oil that drifts in given currents: hourly fields from a data set of 200 MB, and a history of 250 MB of what drifts."""

import os

import jax
import numpy as np
from jax import numpy as jnp

jax.config.update("jax_enable_x64", True)

NY, NX, HOURS, KEPT = 200, 320, 192, 480

steps = int(os.environ.get("STEPS", "6000"))
rng = np.random.default_rng(11)
y, x = np.meshgrid(np.linspace(0.0, 1.0, NY), np.linspace(0.0, 2.0, NX), indexing="ij")
phases = rng.uniform(0.0, 2 * np.pi, 4)
hours = np.arange(HOURS)[:, None, None]
currents = np.empty((2, HOURS, NY, NX))
currents[0] = 0.4 * np.sin(np.pi * y) * (1.0 + 0.5 * np.sin(2 * np.pi * hours / 12.4 + phases[0] + 3.0 * x))
currents[1] = 0.2 * np.cos(2.0 * np.pi * x + phases[1]) * np.sin(2 * np.pi * hours / 24.0 + phases[2] + y)

oil = np.exp(-(((x - 0.5) / 0.1) ** 2) - ((y - 0.4) / 0.1) ** 2)
history = np.zeros((KEPT, NY, NX))
spilled = oil.sum()
dt, dx, dy = 0.002, x[0, 1] - x[0, 0], y[1, 0] - y[0, 0]


@jax.jit
def drifted(oil, now, later, part):
    u, v = (1.0 - part) * now + part * later
    east = jnp.where(u > 0.0, oil - jnp.roll(oil, 1, 1), jnp.roll(oil, -1, 1) - oil) / dx
    north = jnp.where(v > 0.0, oil - jnp.roll(oil, 1, 0), jnp.roll(oil, -1, 0) - oil) / dy
    spread = jnp.roll(oil, 1, 1) + jnp.roll(oil, -1, 1) + jnp.roll(oil, 1, 0) + jnp.roll(oil, -1, 0) - 4.0 * oil
    oil = oil - dt * (u * east + v * north) + 0.01 * spread
    return oil * jnp.exp(-1e-4 * (1.0 + jnp.sqrt(u * u + v * v)))


for step in range(steps):
    hour, part = divmod(step * 0.05, 1.0)
    now = int(hour) % HOURS
    oil = drifted(oil, currents[:, now], currents[:, (now + 1) % HOURS], part)
    history[step % KEPT] = oil
    if step % 2000 == 0:
        print(f"step {step}: {100 * oil.sum() / spilled:.4f} % left, at most {oil.max():.6f}")

print(f"mean of what was kept {history.mean():.9f}, where it stayed longest {int(history.mean(axis=0).argmax())}")
