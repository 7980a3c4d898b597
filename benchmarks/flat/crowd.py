"""Pedestrians leave a room by two doors: social forces, and a panic that spreads."""

import os

import numpy as np

steps = int(os.environ.get("STEPS", "900"))


class Crowd:
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.x = rng.uniform([1, 1], [19, 14], (count, 2))
        self.v = np.zeros((count, 2))
        self.speed = rng.normal(1.3, 0.2, count).clip(0.6, 2.2)
        self.panic = np.zeros(count)
        self.panic[rng.integers(count)] = 1.0
        self.inside = np.ones(count, bool)
        self.left = []
        self.doors = np.array([[20.0, 5.0], [0.0, 10.0]])

    def desired(self):
        to_doors = self.doors[None] - self.x[:, None]
        distance = np.sqrt((to_doors**2).sum(axis=-1))
        best = np.argmin(distance, axis=1)
        rows = np.arange(len(self.x))
        return to_doors[rows, best] / np.maximum(distance[rows, best], 1e-9)[:, None]

    def forces(self):
        d = self.x[:, None] - self.x[None]
        r = np.sqrt((d**2).sum(axis=-1)) + np.eye(len(self.x))
        push = np.where(r < 2.0, 3.0 * np.exp((0.5 - r) / 0.3), 0.0) * self.inside[None]
        np.fill_diagonal(push, 0.0)
        social = (push[..., None] * d / r[..., None]).sum(axis=1)
        walls = np.zeros_like(self.x)
        walls[:, 0] = 2 * np.exp((0.3 - self.x[:, 0]) / 0.1) - 2 * np.exp((self.x[:, 0] - 19.7) / 0.1)
        walls[:, 1] = 2 * np.exp((0.3 - self.x[:, 1]) / 0.1) - 2 * np.exp((self.x[:, 1] - 14.7) / 0.1)
        at_door = (np.abs(self.x[:, None] - self.doors[None]).max(axis=-1) < 1.0).any(axis=1)
        walls[at_door] = 0.0
        return social + np.clip(walls, -20, 20), r

    def step(self, dt, time):
        social, r = self.forces()
        near = (r < 1.5) & self.inside[None] & self.inside[:, None]
        neighbours = np.maximum(near.sum(axis=1), 1)
        self.panic += dt * (0.4 * ((near * self.panic[None]).sum(axis=1) / neighbours - self.panic) + 0.01 * self.panic)
        self.panic = np.clip(self.panic, 0, 1)
        wanted = self.desired() * (self.speed * (1 + self.panic))[:, None]
        self.v += dt * ((wanted - self.v) / 0.5 + social)
        fast = np.sqrt((self.v**2).sum(axis=1))
        too_fast = fast > 3.0
        self.v[too_fast] *= (3.0 / fast[too_fast])[:, None]
        self.x += dt * self.v * self.inside[:, None]
        out = self.inside & ((self.x[:, 0] < 0) | (self.x[:, 0] > 20))
        for who in np.flatnonzero(out):
            self.left.append((round(time, 2), int(who)))
        self.inside &= ~out


crowd = Crowd(220, 4)
for n in range(steps):
    crowd.step(0.02, n * 0.02)
    if n % 150 == 0:
        print(f"{n * 0.02:6.2f} s: {crowd.inside.sum()} inside, panic {crowd.panic.mean():.8f}")
print(len(crowd.left), crowd.left[:3])
