"""Flocking: boids with separation, alignment, cohesion, a predator, and walls."""

import numpy as np


class Vec:
    """Two components as arrays, as one writes them to keep formulas readable."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vec(self.x + other.x, self.y + other.y)

    def __sub__(self, other):
        return Vec(self.x - other.x, self.y - other.y)

    def __mul__(self, factor):
        return Vec(self.x * factor, self.y * factor)

    __rmul__ = __mul__

    @property
    def length(self):
        return np.hypot(self.x, self.y)

    def clipped(self, most):
        scale = np.minimum(1.0, most / np.maximum(self.length, 1e-12))
        return self * scale


class Flock:
    def __init__(self, n=300, seed=2):
        rng = np.random.RandomState(seed)
        self.pos = Vec(rng.rand(n) * 100, rng.rand(n) * 100)
        self.vel = Vec(rng.randn(n), rng.randn(n))
        self.hawk = Vec(np.float64(50.0), np.float64(50.0))
        self.scared = 0

    def neighbours(self, radius):
        dx = self.pos.x[:, None] - self.pos.x
        dy = self.pos.y[:, None] - self.pos.y
        r = np.hypot(dx, dy)
        return dx, dy, r, (r < radius) & (r > 0)

    def rules(self):
        dx, dy, r, near = self.neighbours(12.0)
        count = np.maximum(near.sum(1), 1)
        towards = Vec((near @ self.pos.x) / count, (near @ self.pos.y) / count) - self.pos
        along = Vec((near @ self.vel.x) / count, (near @ self.vel.y) / count) - self.vel
        close = near & (r < 3.0)
        apart = Vec(np.where(close, dx, 0).sum(1), np.where(close, dy, 0).sum(1))
        return 0.01 * towards + 0.06 * along + 0.05 * apart

    def flee(self, radius=15.0):
        away = self.pos - self.hawk
        fear = away.length < radius
        if fear.any():
            self.scared += 1
        push = np.where(fear, (radius - away.length) / radius, 0.0)
        return away.clipped(1.0) * push

    def walls(self, margin=10.0, turn=0.3):
        self.vel.x[self.pos.x < margin] += turn
        self.vel.x[self.pos.x > 100 - margin] -= turn
        self.vel.y[self.pos.y < margin] += turn
        self.vel.y[self.pos.y > 100 - margin] -= turn

    def step(self):
        self.vel = (self.vel + self.rules() + self.flee()).clipped(2.0)
        self.walls()
        self.pos = self.pos + self.vel
        centre = Vec(self.pos.x.mean(), self.pos.y.mean())
        self.hawk = self.hawk + (centre - self.hawk) * 0.03


def run(steps):
    flock = Flock()
    for _ in range(steps):
        flock.step()
    return {"x": flock.pos.x, "y": flock.pos.y, "vx": flock.vel.x, "scared": np.int64(flock.scared)}
