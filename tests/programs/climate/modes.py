"""Modes of variability of a stochastic ocean: anomalies, detrending, EOFs, indices, regression and composites."""

import numpy as np
from scipy import signal, stats


class Ocean:
    def __init__(self, ny=24, nx=48, seed=6):
        self.rng = np.random.default_rng(seed)
        self.ny, self.nx = ny, nx
        lat = np.linspace(-40, 40, ny)
        lon = np.linspace(0, 300, nx)
        self.weight = np.sqrt(np.cos(np.deg2rad(lat)))[:, None] * np.ones(nx)
        self.pattern = np.exp(-((lat / 12) ** 2))[:, None] * np.exp(-(((lon - 200) / 60) ** 2))[None, :]
        self.other = np.sin(np.deg2rad(lat) * 3)[:, None] * np.cos(np.deg2rad(lon) * 2)[None, :]
        self.state = np.zeros(2)
        self.field = np.zeros((ny, nx))

    def month(self, m):
        turn = np.array([[0.92, -0.15], [0.15, 0.92]])
        self.state = turn @ self.state + 0.3 * self.rng.standard_normal(2)
        noise = self.rng.standard_normal((self.ny, self.nx))
        smooth = (noise + np.roll(noise, 1, 0) + np.roll(noise, 1, 1) + np.roll(noise, -1, 1)) / 4
        self.field = 0.7 * self.field + smooth * 0.4
        season = 2.0 * np.cos(2 * np.pi * m / 12) * self.other
        return 20 + season + self.state[0] * self.pattern * 2 + self.state[1] * self.other + self.field + 0.002 * m


def anomalies(data):
    """Without the mean of each calendar month."""
    years = data.shape[0] // 12
    monthly = data[: years * 12].reshape(years, 12, *data.shape[1:])
    return (monthly - monthly.mean(axis=0)).reshape(years * 12, *data.shape[1:])


def eofs(anomaly, weight, number=3):
    flat = signal.detrend(anomaly.reshape(anomaly.shape[0], -1), axis=0) * weight.ravel()
    u, s, vt = np.linalg.svd(flat, full_matrices=False)
    sign = np.sign(vt[np.arange(number), np.argmax(np.abs(vt[:number]), axis=1)])
    pcs = u[:, :number] * s[:number] * sign
    return pcs / pcs.std(axis=0), s[:number] ** 2 / np.sum(s**2)


def running_mean(x, window=5):
    kernel = np.ones(window) / window
    return np.apply_along_axis(lambda c: np.convolve(c, kernel, mode="same"), 0, x)


def regress(pc, anomaly):
    """Slope and correlation of each point on an index."""
    x = (pc - pc.mean()) / pc.std()
    y = anomaly - anomaly.mean(axis=0)
    slope = np.tensordot(x, y, axes=(0, 0)) / len(x)
    r = slope / y.std(axis=0)
    t = r * np.sqrt((len(x) - 2) / (1 - r**2))
    return slope, np.abs(t) > stats.t.ppf(0.975, len(x) - 2)


def composite(index, anomaly, limit=0.8):
    warm, cold = index > limit, index < -limit
    return anomaly[warm].mean(axis=0) - anomaly[cold].mean(axis=0)


def lag_correlation(a, b, most=12):
    a, b = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    return np.array([np.mean(a[: len(a) - k] * b[k:]) for k in range(most)])


def analyse(data, weight):
    anomaly = anomalies(data)
    pcs, shares = eofs(anomaly, weight)
    smooth = running_mean(pcs)
    slope, significant = regress(smooth[:, 0], anomaly)
    warm = composite(smooth[:, 0], anomaly)
    return shares, np.abs(slope).max(), significant.mean(), np.abs(warm).mean(), lag_correlation(pcs[:, 0], pcs[:, 1])


def run(steps):
    ocean = Ocean()
    data = [ocean.month(m) for m in range(120)]
    shares, numbers, lags = [], [], []
    for k in range(steps):
        data = data[12:] + [ocean.month(m) for m in range(12)]
        share, *rest, lag = analyse(np.array(data), ocean.weight)
        shares.append(share)
        numbers.append(rest)
        lags.append(lag)
    return {"shares": np.array(shares), "numbers": np.array(numbers), "lags": np.array(lags)}
