"""k-means with restarts until it converges, a Gaussian mixture by EM, and PCA by power iteration."""

import numpy as np


def blobs(n=6000, k=5, d=6, seed=3):
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 4, (k, d))
    labels = rng.integers(0, k, n)
    return centres[labels] + rng.normal(size=(n, d)), labels


def distances(x, c):
    return ((x[:, None, :] - c[None, :, :]) ** 2).sum(-1)


def kmeans(x, c, tol=1e-6, most=100):
    for rounds in range(most):
        nearest = distances(x, c).argmin(axis=1)
        new = np.empty_like(c)
        for j in range(len(c)):
            members = x[nearest == j]
            new[j] = members.mean(axis=0) if len(members) else c[j]
        moved = np.abs(new - c).max()
        c = new
        if moved < tol:
            break
    return c, nearest, rounds


def expectation(x, mu, var, w):
    logp = -0.5 * (((x[:, None] - mu) ** 2) / var + np.log(2 * np.pi * var)).sum(-1) + np.log(w)
    top = logp.max(axis=1, keepdims=True)
    norm = top + np.log(np.exp(logp - top).sum(axis=1, keepdims=True))
    return np.exp(logp - norm), norm.sum()


def maximization(x, r):
    n = r.sum(axis=0)
    mu = (r.T @ x) / n[:, None]
    var = np.stack([(r[:, j, None] * (x - mu[j]) ** 2).sum(axis=0) / n[j] for j in range(r.shape[1])])
    return mu, np.maximum(var, 1e-3), n / n.sum()


def leading(x, count=2, tol=1e-10):
    """The first principal components, one after the other, by power iteration with deflation."""
    c = np.cov(x.T)
    found = []
    for _ in range(count):
        v = np.ones(len(c)) / np.sqrt(len(c))
        change = 1.0
        while change > tol:
            new = c @ v
            new /= np.linalg.norm(new)
            change = np.linalg.norm(new - v)
            v = new
        found.append(v)
        c = c - (v @ c @ v) * np.outer(v, v)
    return np.array(found)


def run(steps):
    x, _ = blobs()
    c, nearest, rounds = kmeans(x, x[:5].copy())
    mu, var, w = c + 0.3, np.ones_like(c), np.full(5, 0.2)
    logliks = []
    for _ in range(steps):
        r, ll = expectation(x, mu, var, w)
        mu, var, w = maximization(x, r)
        logliks.append(ll)
    return {"c": c, "mu": mu, "var": var, "ll": np.array(logliks), "pc": leading(x), "rounds": np.int64(rounds)}
