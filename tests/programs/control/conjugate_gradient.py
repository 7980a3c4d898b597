"""Heat in a chip, implicitly: a matrix-free conjugate gradient in each step, a fan that a thermostat switches."""

import numpy as np


class Chip:
    def __init__(self, n=128):
        self.n, self.dx = n, 1.0 / n
        self.k = np.ones((n, n))
        self.k[n // 4 : n // 2, n // 4 : 3 * n // 4] = 8.0
        self.kx = 2 / (1 / self.k[:, 1:] + 1 / self.k[:, :-1])
        self.ky = 2 / (1 / self.k[1:] + 1 / self.k[:-1])
        self.T = np.full((n, n), 20.0)
        self.power = np.zeros((n, n))
        self.power[n // 3 : n // 3 + 8, n // 3 : n // 3 + 8] = 3e4
        self.fan = False
        self.iterations = []
        self.switched = 0

    def operator(self, T, dt):
        fx = self.kx * (T[:, 1:] - T[:, :-1]) / self.dx**2
        fy = self.ky * (T[1:] - T[:-1]) / self.dx**2
        div = np.zeros_like(T)
        div[:, :-1] += fx
        div[:, 1:] -= fx
        div[:-1] += fy
        div[1:] -= fy
        cool = 40.0 if self.fan else 4.0
        return T - dt * (0.01 * div - cool * T)

    def solve(self, b, x, dt, tol=1e-8, most=400):
        r = b - self.operator(x, dt)
        p = r.copy()
        rr = np.vdot(r, r)
        limit = tol**2 * np.vdot(b, b)
        count = 0
        while rr > limit and count < most:
            Ap = self.operator(p, dt)
            alpha = rr / np.vdot(p, Ap)
            x = x + alpha * p
            r = r - alpha * Ap
            new = np.vdot(r, r)
            p = r + (new / rr) * p
            rr = new
            count += 1
        return x, count

    def step(self, dt=1e-3):
        cool = 40.0 if self.fan else 4.0
        b = self.T + dt * (self.power + cool * 20.0)
        self.T, count = self.solve(b, self.T, dt)
        self.iterations.append(count)
        hot = self.T.max()
        if hot > 90.0 and not self.fan:
            self.fan = True
            self.switched += 1
        elif hot < 70.0 and self.fan:
            self.fan = False
            self.switched += 1


def run(steps):
    chip = Chip()
    for _ in range(steps):
        chip.step()
    return {"T": chip.T, "iterations": np.array(chip.iterations), "switched": np.int64(chip.switched)}
