"""The Ising model by checkerboard Metropolis, magnetisation and energy in histories, a quench half-way."""

import numpy as np


class Ising:
    def __init__(self, n=256, T=2.6, seed=40):
        self.rng = np.random.default_rng(seed)
        self.spins = self.rng.choice([-1, 1], size=(n, n)).astype(np.int8)
        i, j = np.indices((n, n))
        self.colour = (i + j) % 2 == 0
        self.T = T
        self.m, self.e = [], []

    def field(self):
        s = self.spins
        return np.roll(s, 1, 0) + np.roll(s, -1, 0) + np.roll(s, 1, 1) + np.roll(s, -1, 1)

    def sweep(self):
        for mask in (self.colour, ~self.colour):
            dE = 2 * self.spins * self.field()
            flip = self.rng.random(self.spins.shape) < np.exp(-np.maximum(dE, 0) / self.T)
            self.spins = np.where(mask & flip, -self.spins, self.spins)
        self.m.append(abs(self.spins.mean()))
        self.e.append(-(self.spins * self.field()).mean() / 2)


def autocorrelation(x, most=10):
    x = x - x.mean()
    var = np.dot(x, x)
    return np.array([np.dot(x[: x.size - k], x[k:]) / var for k in range(min(most, x.size - 1))])


def structure(spins):
    f = np.fft.fft2(spins - spins.mean())
    power = np.abs(f) ** 2 / spins.size
    k = np.hypot(*np.meshgrid(*(np.fft.fftfreq(n) for n in spins.shape), indexing="ij"))
    which = np.digitize(k, np.linspace(0, 0.5, 16)) - 1
    total = np.bincount(which.ravel(), power.ravel(), minlength=17)
    count = np.bincount(which.ravel(), minlength=17)
    return total / np.maximum(count, 1)


def run(steps):
    model = Ising()
    for k in range(steps):
        if k == steps // 2:
            model.T = 1.5
        model.sweep()
    m = np.array(model.m)
    return {"spins": model.spins, "m": m, "e": np.array(model.e), "c": autocorrelation(m), "s": structure(model.spins)}
