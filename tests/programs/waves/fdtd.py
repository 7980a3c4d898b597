"""Maxwell's equations in two dimensions (TMz): Yee grid, an absorbing sponge, a dielectric lens, probes."""

import math

import numpy as np

C0 = 299_792_458.0


class Grid:
    def __init__(self, nx=220, ny=180, dx=1e-3):
        self.dx, self.dt = dx, dx / (2 * C0)
        self.ez = np.zeros((nx, ny))
        self.hx = np.zeros((nx, ny - 1))
        self.hy = np.zeros((nx - 1, ny))
        x, y = np.ogrid[:nx, :ny]
        self.eps = np.ones((nx, ny))
        self.eps[(x - nx // 2) ** 2 + (y - ny // 2) ** 2 < 30**2] = 4.0
        edge = np.minimum(np.minimum(x, nx - 1 - x), np.minimum(y, ny - 1 - y))
        self.sigma = np.where(edge < 15, ((15 - edge) / 15.0) ** 3, 0.0)
        self.n = 0
        self.probes = {"front": (40, ny // 2), "behind": (nx - 40, ny // 2)}
        self.signals = {name: np.zeros(4000) for name in self.probes}

    def magnetic(self):
        self.hx -= 0.5 * (self.ez[:, 1:] - self.ez[:, :-1])
        self.hy += 0.5 * (self.ez[1:] - self.ez[:-1])

    def electric(self):
        curl = (self.hy[1:, 1:-1] - self.hy[:-1, 1:-1]) - (self.hx[1:-1, 1:] - self.hx[1:-1, :-1])
        loss = self.sigma[1:-1, 1:-1]
        inner = self.ez[1:-1, 1:-1]
        inner *= (1 - loss) / (1 + loss)
        inner += 0.5 * curl / (self.eps[1:-1, 1:-1] * (1 + loss))

    def source(self, f=1.5e10):
        t = self.n * self.dt
        t0 = 30 * self.dt
        pulse = math.exp(-(((t - t0) / (10 * self.dt)) ** 2)) + 0.2 * math.sin(2 * math.pi * f * t)
        self.ez[20, 60:120] += pulse

    def step(self):
        self.magnetic()
        self.electric()
        self.source()
        for name, (i, j) in self.probes.items():
            self.signals[name][self.n] = self.ez[i, j]
        self.n += 1


def spectrum(signal, dt):
    window = np.hanning(signal.size)
    power = np.abs(np.fft.rfft(signal * window)) ** 2
    return np.fft.rfftfreq(signal.size, dt), power


def run(steps):
    g = Grid()
    for _ in range(steps):
        g.step()
    f, p = spectrum(g.signals["behind"][: g.n], g.dt)
    return {"ez": g.ez, "hx": g.hx, "front": g.signals["front"][: g.n], "power": p}
