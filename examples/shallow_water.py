"""Shallow water on a periodic square: a wave spreads from a bump in the middle.

The example shows a time step made of stencils (`np.roll`), with the state in the attributes of an object.

    python -m examples shallow_water                                                   # plain NumPy
    accel run --catalogue examples/catalogue.py examples shallow_water       # accelerated

`ShallowWater.step` is compiled as one program. It reads `self.h`, `self.u` and `self.v`, and writes them.
"""

from __future__ import annotations

import numpy as np

STEPS = 1000
GRAVITY = 9.81
"""m s-2"""


class ShallowWater:
    """The state: height h [m] and velocities u, v [m s-1], each of shape (size, size), float64."""

    def __init__(self, size: int, spacing: float = 1000.0, depth: float = 100.0) -> None:
        """size: cells on a side. spacing: width of a cell [m]. depth: of the water at rest [m]."""
        self.spacing = spacing
        self.drag = 1e-6
        self.dt = 0.4 * spacing / np.sqrt(2.0 * GRAVITY * depth)
        y, x = np.mgrid[0:size, 0:size] / size - 0.5
        self.coriolis = 1e-4 * (1.0 + 0.2 * y)
        self.h = depth + 5.0 * np.exp(-200.0 * (x**2 + y**2))
        self.u = np.zeros((size, size))
        self.v = np.zeros((size, size))

    def ddx(self, f):
        return (np.roll(f, -1, axis=1) - np.roll(f, 1, axis=1)) / (2.0 * self.spacing)

    def ddy(self, f):
        return (np.roll(f, -1, axis=0) - np.roll(f, 1, axis=0)) / (2.0 * self.spacing)

    def smooth(self, f):
        around = np.roll(f, 1, axis=0) + np.roll(f, -1, axis=0) + np.roll(f, 1, axis=1) + np.roll(f, -1, axis=1)
        return f + 0.02 * (around - 4.0 * f)

    def step(self) -> None:
        """Advance the state by `dt`: the velocities first, then the height with the new velocities."""
        h, u, v = self.h, self.u, self.v
        du = self.coriolis * v - GRAVITY * self.ddx(h) - u * self.ddx(u) - v * self.ddy(u) - self.drag * u
        dv = -self.coriolis * u - GRAVITY * self.ddy(h) - u * self.ddx(v) - v * self.ddy(v) - self.drag * v
        u = self.smooth(u + self.dt * du)
        v = self.smooth(v + self.dt * dv)
        self.h = h - self.dt * (self.ddx(h * u) + self.ddy(h * v))
        self.u, self.v = u, v


def run(steps: int = STEPS, size: int = 512) -> np.ndarray:
    """Return the height after `steps` steps, shape (size, size) [m]."""
    water = ShallowWater(size)
    for _ in range(steps):
        water.step()
    return water.h


def describe(height: np.ndarray) -> str:
    return f"height: lowest {height.min():.6f} m, highest {height.max():.6f} m, mean {height.mean():.6f} m"


if __name__ == "__main__":
    print(describe(run()))
