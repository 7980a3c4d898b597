"""An ensemble Kalman filter on Lorenz 96, with inflation and localization, against a hidden truth."""

import numpy as np


def lorenz96(x, forcing=8.0):
    return (np.roll(x, -1, axis=-1) - np.roll(x, 2, axis=-1)) * np.roll(x, 1, axis=-1) - x + forcing


def rk4(x, dt, f=lorenz96):
    k1 = f(x)
    k2 = f(x + 0.5 * dt * k1)
    k3 = f(x + 0.5 * dt * k2)
    k4 = f(x + dt * k3)
    return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def gaspari_cohn(r):
    r = np.abs(r)
    near = 1 - 5 / 3 * r**2 + 5 / 8 * r**3 + 0.5 * r**4 - 0.25 * r**5
    far = 4 - 5 * r + 5 / 3 * r**2 + 5 / 8 * r**3 - 0.5 * r**4 + r**5 / 12 - 2 / (3 * np.maximum(r, 1e-9))
    return np.where(r < 1, near, np.where(r < 2, far, 0.0))


class Filter:
    def __init__(self, n=120, members=60, every=2, seed=11):
        self.rng = np.random.default_rng(seed)
        self.truth = 8.0 + self.rng.standard_normal(n)
        self.ens = 8.0 + self.rng.standard_normal((members, n))
        self.observed = np.arange(0, n, every)
        d = np.abs(np.arange(n)[:, None] - np.arange(n)[None])
        self.loc = gaspari_cohn(np.minimum(d, n - d) / 6.0)
        self.sigma = 0.5
        self.rmse, self.spread = [], []

    def forecast(self, dt=0.01, inner=5):
        for _ in range(inner):
            self.truth = rk4(self.truth, dt)
            self.ens = rk4(self.ens, dt)

    def analyse(self, inflation=1.04):
        mean = self.ens.mean(axis=0)
        self.ens = mean + inflation * (self.ens - mean)
        a = self.ens - mean
        cov = self.loc * (a.T @ a) / (len(a) - 1)
        o = self.observed
        ph = cov[:, o]
        s = ph[o] + self.sigma**2 * np.eye(o.size)
        y = self.truth[o] + self.sigma * self.rng.standard_normal(o.size)
        perturbed = y + self.sigma * self.rng.standard_normal((len(a), o.size))
        gain = np.linalg.solve(s, ph.T).T
        self.ens = self.ens + (perturbed - self.ens[:, o]) @ gain.T

    def cycle(self):
        self.forecast()
        self.analyse()
        self.rmse.append(np.sqrt(np.mean((self.ens.mean(0) - self.truth) ** 2)))
        self.spread.append(self.ens.std(axis=0, ddof=1).mean())


def run(steps):
    f = Filter()
    for _ in range(steps):
        f.cycle()
    return {"ens": f.ens, "truth": f.truth, "rmse": np.array(f.rmse), "spread": np.array(f.spread)}
