"""Lattice Boltzmann (D2Q9, BGK): a channel flow around a cylinder.

The example shows a function that takes and returns arrays, a short loop over directions, and boundary conditions
that are assigned in place through slices and a mask.

    python -m examples lattice_boltzmann                                               # plain NumPy
    accel run --catalogue examples/catalogue.py examples lattice_boltzmann   # accelerated

The recording unrolls the loop over the nine directions. The wall mask never changes, so accel folds it as a constant.
The step moves much memory and computes little. Where its program is slower than NumPy, accel takes the function back to
NumPy, and the report says so with both times (`speed.slower`).
"""

from __future__ import annotations

import numpy as np

STEPS = 1000
VELOCITIES = np.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])
WEIGHTS = np.array([4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36])
OPPOSITE = (0, 3, 4, 1, 2, 7, 8, 5, 6)


def equilibrium(density, ux, uy):
    """Return the equilibrium distribution, shape (9, ny, nx), of density and velocity, shape (ny, nx) each."""
    square = 1.5 * (ux**2 + uy**2)
    f = np.empty((9, *density.shape))
    for i, (cx, cy) in enumerate(VELOCITIES):
        along = 3.0 * (cx * ux + cy * uy)
        f[i] = WEIGHTS[i] * density * (1.0 + along + 0.5 * along**2 - square)
    return f


def step(f, wall, inflow, omega):
    """Return the distribution one step later, shape (9, ny, nx).

    wall: bool, shape (ny, nx), True inside the obstacle. inflow: velocity at the left edge. omega: relaxation rate.
    """
    density = f.sum(axis=0)
    ux = (f[1] + f[5] + f[8] - f[3] - f[6] - f[7]) / density
    uy = (f[2] + f[5] + f[6] - f[4] - f[7] - f[8]) / density
    ux[:, 0], uy[:, 0], density[:, 0] = inflow, 0.0, 1.0
    feq = equilibrium(density, ux, uy)
    after = f + omega * (feq - f)
    after[:, :, 0] = feq[:, :, 0]
    bounced = f[list(OPPOSITE)]
    after = np.where(wall, bounced, after)
    moved = np.empty_like(after)
    for i, (cx, cy) in enumerate(VELOCITIES):
        moved[i] = np.roll(after[i], (cy, cx), axis=(0, 1))
    moved[:, :, -1] = moved[:, :, -2]
    return moved


def run(steps: int = STEPS, size: int = 120) -> np.ndarray:
    """Return the speed of the flow after `steps` steps, shape (size, 3 * size)."""
    ny, nx = size, 3 * size
    y, x = np.mgrid[0:ny, 0:nx]
    wall = (x - nx / 5) ** 2 + (y - ny / 2 - 1) ** 2 < (ny / 9) ** 2
    inflow = 0.06 * (1.0 + 1e-3 * np.sin(2 * np.pi * np.arange(ny) / ny))
    f = equilibrium(np.ones((ny, nx)), np.full((ny, nx), 0.06), np.zeros((ny, nx)))
    for _ in range(steps):
        f = step(f, wall, inflow, 1.7)
    density = f.sum(axis=0)
    momentum = np.tensordot(VELOCITIES.T.astype(float), f, axes=1)
    return np.hypot(*momentum) / density


def describe(speed: np.ndarray) -> str:
    return f"speed: mean {speed.mean():.6f}, highest {speed.max():.6f} lattice units"


if __name__ == "__main__":
    print(describe(run()))
