"""American options by least-squares Monte Carlo, Heston paths, and implied volatility by Newton's method."""

import numpy as np
from scipy.special import erf


def heston(n, steps, rng, v0=0.04, kappa=1.5, theta=0.04, xi=0.4, rho=-0.6, r=0.02, T=1.0):
    dt = T / steps
    x = np.zeros(n)
    v = np.full(n, v0)
    paths = np.empty((steps + 1, n))
    paths[0] = 100.0
    for i in range(steps):
        z1 = rng.standard_normal(n)
        z2 = rho * z1 + np.sqrt(1 - rho**2) * rng.standard_normal(n)
        vp = np.maximum(v, 0.0)
        x += (r - 0.5 * vp) * dt + np.sqrt(vp * dt) * z1
        v = v + kappa * (theta - vp) * dt + xi * np.sqrt(vp * dt) * z2
        paths[i + 1] = 100.0 * np.exp(x)
    return paths


def continuation(s, value, inside):
    """Regress what waiting is worth on the price, where exercise would pay."""
    z = s / 100.0
    basis = np.stack([np.ones_like(z), z, z**2, z**3], axis=1)
    w = inside.astype(float)[:, None]
    normal = basis.T @ (w * basis) + 1e-9 * np.eye(4)
    coefficients = np.linalg.solve(normal, basis.T @ (w[:, 0] * value))
    return basis @ coefficients


def american_put(paths, strike, r=0.02, T=1.0):
    steps = len(paths) - 1
    discount = np.exp(-r * T / steps)
    value = np.maximum(strike - paths[-1], 0.0)
    for i in range(steps - 1, 0, -1):
        value = value * discount
        payoff = np.maximum(strike - paths[i], 0.0)
        inside = payoff > 0
        wait = continuation(paths[i], value, inside)
        value = np.where(inside & (payoff > wait), payoff, value)
    return discount * value.mean()


def cdf(x):
    return 0.5 * (1 + erf(x / np.sqrt(2)))


def black_scholes(s, k, t, r, vol):
    d1 = (np.log(s / k) + (r + 0.5 * vol**2) * t) / (vol * np.sqrt(t))
    return s * cdf(d1) - k * np.exp(-r * t) * cdf(d1 - vol * np.sqrt(t)), d1


def implied(price, s, k, t, r, tol=1e-10, most=50):
    vol = np.full_like(k, 0.3)
    for rounds in range(most):
        value, d1 = black_scholes(s, k, t, r, vol)
        vega = s * np.sqrt(t) * np.exp(-0.5 * d1**2) / np.sqrt(2 * np.pi)
        error = value - price
        if np.abs(error).max() < tol:
            break
        vol = np.clip(vol - error / np.maximum(vega, 1e-8), 1e-3, 3.0)
    return vol, rounds


def run(steps):
    rng = np.random.default_rng(17)
    prices = []
    for _ in range(steps):
        paths = heston(20000, 12, rng)
        prices.append(american_put(paths, 100.0))
    strikes = np.linspace(70, 130, 20001)
    quotes, _ = black_scholes(100.0, strikes, 1.0, 0.02, 0.2 + 0.1 * ((strikes - 100) / 100) ** 2)
    vol, rounds = implied(quotes, 100.0, strikes, 1.0, 0.02)
    return {"prices": np.array(prices), "vol": vol, "rounds": np.int64(rounds)}
