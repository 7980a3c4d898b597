"""The potential around two plates: relaxation until it changes no more."""

import os

import numba
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


@numba.njit(cache=True)
def relaxed(old, plates, value):
    phi, change = old.copy(), 0.0
    for j in range(1, n - 1):
        for i in range(1, n - 1):
            phi[j, i] = 0.25 * (old[j - 1, i] + old[j + 1, i] + old[j, i - 1] + old[j, i + 1])
            if plates[j, i]:
                phi[j, i] = value[j, i]
            change = max(change, abs(phi[j, i] - old[j, i]))
    return phi, change


iteration = 0
change = 1.0
while change > 1e-12 and iteration < most:
    phi, change = relaxed(phi, plates, value)
    iteration += 1

ex, ey = np.gradient(-phi)
print(f"{iteration} iterations, change {change:.3e}, energy {0.5 * np.sum(ex**2 + ey**2):.8f}")
