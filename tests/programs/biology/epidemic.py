"""A stochastic epidemic on a map of towns: binomial draws, travel, vaccination, a lockdown that comes and goes."""

import numpy as np


class Epidemic:
    def __init__(self, towns=400, seed=21):
        self.rng = np.random.default_rng(seed)
        xy = self.rng.random((towns, 2))
        d = np.sqrt(((xy[:, None] - xy[None]) ** 2).sum(-1))
        travel = np.exp(-d / 0.05)
        np.fill_diagonal(travel, 0)
        self.travel = travel / travel.sum(axis=1, keepdims=True)
        self.N = self.rng.integers(1000, 50000, towns)
        self.S = self.N.copy()
        self.E, self.I, self.R = (np.zeros(towns, dtype=np.int64) for _ in range(3))
        self.I[:3] = 50
        self.S[:3] -= 50
        self.lockdown = False
        self.days = {"cases": [], "lockdown": []}

    def pressure(self):
        prevalence = self.I / self.N
        mixed = 0.85 * prevalence + 0.15 * self.travel @ prevalence
        beta = 0.15 if self.lockdown else 0.5
        return 1 - np.exp(-beta * mixed)

    def day(self):
        infected = self.rng.binomial(self.S, self.pressure())
        onset = self.rng.binomial(self.E, 0.25)
        healed = self.rng.binomial(self.I, 0.1)
        self.S -= infected
        self.E += infected - onset
        self.I += onset - healed
        self.R += healed
        share = self.I.sum() / self.N.sum()
        if share > 0.02:
            self.lockdown = True
        elif share < 0.005:
            self.lockdown = False
        self.days["cases"].append(int(infected.sum()))
        self.days["lockdown"].append(self.lockdown)


def growth(cases, window=7):
    smooth = np.convolve(cases, np.ones(window) / window, mode="valid")
    return np.diff(np.log(np.maximum(smooth, 1)))


def run(steps):
    e = Epidemic()
    for _ in range(steps):
        e.day()
    cases = np.array(e.days["cases"])
    return {"S": e.S, "R": e.R, "cases": cases, "r": growth(cases), "locked": np.array(e.days["lockdown"])}
