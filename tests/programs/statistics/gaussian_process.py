"""Gaussian process regression and Bayesian optimisation; user's kernels as a class hierarchy; minimize for the marginal likelihood."""

import numpy as np
from scipy import optimize
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import erf
from scipy.spatial.distance import cdist


class Kernel:
    def __add__(self, other):
        return Sum(self, other)

    def diag(self, x):
        return np.full(len(x), self.variance)


class RBF(Kernel):
    def __init__(self, scale=1.0, variance=1.0):
        self.scale, self.variance = scale, variance

    def __call__(self, a, b):
        d2 = cdist(a / self.scale, b / self.scale, "sqeuclidean")
        return self.variance * np.exp(-0.5 * d2)


class Matern(Kernel):
    def __init__(self, scale=1.0, variance=1.0):
        self.scale, self.variance = scale, variance

    def __call__(self, a, b):
        d = np.sqrt(np.maximum(((a[:, None] - b[None]) ** 2).sum(-1), 1e-30)) / self.scale
        s = np.sqrt(5.0) * d
        return self.variance * (1 + s + s**2 / 3) * np.exp(-s)


class Sum(Kernel):
    def __init__(self, left, right):
        self.left, self.right = left, right

    def __call__(self, a, b):
        return self.left(a, b) + self.right(a, b)

    def diag(self, x):
        return self.left.diag(x) + self.right.diag(x)


class GP:
    def __init__(self, kernel, noise=1e-2):
        self.kernel, self.noise = kernel, noise

    def fit(self, X, y):
        self.X, self.mean = X, y.mean()
        K = self.kernel(X, X)
        K[np.diag_indices_from(K)] += self.noise
        self.L = np.linalg.cholesky(K)
        self.alpha = cho_solve((self.L, True), y - self.mean)
        self.lml = (
            -0.5 * (y - self.mean) @ self.alpha - np.log(np.diag(self.L)).sum() - 0.5 * len(y) * np.log(2 * np.pi)
        )
        return self

    def predict(self, Xs):
        Ks = self.kernel(self.X, Xs)
        mu = self.mean + Ks.T @ self.alpha
        v = solve_triangular(self.L, Ks, lower=True)
        var = self.kernel.diag(Xs) - (v**2).sum(0)
        return mu, np.sqrt(np.clip(var, 1e-12, None))


def truth(x):
    return np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]) + 0.3 * x[:, 0] ** 2


def expected_improvement(mu, sd, best):
    z = (mu - best) / sd
    return (mu - best) * 0.5 * (1 + erf(z / np.sqrt(2))) + sd * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)


def objective(theta, X, y):
    scale, var, noise = np.exp(theta)
    try:
        gp = GP(RBF(scale, var), noise + 1e-6).fit(X, y)
    except np.linalg.LinAlgError:
        return 1e10
    return -gp.lml


def run(steps):
    rng = np.random.default_rng(7)
    X = rng.uniform(-2, 2, (60, 2))
    y = truth(X) + 0.05 * rng.standard_normal(60)
    res = optimize.minimize(objective, np.zeros(3), args=(X, y), method="Nelder-Mead", options={"maxiter": 2 * steps})
    print("lml", f"{-res.fun:.5f}", res.nit)
    s, v, n = np.exp(res.x)
    grid = np.stack(np.meshgrid(np.linspace(-2, 2, 40), np.linspace(-2, 2, 40)), -1).reshape(-1, 2)
    best = []
    for k in range(steps):
        gp = GP(RBF(s, v) + Matern(0.5, 0.1), n).fit(X, y)
        mu, sd = gp.predict(grid)
        ei = expected_improvement(mu, sd, y.max())
        nxt = grid[np.argmax(ei)]
        j = k % len(X)
        X[j] = nxt
        y[j] = truth(nxt[None])[0]
        best.append(y.max())
    return {"theta": res.x, "mu": mu, "sd": sd, "best": np.array(best), "X": X}
