"""Columns of a grey atmosphere in spectral bands: two-stream fluxes level by level, convection, a slab ocean."""

import numpy as np

SIGMA, CP, G = 5.670374419e-8, 1004.0, 9.81


class State(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


def setup(ncol=300, nlev=16, nband=4):
    edges = np.linspace(0, 1e5, nlev + 1)
    s = State(p=0.5 * (edges[1:] + edges[:-1]), dp=np.diff(edges), lat=np.linspace(-90, 90, ncol), days=0.0)
    s.T = np.full((ncol, nlev), 250.0) + 30 * (s.p / 1e5 - 0.5)
    s.Ts = np.full(ncol, 280.0)
    s.solar, s.k = 340 * (1.24 - 0.72 * np.sin(np.deg2rad(s.lat)) ** 2), np.logspace(-2, 1, nband) * 0.35
    return s


def longwave(s):
    vapour = 0.02 * np.exp(0.06 * (s.Ts - 288.0))[:, None] * (s.p / 1e5) ** 3
    passes = np.exp(-1.66 * s.k[:, None, None] * (60 * vapour + 0.05) * s.dp / 1e5)
    source = SIGMA * s.T**4 / len(s.k)
    down = np.zeros((len(s.k), s.T.shape[0], s.T.shape[1] + 1))
    up = np.zeros_like(down)
    for k in range(s.T.shape[1]):
        down[:, :, k + 1] = down[:, :, k] * passes[:, :, k] + source[:, k] * (1 - passes[:, :, k])
    up[:, :, -1] = SIGMA * s.Ts**4 / len(s.k)
    for k in range(s.T.shape[1] - 1, -1, -1):
        up[:, :, k] = up[:, :, k + 1] * passes[:, :, k] + source[:, k] * (1 - passes[:, :, k])
    return (up - down).sum(axis=0)


def convect(T, p, dp, gamma=0.19):
    for k in range(T.shape[1] - 2, -1, -1):
        ratio = (p[k] / p[k + 1]) ** gamma
        unstable = T[:, k] < T[:, k + 1] * ratio
        below = (T[:, k] * dp[k] + T[:, k + 1] * dp[k + 1]) / (ratio * dp[k] + dp[k + 1])
        T[:, k + 1] = np.where(unstable, below, T[:, k + 1])
        T[:, k] = np.where(unstable, below * ratio, T[:, k])


def step(s, dt=6 * 3600.0):
    net = longwave(s)
    sensible = 10 * (s.Ts - s.T[:, -1])
    s.T = s.T + dt * G / CP * np.diff(net, axis=1) / s.dp
    s.Ts += dt * (s.solar * np.where(s.Ts < 263, 0.4, 0.7) - net[:, -1] - sensible) / 2.1e7
    s.T[:, -1] += dt * G / CP * sensible / s.dp[-1]
    convect(s.T, s.p, s.dp)
    s.days += dt / 86400
    return net[:, 0].mean()


def run(steps):
    s = setup()
    leaving = [step(s) for _ in range(steps)]
    return {"T": s.T, "Ts": s.Ts, "days": np.float64(s.days), "leaving": np.array(leaving)}
