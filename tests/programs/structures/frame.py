"""A plane truss under a moving load and an earthquake: assembly, Newmark's method, yielding bars, modes."""

import numpy as np
from scipy import linalg


class Truss:
    def __init__(self, bays=14):
        top = [(i * 2.0, 2.0) for i in range(1, bays)]
        bottom = [(i * 2.0, 0.0) for i in range(bays + 1)]
        self.nodes = np.array(bottom + top)
        n = bays + 1
        bars = [(i, i + 1) for i in range(bays)]
        bars += [(n + i, n + i + 1) for i in range(bays - 2)]
        bars += [(i, n + i - 1) for i in range(1, bays)]
        bars += [(i, n + i) for i in range(bays - 1)]
        bars += [(i + 2, n + i) for i in range(bays - 1)]
        self.bars = np.array(bars)
        self.bottom = np.arange(n)
        self.ea = np.full(len(bars), 2.0e6)
        d = self.nodes[self.bars[:, 1]] - self.nodes[self.bars[:, 0]]
        self.length = np.hypot(d[:, 0], d[:, 1])
        self.direction = d / self.length[:, None]
        self.dofs = np.stack(
            [2 * self.bars[:, 0], 2 * self.bars[:, 0] + 1, 2 * self.bars[:, 1], 2 * self.bars[:, 1] + 1], axis=1
        )
        fixed = [0, 1, 2 * bays + 1]
        self.free = np.setdiff1d(np.arange(2 * len(self.nodes)), fixed)
        self.mass = np.full(2 * len(self.nodes), 50.0)
        self.plastic = np.zeros(len(bars))
        self.u = np.zeros(2 * len(self.nodes))
        self.v = np.zeros_like(self.u)
        self.a = np.zeros_like(self.u)

    def stiffness(self):
        c = np.concatenate([-self.direction, self.direction], axis=1)
        local = (self.ea / self.length)[:, None, None] * c[:, :, None] * c[:, None, :]
        k = np.zeros((len(self.u), len(self.u)))
        np.add.at(k, (self.dofs[:, :, None], self.dofs[:, None, :]), local)
        return k

    def strains(self):
        moved = self.u[self.dofs]
        along = np.sum((moved[:, 2:] - moved[:, :2]) * self.direction, axis=1)
        return along / self.length

    def yielding(self, limit=1.2e-3):
        """Bars beyond their limit flow, and become softer."""
        elastic = self.strains() - self.plastic
        over = np.abs(elastic) > limit
        self.plastic += np.where(over, elastic - np.sign(elastic) * limit, 0.0) * 0.1
        self.ea = np.where(over, np.maximum(self.ea * 0.97, 5e5), self.ea)
        return over.sum()

    def loads(self, t):
        f = np.zeros(len(self.u))
        x = (5.0 * t) % self.nodes[:, 0].max()
        weight = np.maximum(0.0, 1.0 - np.abs(self.nodes[self.bottom, 0] - x) / 2.0)
        f[2 * self.bottom + 1] -= 4000.0 * weight
        f[0::2] -= self.mass[0::2] * 1.5 * np.sin(7.0 * t)
        return f

    def step(self, t, dt=0.02, beta=0.25, gamma=0.5):
        k = self.stiffness()
        free = self.free
        damping = 0.4 * np.diag(self.mass) + 0.0005 * k
        predicted = self.u + dt * self.v + (0.5 - beta) * dt**2 * self.a
        velocity = self.v + (1 - gamma) * dt * self.a
        matrix = np.diag(self.mass) + gamma * dt * damping + beta * dt**2 * k
        rhs = self.loads(t) - damping @ velocity - k @ predicted
        new = np.zeros_like(self.a)
        new[free] = np.linalg.solve(matrix[np.ix_(free, free)], rhs[free])
        self.a = new
        self.u = predicted + beta * dt**2 * new
        self.v = velocity + gamma * dt * new
        return 0.5 * np.sum(self.mass * self.v**2) + 0.5 * self.u @ k @ self.u

    def frequencies(self, number=4):
        k = self.stiffness()[np.ix_(self.free, self.free)]
        m = np.diag(self.mass[self.free])
        values = linalg.eigh(k, m, eigvals_only=True)
        return np.sqrt(np.abs(values[:number])) / (2 * np.pi)


def run(steps):
    truss = Truss()
    energy, tones, soft = [], [], 0
    for i in range(steps):
        energy.append(truss.step(0.02 * i))
        soft += truss.yielding()
        tones.append(truss.frequencies())
    return {"energy": np.array(energy), "tones": np.array(tones), "u": truss.u, "soft": soft}
