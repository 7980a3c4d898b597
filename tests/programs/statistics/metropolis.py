"""Bayesian logistic regression: random-walk Metropolis with adaptation, and a Gibbs sampler for a mixture."""

import numpy as np


def data(n=4000, d=8, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    beta = np.linspace(-1, 1, d)
    y = rng.random(n) < 1 / (1 + np.exp(-X @ beta))
    return X, y.astype(float)


def log_posterior(beta, X, y, scale=3.0):
    z = X @ beta
    return np.sum(y * z - np.logaddexp(0.0, z)) - 0.5 * np.sum((beta / scale) ** 2)


class Sampler:
    def __init__(self, X, y, rng):
        self.X, self.y, self.rng = X, y, rng
        self.beta = np.zeros(X.shape[1])
        self.current = log_posterior(self.beta, X, y)
        self.width = 0.05
        self.accepted = self.proposed = 0
        self.chain = np.empty((10_000, X.shape[1]))

    def step(self):
        proposal = self.beta + self.width * self.rng.standard_normal(self.beta.size)
        candidate = log_posterior(proposal, self.X, self.y)
        if np.log(self.rng.random()) < candidate - self.current:
            self.beta, self.current = proposal, candidate
            self.accepted += 1
        self.chain[self.proposed] = self.beta
        self.proposed += 1
        if self.proposed % 50 == 0:
            rate = self.accepted / self.proposed
            self.width *= 1.1 if rate > 0.3 else 0.9


def gibbs(x, k, rng, means, weights):
    """One sweep: assignments, then the means and weights of `k` components of unit variance."""
    logp = np.log(weights) - 0.5 * (x[:, None] - means) ** 2
    p = np.exp(logp - logp.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    z = (p.cumsum(axis=1) < rng.random((x.size, 1))).sum(axis=1)
    onehot = z[:, None] == np.arange(k)
    n = onehot.sum(axis=0)
    mean = (onehot * x[:, None]).sum(axis=0) / (n + 0.01)
    means = mean + rng.standard_normal(k) / np.sqrt(n + 0.01)
    weights = (n + 1.0) / (n + 1.0).sum()
    return np.sort(means), weights


def run(steps):
    X, y = data()
    s = Sampler(X, y, np.random.default_rng(7))
    for _ in range(steps):
        s.step()
    rng = np.random.default_rng(8)
    x = np.concatenate([rng.normal(m, 1.0, 5000) for m in (-4, 0, 5)])
    means, weights = np.array([-1.0, 0.0, 1.0]), np.full(3, 1 / 3)
    trace = []
    for _ in range(steps):
        means, weights = gibbs(x, 3, rng, means, weights)
        trace.append(means)
    return {"chain": s.chain[: s.proposed], "accepted": np.int64(s.accepted), "means": np.array(trace), "w": weights}
