"""Overland flow on a digital elevation model: slopes, kinematic waves, infiltration, a lake that spills."""

import numpy as np

MANNING = 0.05  # s/m^(1/3)
OFFSETS = ((-1, 0), (1, 0), (0, -1), (0, 1))


def terrain(n, seed=1):
    rng = np.random.default_rng(seed)
    k = np.fft.fftfreq(n)[:, None] ** 2 + np.fft.rfftfreq(n)[None, :] ** 2
    k[0, 0] = 1.0
    z = np.fft.irfft2((rng.standard_normal(k.shape) + 1j * rng.standard_normal(k.shape)) / k**1.1, (n, n))
    z = 50 * (z - z.min()) / np.ptp(z)
    return z + np.linspace(30, 0, n)[:, None]


def shifted(a, dy, dx):
    """The neighbour's value, the edge repeated."""
    padded = np.pad(a, 1, mode="edge")
    n, m = a.shape
    return padded[1 + dy : 1 + dy + n, 1 + dx : 1 + dx + m]


class Catchment:
    def __init__(self, n=150, cell=30.0):
        self.z = terrain(n)
        self.cell = cell
        self.water = np.zeros((n, n))
        self.soil = np.full((n, n), 0.05)
        self.outflow = 0.0
        self.record = {"depth": [], "out": []}

    def infiltrate(self, dt, conductivity=2e-6, capacity=0.12):
        room = np.maximum(capacity - self.soil, 0.0)
        taken = np.minimum(self.water, np.minimum(conductivity * dt, room))
        self.water -= taken
        self.soil += taken

    def route(self, dt):
        surface = self.z + self.water
        out = np.zeros_like(self.water)
        incoming = np.zeros_like(self.water)
        for dy, dx in OFFSETS:
            slope = (surface - shifted(surface, dy, dx)) / self.cell
            down = slope > 0
            speed = np.zeros_like(slope)
            speed[down] = self.water[down] ** (2 / 3) * np.sqrt(slope[down]) / MANNING
            moved = np.minimum(speed * self.water * dt / self.cell, 0.2 * self.water)
            out += moved
            incoming += np.roll(moved, (dy, dx), axis=(0, 1))
        self.outflow += out[-1].sum() * self.cell**2
        incoming[0] = 0.0
        self.water = np.maximum(self.water - out + incoming, 0.0)

    def step(self, rain, dt):
        self.water += rain * dt
        self.infiltrate(dt)
        n = max(1, int(np.ceil(self.water.max() * dt / (4 * self.cell))))
        for _ in range(n):
            self.route(dt / n)
        self.record["depth"].append(self.water.mean())
        self.record["out"].append(self.outflow)


def storm(k):
    return 1e-5 * np.exp(-(((k - 15) / 8) ** 2))


def run(steps):
    basin = Catchment()
    for k in range(steps):
        basin.step(storm(k), 60.0)
    return {"water": basin.water, "soil": basin.soil, **{k: np.array(v) for k, v in basin.record.items()}}
