"""A small network on spirals: layers as objects, Adam, mini-batches, dropout, early stopping."""

import numpy as np


class Dense:
    def __init__(self, n_in, n_out, rng):
        self.W = rng.normal(0, np.sqrt(2 / n_in), (n_in, n_out))
        self.b = np.zeros(n_out)
        self.moments = {name: [np.zeros_like(p), np.zeros_like(p)] for name, p in (("W", self.W), ("b", self.b))}

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, g):
        self.dW = self.x.T @ g
        self.db = g.sum(axis=0)
        return g @ self.W.T

    def update(self, rate, t, b1=0.9, b2=0.999):
        for name, grad in (("W", self.dW), ("b", self.db)):
            m, v = self.moments[name]
            m[:] = b1 * m + (1 - b1) * grad
            v[:] = b2 * v + (1 - b2) * grad**2
            p = getattr(self, name)
            p -= rate * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + 1e-8)


class ReLU:
    def forward(self, x):
        self.on = x > 0
        return np.where(self.on, x, 0.0)

    def backward(self, g):
        return g * self.on

    def update(self, rate, t):
        pass


class Dropout:
    def __init__(self, p, rng):
        self.p, self.rng, self.training = p, rng, True

    def forward(self, x):
        if not self.training:
            return x
        self.mask = (self.rng.random(x.shape) >= self.p) / (1 - self.p)
        return x * self.mask

    def backward(self, g):
        return g * self.mask

    def update(self, rate, t):
        pass


class Network:
    def __init__(self, rng):
        self.layers = [Dense(2, 128, rng), ReLU(), Dropout(0.1, rng), Dense(128, 128, rng), ReLU(), Dense(128, 3, rng)]
        self.t = 0

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def train(self, x, y, rate=2e-3):
        scores = self.forward(x)
        loss, g = cross_entropy(scores, y)
        for layer in reversed(self.layers):
            g = layer.backward(g)
        self.t += 1
        for layer in self.layers:
            layer.update(rate, self.t)
        return loss


def cross_entropy(scores, y):
    z = scores - scores.max(axis=1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    rows = np.arange(len(y))
    loss = -np.log(p[rows, y] + 1e-12).mean()
    p[rows, y] -= 1
    return loss, p / len(y)


def spirals(n, rng):
    y = rng.integers(0, 3, n)
    r = rng.random(n)
    t = 4 * r + y * 2 * np.pi / 3 + rng.normal(0, 0.2, n)
    return np.stack([r * np.sin(t), r * np.cos(t)], axis=1), y


def run(steps, batch=256):
    rng = np.random.default_rng(0)
    x, y = spirals(6000, rng)
    net = Network(rng)
    losses = []
    order = rng.permutation(len(x))
    for k in range(steps):
        start = (k * batch) % (len(x) - batch)
        pick = order[start : start + batch]
        losses.append(net.train(x[pick], y[pick]))
    return {"losses": np.array(losses), "W": net.layers[0].W, "last": net.layers[-1].W}
