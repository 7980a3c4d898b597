"""A backtest: rolling covariances, risk parity by fixed-point iteration, drawdowns, rebalancing with costs."""

import numpy as np


def returns(days=600, assets=80, seed=12):
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((days, 4)) * 0.01
    loads = rng.normal(0.5, 0.4, (4, assets))
    return factors @ loads + 0.012 * rng.standard_t(5, (days, assets)) + 2e-4


def shrunk_covariance(window):
    x = window - window.mean(axis=0)
    s = x.T @ x / (len(x) - 1)
    mean_var = np.trace(s) / len(s)
    return 0.8 * s + 0.2 * mean_var * np.eye(len(s))


def risk_parity(cov, tol=1e-8, most=500):
    n = len(cov)
    w = np.ones(n) / n
    for _ in range(most):
        marginal = cov @ w
        new = np.sqrt(w / marginal)
        new /= new.sum()
        if np.abs(new - w).max() < tol:
            return new
        w = new
    return w


class Backtest:
    def __init__(self, r, lookback=120):
        self.r, self.lookback = r, lookback
        self.w = np.ones(r.shape[1]) / r.shape[1]
        self.value = 1.0
        self.peak = 1.0
        self.curve, self.turnover, self.drawdowns = [], [], []
        self.day = lookback

    def rebalance(self):
        window = self.r[self.day - self.lookback : self.day]
        target = risk_parity(shrunk_covariance(window))
        traded = np.abs(target - self.w).sum()
        self.value *= 1 - 0.001 * traded
        self.w = target
        self.turnover.append(traded)

    def trade(self):
        if self.day % 5 == 0:
            self.rebalance()
        today = self.r[self.day]
        gain = self.w @ today
        self.value *= 1 + gain
        drifted = self.w * (1 + today)
        self.w = drifted / drifted.sum()
        self.peak = max(self.peak, self.value)
        self.curve.append(self.value)
        self.drawdowns.append(1 - self.value / self.peak)
        self.day += 1


def moving(x, n):
    c = np.cumsum(np.insert(x, 0, 0.0))
    return (c[n:] - c[:-n]) / n


def run(steps):
    b = Backtest(returns())
    for _ in range(min(steps, 450)):
        b.trade()
    curve = np.array(b.curve)
    return {"curve": curve, "turnover": np.array(b.turnover), "down": np.array(b.drawdowns), "smooth": moving(curve, 5)}
