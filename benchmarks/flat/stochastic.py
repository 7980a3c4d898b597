"""Paths of a stochastic volatility model, with a generator that is passed in; the price of an option at the end."""

import os

import numpy as np


def simulate(rng, paths, steps, rate=0.03, kappa=2.0, theta=0.04, sigma=0.3, rho=-0.6):
    dt = 1.0 / 250
    price = np.full(paths, 100.0)
    variance = np.full(paths, theta)
    highest = price.copy()
    for _ in range(steps):
        z1 = rng.standard_normal(paths)
        z2 = rho * z1 + np.sqrt(1 - rho**2) * rng.standard_normal(paths)
        positive = np.maximum(variance, 0.0)
        price = price * np.exp((rate - 0.5 * positive) * dt + np.sqrt(positive * dt) * z1)
        variance = variance + kappa * (theta - positive) * dt + sigma * np.sqrt(positive * dt) * z2
        highest = np.maximum(highest, price)
    return price, variance, highest


if __name__ == "__main__":
    steps = int(os.environ.get("STEPS", "1500"))
    price, variance, highest = simulate(np.random.default_rng(7), 40_000, steps)
    payoff = np.maximum(price - 100.0, 0.0)
    print(f"call {payoff.mean():.6f} +- {payoff.std() / np.sqrt(len(payoff)):.6f}")
    print(f"lookback {(highest - price).mean():.6f}, variance {variance.mean():.6f}")
