"""Orbit fitting: radial velocities of planets, SciPy's least squares and a Metropolis chain."""

import os

import numpy as np
from scipy.optimize import least_squares

steps = int(os.environ.get("STEPS", "5000"))

rng = np.random.default_rng(4)
t = np.sort(rng.uniform(0, 900, 1500))


def kepler(mean, e):
    big = mean + e * np.sin(mean)
    for _ in range(8):
        big = big - (big - e * np.sin(big) - mean) / (1 - e * np.cos(big))
    return big


def velocity(params, t):
    total = np.full_like(t, params[-1])
    for j in range(0, len(params) - 1, 5):
        period, amplitude, e, omega, phase = params[j : j + 5]
        mean = 2 * np.pi * t / period + phase
        big = kepler(mean, e)
        nu = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(big / 2), np.sqrt(1 - e) * np.cos(big / 2))
        total = total + amplitude * (np.cos(nu + omega) + e * np.cos(omega))
    return total


truth = np.array([37.0, 12.0, 0.3, 0.7, 1.1, 211.0, 8.0, 0.15, 2.0, 0.4, 3.0])
sigma = 1.0
data = velocity(truth, t) + rng.normal(0, sigma, t.size)


def residuals(p):
    return (velocity(p, t) - data) / sigma


start = truth * (1 + 0.002 * rng.normal(size=truth.size))
low = np.array([1, 0, 0, -10, -10] * 2 + [-50.0])
high = np.array([1000, 100, 0.9, 10, 10] * 2 + [50.0])
fit = least_squares(residuals, start, bounds=(low, high))
print("fit", fit.success, f"{2 * fit.cost:.5f}", " ".join(f"{v:.5f}" for v in fit.x))


def log_posterior(p):
    if np.any(p < low) or np.any(p > high):
        return -np.inf
    return -0.5 * np.sum(residuals(p) ** 2)


scale = np.array([0.002, 0.05, 0.004, 0.015, 0.015, 0.1, 0.05, 0.006, 0.04, 0.04, 0.03])
p, lp = fit.x.copy(), log_posterior(fit.x)
chain, accepted = [], 0
for n in range(steps):
    proposal = p + 0.3 * scale * rng.normal(size=p.size)
    new = log_posterior(proposal)
    if np.log(rng.random()) < new - lp:
        p, lp = proposal, new
        accepted += 1
    chain.append(p)
chain = np.array(chain)
print(f"accepted {accepted / len(chain):.4f}", " ".join(f"{v:.6f}" for v in chain[len(chain) // 5 :].mean(axis=0)))
