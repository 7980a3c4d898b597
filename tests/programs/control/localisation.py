"""A robot in a maze of beacons: a particle filter with systematic resampling when the weights degenerate."""

import numpy as np


class ParticleFilter:
    def __init__(self, n=5000, beacons=12, seed=13):
        self.rng = np.random.default_rng(seed)
        self.beacons = self.rng.uniform(0, 100, (beacons, 2))
        self.truth = np.array([50.0, 50.0, 0.0])
        self.p = np.column_stack([self.rng.uniform(0, 100, (n, 2)), self.rng.uniform(-np.pi, np.pi, n)])
        self.w = np.full(n, 1.0 / n)
        self.resampled = 0
        self.track, self.errors = [], []

    def predict(self, turn, dist):
        n = len(self.p)
        heading = self.p[:, 2] + turn + self.rng.normal(0, 0.05, n)
        d = dist + self.rng.normal(0, 0.3, n)
        self.p[:, 2] = (heading + np.pi) % (2 * np.pi) - np.pi
        self.p[:, 0] = np.clip(self.p[:, 0] + d * np.cos(heading), 0, 100)
        self.p[:, 1] = np.clip(self.p[:, 1] + d * np.sin(heading), 0, 100)

    def ranges(self, xy):
        return np.sqrt(((np.atleast_2d(xy)[:, None, :] - self.beacons[None]) ** 2).sum(-1))

    def update(self, z, sigma=3.0):
        r = self.ranges(self.p[:, :2])
        loglik = -0.5 * (((r - z) / sigma) ** 2).sum(axis=1)
        w = self.w * np.exp(loglik - loglik.max())
        self.w = w / w.sum()

    def resample(self):
        n = len(self.w)
        if 1.0 / np.sum(self.w**2) > n / 2:
            return
        positions = (self.rng.random() + np.arange(n)) / n
        index = np.searchsorted(np.cumsum(self.w), positions)
        self.p = self.p[np.minimum(index, n - 1)]
        self.w = np.full(n, 1.0 / n)
        self.resampled += 1

    def estimate(self):
        x, y = self.w @ self.p[:, :2]
        heading = np.arctan2(self.w @ np.sin(self.p[:, 2]), self.w @ np.cos(self.p[:, 2]))
        return np.array([x, y, heading])

    def move(self, k):
        turn, dist = 0.3 * np.sin(k / 5), 1.5
        self.truth[2] += turn
        self.truth[:2] += dist * np.array([np.cos(self.truth[2]), np.sin(self.truth[2])])
        self.truth[:2] = np.clip(self.truth[:2], 0, 100)
        z = self.ranges(self.truth[:2])[0] + self.rng.normal(0, 1.0, len(self.beacons))
        self.predict(turn, dist)
        self.update(z)
        self.resample()
        guess = self.estimate()
        self.track.append(guess)
        self.errors.append(np.hypot(*(guess[:2] - self.truth[:2])))


def run(steps):
    pf = ParticleFilter()
    for k in range(steps):
        pf.move(k)
    return {"p": pf.p, "track": np.array(pf.track), "errors": np.array(pf.errors), "resampled": np.int64(pf.resampled)}
