"""Smoothed particles: a dam break in two dimensions; cell lists, cKDTree neighbours, pairs and np.add.at."""

import numpy as np
from scipy.spatial import cKDTree

G = np.array([0.0, -9.81])


def kernel(r, h):
    q = r / h
    a = 10 / (7 * np.pi * h**2)
    return a * np.where(q < 1, 1 - 1.5 * q**2 + 0.75 * q**3, np.where(q < 2, 0.25 * (2 - q) ** 3, 0.0))


def kernel_slope(r, h):
    q = r / h
    a = 10 / (7 * np.pi * h**3)
    return a * np.where(q < 1, -3 * q + 2.25 * q**2, np.where(q < 2, -0.75 * (2 - q) ** 2, 0.0))


class Fluid:
    rho0 = 1000.0
    c0 = 30.0

    def __init__(self, n=24, size=1.0):
        g = (np.arange(n) + 0.5) / n * 0.5
        x, y = np.meshgrid(g, g)
        self.x = np.c_[x.ravel(), y.ravel()]
        self.v = np.zeros_like(self.x)
        self.dx = g[1] - g[0]
        self.h = 1.3 * self.dx
        self.m = self.rho0 * self.dx**2
        self.rho = np.full(len(self.x), self.rho0)
        self.t = 0.0
        self.size = size
        self.diagnostics = {"t": [], "ekin": [], "front": []}

    def neighbours(self):
        tree = cKDTree(self.x)
        pairs = tree.query_pairs(2 * self.h, output_type="ndarray")
        return pairs[:, 0], pairs[:, 1]

    def density(self, i, j):
        r = np.linalg.norm(self.x[i] - self.x[j], axis=1)
        w = self.m * kernel(r, self.h)
        rho = np.full(len(self.x), self.m * kernel(0.0, self.h))
        np.add.at(rho, i, w)
        np.add.at(rho, j, w)
        self.rho = rho

    def pressure(self):
        B = self.rho0 * self.c0**2 / 7
        return B * np.maximum((self.rho / self.rho0) ** 7 - 1, 0)

    def forces(self, i, j, alpha=0.1):
        d = self.x[i] - self.x[j]
        r = np.sqrt((d**2).sum(axis=1)) + 1e-12
        p = self.pressure()
        dv = self.v[i] - self.v[j]
        vr = np.einsum("ij,ij->i", dv, d)
        mu = self.h * vr / (r**2 + 0.01 * self.h**2)
        visc = np.where(vr < 0, -alpha * self.c0 * mu / (0.5 * (self.rho[i] + self.rho[j])), 0)
        s = p[i] / self.rho[i] ** 2 + p[j] / self.rho[j] ** 2 + visc
        f = -(self.m * s * kernel_slope(r, self.h) / r)[:, None] * d
        a = np.tile(G, (len(self.x), 1))
        np.add.at(a, i, f)
        np.subtract.at(a, j, f)
        return a

    def walls(self):
        for k in range(2):
            low = self.x[:, k] < 0
            self.x[low, k] *= -1
            self.v[low, k] *= -0.5
        high = self.x[:, 0] > self.size
        self.x[high, 0] = 2 * self.size - self.x[high, 0]
        self.v[high, 0] *= -0.5

    def timestep(self):
        vmax = np.sqrt((self.v**2).sum(axis=1).max())
        return 0.25 * self.h / (self.c0 + vmax)

    def step(self):
        i, j = self.neighbours()
        self.density(i, j)
        a = self.forces(i, j)
        dt = self.timestep()
        self.v += dt * a
        self.x += dt * self.v
        self.walls()
        self.t += dt
        self.record()

    def record(self):
        self.diagnostics["t"].append(self.t)
        self.diagnostics["ekin"].append(0.5 * self.m * np.sum(self.v**2))
        self.diagnostics["front"].append(self.x[:, 0].max())


def run(steps):
    f = Fluid()
    for k in range(steps):
        f.step()
        if k % 10 == 9:
            print("t=%.4f" % f.t, "Ekin=%.3f" % f.diagnostics["ekin"][-1])
    return {"x": f.x, "v": f.v, "rho": f.rho, **{k: np.array(v) for k, v in f.diagnostics.items()}}
