"""Transient heat in a plate with a hole, by linear triangles, an explicit scheme with lumped mass."""

import os

import numpy as np

steps = int(os.environ.get("STEPS", "6000"))


def mesh(n):
    x = np.linspace(0, 1, n)
    points = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    triangles = []
    for j in range(n - 1):
        for i in range(n - 1):
            a = j * n + i
            triangles.append((a, a + 1, a + n))
            triangles.append((a + 1, a + n + 1, a + n))
    triangles = np.array(triangles)
    centre = points[triangles].mean(axis=1)
    outside = np.hypot(centre[:, 0] - 0.5, centre[:, 1] - 0.5) > 0.2
    return points, triangles[outside]


class Plate:
    def __init__(self, n, conductivity):
        self.points, self.triangles = mesh(n)
        p = self.points[self.triangles]
        b = np.stack([p[:, 1, 1] - p[:, 2, 1], p[:, 2, 1] - p[:, 0, 1], p[:, 0, 1] - p[:, 1, 1]], axis=1)
        c = np.stack([p[:, 2, 0] - p[:, 1, 0], p[:, 0, 0] - p[:, 2, 0], p[:, 1, 0] - p[:, 0, 0]], axis=1)
        area = 0.5 * np.abs(b[:, 0] * c[:, 1] - b[:, 1] * c[:, 0])
        self.stiffness = conductivity * (b[:, :, None] * b[:, None, :] + c[:, :, None] * c[:, None, :])
        self.stiffness /= (4 * area)[:, None, None]
        self.mass = np.zeros(len(self.points))
        np.add.at(self.mass, self.triangles, np.repeat(area[:, None] / 3, 3, axis=1))
        self.mass[self.mass == 0] = 1.0
        self.temperature = np.zeros(len(self.points))
        self.left = self.points[:, 0] == 0
        self.right = self.points[:, 0] == 1
        self.history = []

    def residual(self, u):
        local = np.einsum("eij,ej->ei", self.stiffness, u[self.triangles])
        total = np.zeros_like(u)
        np.add.at(total, self.triangles, local)
        return total

    def step(self, dt, t):
        u = self.temperature
        u = u - dt * self.residual(u) / self.mass
        u[self.left] = 1.0 + 0.1 * np.sin(10 * t)
        u[self.right] = 0.0
        self.temperature = u
        self.history.append(u.mean())


plate = Plate(61, 1.0)
dt = 0.2 / 60**2
for k in range(steps):
    plate.step(dt, k * dt)
    if k % 500 == 0:
        print(f"{k:5d} mean {plate.temperature.mean():.10f} max {plate.temperature.max():.10f}")
print(f"{plate.temperature @ plate.mass:.10f} {sum(plate.history):.8f}")
