"""American put under Heston's volatility: paths by Euler steps, early exercise by least squares."""

import os

import numpy as np

steps = int(os.environ.get("STEPS", "14"))

S0, K, r, T = 100.0, 105.0, 0.03, 1.0
kappa, theta, sigma, rho, v0 = 1.5, 0.04, 0.3, -0.7, 0.05
dates, n = 50, 40000


def simulate(rng):
    dt = T / dates
    s = np.empty((dates + 1, n))
    v = np.full(n, v0)
    s[0] = S0
    for k in range(dates):
        z1 = rng.standard_normal(n)
        z2 = rho * z1 + np.sqrt(1 - rho**2) * rng.standard_normal(n)
        vp = np.maximum(v, 0.0)
        s[k + 1] = s[k] * np.exp((r - 0.5 * vp) * dt + np.sqrt(vp * dt) * z1)
        v = v + kappa * (theta - vp) * dt + sigma * np.sqrt(vp * dt) * z2
    return s


def exercise(s):
    dt = T / dates
    cash = np.maximum(K - s[-1], 0)
    for k in range(dates - 1, 0, -1):
        cash = cash * np.exp(-r * dt)
        inside = K - s[k] > 0
        if inside.sum() < 10:
            continue
        x = s[k][inside] / K
        basis = np.stack([np.ones_like(x), x, x**2, x**3], axis=1)
        coefficients, *_ = np.linalg.lstsq(basis, cash[inside], rcond=None)
        go_on = basis @ coefficients
        now = K - s[k][inside]
        cash[inside] = np.where(now > go_on, now, cash[inside])
    return cash * np.exp(-r * dt)


rng = np.random.default_rng(2024)
prices, errors = [], []
for trial in range(steps):
    cash = exercise(simulate(rng))
    prices.append(cash.mean())
    errors.append(cash.std() / np.sqrt(n))
    print(f"trial {trial}: {prices[-1]:.9f} +- {errors[-1]:.9f}")
print(f"price {np.mean(prices):.9f}")
