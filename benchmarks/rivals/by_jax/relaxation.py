"""The potential around two plates: relaxation until it changes no more."""

import os

import jax
import numpy as np
from jax import numpy as jnp

jax.config.update("jax_enable_x64", True)

n = 400
most = int(os.environ.get("STEPS", "20000"))
phi = np.zeros((n, n))
plates = np.zeros((n, n), dtype=bool)
plates[120:280, 140] = True
plates[120:280, 260] = True
value = np.zeros((n, n))
value[120:280, 140] = 1.0
value[120:280, 260] = -1.0


@jax.jit
def relaxed(old):
    phi = old.at[1:-1, 1:-1].set(0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]))
    phi = jnp.where(plates, value, phi)
    return phi, jnp.abs(phi - old).max()


iteration = 0
change = 1.0
while change > 1e-12 and iteration < most:
    phi, change = relaxed(phi)
    iteration += 1

ex, ey = np.gradient(-phi)
print(f"{iteration} iterations, change {change:.3e}, energy {0.5 * np.sum(ex**2 + ey**2):.8f}")
