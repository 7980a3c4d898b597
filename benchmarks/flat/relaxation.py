"""The potential around two plates: relaxation until it changes no more."""

import os

import numpy as np

n = 200
most = int(os.environ.get("STEPS", "6000"))
phi = np.zeros((n, n))
plates = np.zeros((n, n), dtype=bool)
plates[60:140, 70] = True
plates[60:140, 130] = True
value = np.zeros((n, n))
value[60:140, 70] = 1.0
value[60:140, 130] = -1.0

iteration = 0
change = 1.0
while change > 1e-7 and iteration < most:
    old = phi.copy()
    phi[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
    phi[plates] = value[plates]
    change = np.abs(phi - old).max()
    iteration += 1

ex, ey = np.gradient(-phi)
print(f"{iteration} iterations, change {change:.3e}, energy {0.5 * np.sum(ex**2 + ey**2):.8f}")
