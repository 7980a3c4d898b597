"""A star cluster: gravity with softening, leapfrog with a step that the accelerations set, centre-of-mass frame."""

from typing import NamedTuple

import numpy as np


class Bodies(NamedTuple):
    x: np.ndarray
    v: np.ndarray
    m: np.ndarray


def plummer(n, seed=5):
    rng = np.random.default_rng(seed)
    r = 1.0 / np.sqrt(rng.uniform(0.05, 0.95, n) ** (-2 / 3) - 1.0)
    direction = rng.normal(size=(n, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    v = 0.4 * rng.normal(size=(n, 3))
    return centred(Bodies(r[:, None] * direction, v, np.full(n, 1.0 / n)))


def centred(b):
    total = b.m.sum()
    x = b.x - (b.m[:, None] * b.x).sum(0) / total
    v = b.v - (b.m[:, None] * b.v).sum(0) / total
    return b._replace(x=x, v=v)


def acceleration(x, m, soft=0.05):
    d = x[None, :, :] - x[:, None, :]
    r2 = (d * d).sum(-1) + soft**2
    w = m / (r2 * np.sqrt(r2))
    return (w[:, :, None] * d).sum(axis=1)


def energy(b, soft=0.05):
    d = b.x[None] - b.x[:, None]
    r = np.sqrt((d**2).sum(-1) + soft**2)
    pair = np.triu(b.m[:, None] * b.m[None] / r, 1).sum()
    return 0.5 * (b.m * (b.v**2).sum(1)).sum() - pair


def time_step(a, eta=0.02, soft=0.05):
    return eta * np.sqrt(soft / np.linalg.norm(a, axis=1).max())


def leapfrog(b, a):
    dt = min(time_step(a), 0.01)
    half = b.v + 0.5 * dt * a
    x = b.x + dt * half
    a = acceleration(x, b.m)
    return Bodies(x, half + 0.5 * dt * a, b.m), a, dt


def run(steps):
    b = plummer(256)
    a = acceleration(b.x, b.m)
    t, energies = 0.0, []
    for k in range(steps):
        b, a, dt = leapfrog(b, a)
        t += dt
        if k % 5 == 0:
            energies.append(energy(b))
            b = centred(b)
    return {"x": b.x, "v": b.v, "t": np.float64(t), "energies": np.array(energies)}
