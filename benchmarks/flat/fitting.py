"""A network of basis functions is fitted to noisy data by SciPy, and its regularisation chosen by cross-validation."""

import os

import numpy as np
from scipy.optimize import minimize

steps = int(os.environ.get("STEPS", "40"))


class Model:
    def __init__(self, centres, x, y):
        self.centres, self.x, self.y = centres, x, y
        self.evaluations = 0

    def predict(self, p, x):
        m = len(self.centres)
        weights, widths, offset = p[:m], np.exp(p[m : 2 * m]), p[-1]
        d = x[:, None] - self.centres[None]
        return np.exp(-(d**2) / widths**2) @ weights + offset

    def loss(self, p, penalty):
        self.evaluations += 1
        m = len(self.centres)
        weights, widths = p[:m], np.exp(p[m : 2 * m])
        d = self.x[:, None] - self.centres[None]
        phi = np.exp(-(d**2) / widths**2)
        error = phi @ weights + p[-1] - self.y
        value = np.mean(error**2) + penalty * np.sum(weights**2)
        g = np.empty_like(p)
        g[:m] = 2 * phi.T @ error / len(error) + 2 * penalty * weights
        g[m : 2 * m] = 2 * weights * (phi * (2 * d**2 / widths**2) * error[:, None]).sum(axis=0) / len(error)
        g[-1] = 2 * error.mean()
        return value, g


rng = np.random.default_rng(8)
x = np.sort(rng.uniform(-3, 3, 4000))
y = np.sin(2 * x) * np.exp(-0.1 * x**2) + 0.3 * np.tanh(5 * (x - 1)) + 0.1 * rng.normal(size=x.size)
folds = np.arange(x.size) % 4
centres = np.linspace(-3, 3, 20)
start = np.concatenate([np.zeros(20), np.full(20, np.log(0.5)), [0.0]])
scores = {}
for penalty in (1e-6, 1e-4, 1e-2):
    errors = []
    for fold in range(4):
        model = Model(centres, x[folds != fold], y[folds != fold])
        found = minimize(model.loss, start, args=(penalty,), jac=True, method="L-BFGS-B", options={"maxiter": steps})
        errors.append(np.mean((model.predict(found.x, x[folds == fold]) - y[folds == fold]) ** 2))
    scores[penalty] = np.mean(errors)
    print(f"penalty {penalty:g}: error {scores[penalty]:.6f}")
print(min(scores, key=scores.get))
