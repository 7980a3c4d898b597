"""A batch column and a reactor: stage balances, activity by Wilson, bubble points by Newton, tridiagonal profiles."""

import numpy as np
from scipy.linalg import solve_banded
from scipy.special import expit

ANTOINE = np.array([[8.20417, 1642.89, 230.3], [8.07131, 1730.63, 233.426], [7.9681, 1521.23, 233.97]])
WILSON = np.array([[1.0, 0.18, 0.9], [0.95, 1.0, 0.55], [0.6, 0.4, 1.0]])


def psat(T):
    A, B, C = ANTOINE.T
    return 10 ** (A - B / (C + T[..., None]))


def activity(x):
    s = x @ WILSON.T
    return np.exp(1 - np.log(s) - (x / s) @ WILSON)


def bubble_point(x, T, P=760.0, tol=1e-8):
    gamma = activity(x)
    for k in range(50):
        p = (x * gamma * psat(T)).sum(-1)
        A, B, C = ANTOINE.T
        dp = (x * gamma * psat(T) * np.log(10) * B / (C + T[..., None]) ** 2).sum(-1)
        dT = (P - p) / dp
        T = T + np.clip(dT, -10, 10)
        if np.max(np.abs(dT)) < tol:
            break
    y = x * gamma * psat(T) / P
    return T, y / y.sum(-1, keepdims=True), k


class Column:
    def __init__(self, stages=40, columns=50):
        self.x = np.empty((columns, stages, 3))
        self.x[:] = [0.3, 0.4, 0.3]
        self.T = np.full((columns, stages), 80.0)
        self.hold = np.ones((columns, stages))
        self.hold[:, -1] = 100.0
        self.reflux = np.linspace(2, 8, columns)
        self.newton = []

    def step(self, dt):
        self.T, y, k = bubble_point(self.x, self.T)
        self.newton.append(k)
        V = 10.0
        L = (V * self.reflux / (1 + self.reflux))[:, None, None]
        flow = np.zeros_like(self.x)
        flow[:, 1:-1] = L * (self.x[:, :-2] - self.x[:, 1:-1]) + V * (y[:, 2:] - y[:, 1:-1])
        flow[:, 0] = V * (y[:, 1] - self.x[:, 0])
        flow[:, -1] = L[:, 0] * self.x[:, -2] - V * y[:, -1] + (V - L[:, 0]) * self.x[:, -1]
        self.x += dt * flow / self.hold[..., None]
        np.clip(self.x, 1e-9, None, out=self.x)
        self.x /= self.x.sum(axis=-1, keepdims=True)
        self.hold[:, -1] = np.maximum(self.hold[:, -1] - dt * (V - L[:, 0, 0]), 5.0)
        return self.x[:, 0, 0].max()


class Reactor:
    """A packed tube: axial dispersion, implicitly, and an exothermic reaction that ignites."""

    def __init__(self, n=400):
        self.n = n
        self.c, self.T = np.ones(n), np.full(n, 0.1)
        d, u, h, dt = 1e-3, 1.0, 1.0 / n, 0.002
        self.dt = dt
        ab = np.zeros((3, n))
        ab[0, 1:] = -dt * d / h**2
        ab[1] = 1 + dt * (2 * d / h**2 + u / h)
        ab[2, :-1] = -dt * (d / h**2 + u / h)
        ab[1, -1] -= dt * d / h**2
        self.ab = ab
        self.inlet = dt * (d / h**2 + u / h)

    def step(self, feed):
        rate = 40 * self.c * expit((self.T - 0.5) * 12)
        c, T = self.c - self.dt * rate, self.T + self.dt * (0.9 * rate - 2 * (self.T - 0.1))
        c[0] += self.inlet * 1.0
        T[0] += self.inlet * feed
        both = solve_banded((1, 1), self.ab, np.column_stack([c, T]))
        self.c, self.T = both.T
        return self.T.argmax() / self.n


def run(steps):
    column, reactor = Column(), Reactor()
    purity, front = [], []
    for k in range(steps):
        purity.append(column.step(0.01))
        feed = 0.1 + 0.5 * (k % 200 < 50)
        for _ in range(5):
            front.append(reactor.step(feed))
    return {"x": column.x, "T": column.T, "newton": column.newton, "purity": purity, "front": front, "c": reactor.c}
