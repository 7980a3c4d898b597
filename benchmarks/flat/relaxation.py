"""The potential around two plates: relaxation until it changes no more."""

import os

import numpy as np

n = 400
most = int(os.environ.get("STEPS", "20000"))
phi = np.zeros((n, n))
plates = np.zeros((n, n), dtype=bool)
plates[120:280, 140] = True
plates[120:280, 260] = True
value = np.zeros((n, n))
value[120:280, 140] = 1.0
value[120:280, 260] = -1.0

iteration = 0
change = 1.0
while change > 1e-12 and iteration < most:
    old = phi.copy()
    phi[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
    phi[plates] = value[plates]
    change = np.abs(phi - old).max()
    iteration += 1

ex, ey = np.gradient(-phi)
print(f"{iteration} iterations, change {change:.3e}, energy {0.5 * np.sum(ex**2 + ey**2):.8f}")
