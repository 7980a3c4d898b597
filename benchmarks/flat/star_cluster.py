"""A star cluster: direct summation, leapfrog, the time step chosen by the accelerations, a log file of energies."""

import logging
import os
import sys
from dataclasses import dataclass, field

import numpy as np

steps = int(os.environ.get("STEPS", "500"))

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
log = logging.getLogger("cluster")


@dataclass
class Cluster:
    position: np.ndarray
    velocity: np.ndarray
    mass: np.ndarray
    softening: float = 0.05
    time: float = 0.0
    energies: list = field(default_factory=list)

    def accelerations(self):
        d = self.position[None, :, :] - self.position[:, None, :]
        r2 = (d**2).sum(axis=-1) + self.softening**2
        w = self.mass[None, :] * r2**-1.5
        return np.einsum("ij,ijk->ik", w, d)

    def energy(self):
        d = self.position[None, :, :] - self.position[:, None, :]
        r = np.sqrt((d**2).sum(axis=-1) + self.softening**2)
        kinetic = 0.5 * np.sum(self.mass * (self.velocity**2).sum(axis=1))
        m = self.mass[:, None] * self.mass[None, :]
        return kinetic - 0.5 * (np.sum(m / r) - np.sum(self.mass**2) / self.softening)


def evolve(cluster, steps, eta=0.02):
    a = cluster.accelerations()
    for count in range(steps):
        dt = eta * np.sqrt(cluster.softening / np.sqrt((a**2).sum(axis=1)).max())
        cluster.velocity += 0.5 * dt * a
        cluster.position += dt * cluster.velocity
        a = cluster.accelerations()
        cluster.velocity += 0.5 * dt * a
        cluster.time += dt
        if count % 100 == 0:
            e = cluster.energy()
            cluster.energies.append(e)
            log.info("t = %.6f, E = %.8f", cluster.time, e)


rng = np.random.default_rng(3)
n = 300
r = 1 / np.sqrt(rng.uniform(0.05, 1, n) ** (-2 / 3) - 1 + 1e-3)
direction = rng.normal(size=(n, 3))
direction /= np.linalg.norm(direction, axis=1)[:, None]
cluster = Cluster(np.minimum(r, 3)[:, None] * direction, 0.4 * rng.normal(size=(n, 3)), np.full(n, 1 / n))
evolve(cluster, steps)
print(f"{cluster.time:.6f} {cluster.position.std():.9f} {cluster.energies[-1]:.9f}")
