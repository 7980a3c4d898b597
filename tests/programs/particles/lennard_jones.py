"""Molecular dynamics: Lennard-Jones in a periodic box, velocity Verlet, a Langevin thermostat, histories in lists."""

import numpy as np


class Fluid:
    def __init__(self, side=7, density=0.7, temperature=1.2, seed=0):
        n = side**3
        self.box = (n / density) ** (1 / 3)
        grid = (np.arange(side) + 0.5) * self.box / side
        self.pos = np.stack(np.meshgrid(grid, grid, grid), -1).reshape(-1, 3)
        self.rng = np.random.default_rng(seed)
        self.vel = self.rng.normal(0.0, np.sqrt(temperature), (n, 3))
        self.vel -= self.vel.mean(axis=0)
        self.T = temperature
        self.force, self.potential = self.forces()
        self.history = {"kinetic": [], "potential": [], "pressure": []}

    def forces(self, cutoff=2.5):
        d = self.pos[:, None, :] - self.pos[None, :, :]
        d -= self.box * np.round(d / self.box)
        r2 = np.sum(d**2, axis=-1)
        np.fill_diagonal(r2, np.inf)
        near = r2 < cutoff**2
        inv6 = np.where(near, 1.0 / r2, 0.0) ** 3
        energy = 2.0 * np.sum(inv6**2 - inv6)
        strength = np.where(near, (48.0 * inv6**2 - 24.0 * inv6) / r2, 0.0)
        self.virial = np.sum(strength * np.where(near, r2, 0.0)) / 6
        return np.einsum("ij,ijk->ik", strength, d), energy

    def thermostat(self, dt, gamma=0.5):
        c = np.exp(-gamma * dt)
        kick = self.rng.standard_normal(self.vel.shape)
        self.vel = c * self.vel + np.sqrt((1 - c**2) * self.T) * kick

    def step(self, dt=0.004):
        self.vel += 0.5 * dt * self.force
        self.pos = (self.pos + dt * self.vel) % self.box
        self.force, self.potential = self.forces()
        self.vel += 0.5 * dt * self.force
        self.thermostat(dt)
        kinetic = 0.5 * np.sum(self.vel**2)
        self.history["kinetic"].append(kinetic)
        self.history["potential"].append(self.potential)
        self.history["pressure"].append((2 * kinetic / 3 + self.virial) / self.box**3)


def pair_correlation(pos, box, bins=60):
    d = pos[:, None] - pos[None]
    d -= box * np.round(d / box)
    r = np.sqrt((d**2).sum(-1))[np.triu_indices(len(pos), 1)]
    counts, edges = np.histogram(r, bins=bins, range=(0.0, box / 2))
    shells = 4 / 3 * np.pi * (edges[1:] ** 3 - edges[:-1] ** 3)
    return counts / shells * 2 * box**3 / len(pos) ** 2


def run(steps):
    fluid = Fluid()
    for _ in range(steps):
        fluid.step()
    g = pair_correlation(fluid.pos, fluid.box)
    return {"pos": fluid.pos, "vel": fluid.vel, "g": g, **{k: np.array(v) for k, v in fluid.history.items()}}
