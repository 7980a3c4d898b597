"""A network of Izhikevich neurons: spikes, synapses with plasticity, delays in a ring buffer."""

import numpy as np


class Network:
    def __init__(self, exc=800, inh=200, seed=4):
        rng = self.rng = np.random.default_rng(seed)
        n = self.n = exc + inh
        r = rng.random(n)
        is_exc = np.arange(n) < exc
        self.a = np.where(is_exc, 0.02, 0.02 + 0.08 * r)
        self.b = np.where(is_exc, 0.2, 0.25 - 0.05 * r)
        self.c = np.where(is_exc, -65 + 15 * r**2, -65.0)
        self.d = np.where(is_exc, 8 - 6 * r**2, 2.0)
        self.S = np.where(is_exc[None, :], 0.5 * rng.random((n, n)), -rng.random((n, n)))
        self.drive = np.where(is_exc, 5.0, 2.0)
        self.v = -65.0 * np.ones(n)
        self.u = self.b * self.v
        self.delay = 5
        self.buffer = np.zeros((self.delay, n))
        self.trace = np.zeros(n)
        self.t = 0
        self.firings = []

    def integrate(self, current):
        for _ in range(2):
            self.v += 0.5 * (0.04 * self.v**2 + 5 * self.v + 140 - self.u + current)
        self.v = np.minimum(self.v, 100.0)
        self.u += self.a * (self.b * self.v - self.u)

    def learn(self, fired, rate=1e-3):
        self.trace *= 0.95
        self.trace[fired] += 1.0
        change = rate * np.outer(fired, self.trace)
        self.S[:, :800] = np.clip(self.S[:, :800] + change[:, :800], 0.0, 1.0)

    def step(self):
        noise = self.drive * self.rng.standard_normal(self.n)
        slot = self.t % self.delay
        current = noise + self.buffer[slot]
        fired = self.v >= 30.0
        self.v[fired] = self.c[fired]
        self.u[fired] += self.d[fired]
        self.buffer[slot] = self.S @ fired.astype(float)
        self.integrate(current)
        if self.t % 10 == 0:
            self.learn(fired)
        self.firings.append(int(fired.sum()))
        self.t += 1


def run(steps):
    net = Network()
    for _ in range(steps):
        net.step()
    return {"v": net.v, "u": net.u, "S": net.S[:50], "firings": np.array(net.firings)}
