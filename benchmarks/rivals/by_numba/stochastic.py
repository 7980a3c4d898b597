"""Paths of a stochastic volatility model, with a generator that is passed in; the price of an option at the end."""

import os

import numba
import numpy as np


@numba.njit(cache=True)
def simulate(rng, paths, steps, rate=0.03, kappa=2.0, theta=0.04, sigma=0.3, rho=-0.6):
    dt = 1.0 / 250
    price = np.full(paths, 100.0)
    variance = np.full(paths, theta)
    highest = price.copy()
    for _ in range(steps):
        drawn = rng.standard_normal(paths)
        other = rng.standard_normal(paths)
        for i in range(paths):
            z1, z2 = drawn[i], rho * drawn[i] + np.sqrt(1 - rho**2) * other[i]
            positive = max(variance[i], 0.0)
            price[i] *= np.exp((rate - 0.5 * positive) * dt + np.sqrt(positive * dt) * z1)
            variance[i] = variance[i] + kappa * (theta - positive) * dt + sigma * np.sqrt(positive * dt) * z2
            highest[i] = max(highest[i], price[i])
    return price, variance, highest


if __name__ == "__main__":
    steps = int(os.environ.get("STEPS", "1500"))
    price, variance, highest = simulate(np.random.default_rng(7), 40_000, steps)
    payoff = np.maximum(price - 100.0, 0.0)
    print(f"call {payoff.mean():.6f} +- {payoff.std() / np.sqrt(len(payoff)):.6f}")
    print(f"lookback {(highest - price).mean():.6f}, variance {variance.mean():.6f}")
