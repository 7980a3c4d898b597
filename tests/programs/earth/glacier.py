"""A glacier in two dimensions: shallow-ice diffusion with as many substeps as stability asks for, mass balance."""

import numpy as np

RHO_G, A, N = 910.0 * 9.81, 2.4e-24 * 3.15e7, 3  # Pa/m, 1/Pa3/yr
GAMMA = 2 * A / (N + 2) * RHO_G**N


class Glacier:
    def __init__(self, n=120, dx=200.0):
        self.dx = dx
        x = np.arange(n) * dx
        self.bed = 1500.0 - 0.06 * x[None, :] + 150.0 * np.cos(np.linspace(-3, 3, n))[:, None]
        self.H = np.zeros((n, n))
        self.t = 0.0
        self.volume = []
        self.advanced = None

    def diffusivity(self, s):
        H = self.H
        Hm = 0.25 * (H[1:, 1:] + H[:-1, 1:] + H[1:, :-1] + H[:-1, :-1])
        sx = (s[1:, 1:] - s[1:, :-1] + s[:-1, 1:] - s[:-1, :-1]) / (2 * self.dx)
        sy = (s[1:, 1:] - s[:-1, 1:] + s[1:, :-1] - s[:-1, :-1]) / (2 * self.dx)
        return GAMMA * Hm ** (N + 2) * (sx**2 + sy**2) ** ((N - 1) / 2)

    def flow(self, dt):
        s = self.bed + self.H
        D = self.diffusivity(s)
        dx = 0.5 * (D[1:, :] + D[:-1, :])
        dy = 0.5 * (D[:, 1:] + D[:, :-1])
        fx = dx * (s[1:-1, 1:] - s[1:-1, :-1]) / self.dx
        fy = dy * (s[1:, 1:-1] - s[:-1, 1:-1]) / self.dx
        self.H[1:-1, 1:-1] += dt * ((fx[:, 1:] - fx[:, :-1]) + (fy[1:, :] - fy[:-1, :])) / self.dx
        np.maximum(self.H, 0.0, out=self.H)

    def balance(self, ela=1250.0):
        b = 0.007 * (self.bed + self.H - ela - 50 * np.sin(2 * np.pi * self.t / 100))
        return np.clip(b, -5.0, 1.5)

    def year(self):
        b = self.balance()
        self.H = np.maximum(self.H + b, 0.0)
        D = self.diffusivity(self.bed + self.H)
        steps = max(1, int(np.ceil(8 * D.max() / self.dx**2)))
        for _ in range(min(steps, 20)):
            self.flow(1.0 / steps)
        self.t += 1.0
        self.volume.append(self.H.sum() * self.dx**2)
        front = np.flatnonzero(self.H.max(axis=0) > 1.0)
        self.advanced = front[-1] if front.size else None


def run(steps):
    glacier = Glacier()
    for _ in range(steps):
        glacier.year()
    return {"H": glacier.H, "volume": np.array(glacier.volume)}
