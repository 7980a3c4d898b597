"""Resampling: bootstrap intervals, a permutation test, and a kernel density with cross-validated bandwidth."""

import numpy as np


def sample(n=3000, seed=10):
    rng = np.random.default_rng(seed)
    a = rng.gamma(2.0, 1.5, n)
    b = rng.gamma(2.1, 1.5, n)
    return a, b


def statistic(x):
    return np.array([x.mean(), np.median(x), x.std(ddof=1), np.percentile(x, 90)])


def resample(x, rng, rounds=20):
    out = np.empty((rounds, 4))
    for r in range(rounds):
        out[r] = statistic(x[rng.integers(0, x.size, x.size)])
    return out


def permuted_difference(pool, n, rng):
    shuffled = rng.permutation(pool)
    return shuffled[:n].mean() - shuffled[n:].mean()


def density(x, grid, h):
    z = (grid[:, None] - x[None, :]) / h
    return np.exp(-0.5 * z**2).sum(axis=1) / (x.size * h * np.sqrt(2 * np.pi))


def leave_one_out(x, h):
    z = (x[:, None] - x[None, :]) / h
    k = np.exp(-0.5 * z**2)
    np.fill_diagonal(k, 0.0)
    return np.log(k.sum(axis=1) / ((x.size - 1) * h)).sum()


def best_bandwidth(x, candidates):
    scores = [leave_one_out(x, h) for h in candidates]
    return candidates[int(np.argmax(scores))], np.array(scores)


def run(steps):
    a, b = sample()
    rng = np.random.default_rng(3)
    boots, differences = [], []
    pool = np.concatenate([a, b])
    for _ in range(steps):
        boots.append(resample(a, rng))
        differences.append(permuted_difference(pool, a.size, rng))
    h, scores = best_bandwidth(a[:600], np.linspace(0.1, 1.0, 12))
    grid = np.linspace(0, 15, 400)
    return {
        "boots": np.concatenate(boots),
        "differences": np.array(differences),
        "density": density(a, grid, h),
        "scores": scores,
    }
