"""A zonal energy balance model with ice-albedo feedback, seasons, a mixed layer, and events that are logged."""

import logging
from collections import defaultdict

import numpy as np

log = logging.getLogger(__name__)

S0, A, B, D = 1365.0, 210.0, 2.1, 0.55  # W/m2, W/m2, W/m2/K, W/m2/K
YEAR = 365.25 * 86400.0
elapsed = 0.0


class Planet:
    def __init__(self, n=720, members=24, seed=3):
        self.x = np.linspace(-1, 1, n + 1)
        self.mid = 0.5 * (self.x[1:] + self.x[:-1])
        self.dx = self.x[1] - self.x[0]
        rng = np.random.default_rng(seed)
        self.depth = 40.0 + 30.0 * rng.random((members, 1))
        self.T = 15.0 - 35.0 * self.mid**2 + rng.standard_normal((members, n))
        self.tilt = np.radians(23.4)
        self.events = defaultdict(list)

    def insolation(self, t):
        lat = np.arcsin(self.mid)
        dec = np.arcsin(np.sin(self.tilt) * np.sin(2 * np.pi * t / YEAR))
        cosh0 = np.clip(-np.tan(lat) * np.tan(dec), -1.0, 1.0)
        h0 = np.arccos(cosh0)
        return S0 / np.pi * (h0 * np.sin(lat) * np.sin(dec) + np.cos(lat) * np.cos(dec) * np.sin(h0))

    def albedo(self):
        smooth = 0.5 * (1 + np.tanh((self.T + 2.0) / 2.0))
        a = 0.62 - 0.30 * smooth
        a[self.T > 25.0] = 0.28
        return a

    def diffusion(self):
        flux = np.zeros((self.T.shape[0], self.x.size))
        flux[:, 1:-1] = D * (1 - self.x[1:-1] ** 2) * np.diff(self.T, axis=1) / self.dx
        return np.diff(flux, axis=1) / self.dx

    def step(self, t, dt):
        global elapsed
        capacity = 4.2e6 * self.depth
        forcing = self.insolation(t) * (1 - self.albedo())
        self.T = self.T + dt / capacity * (forcing - A - B * self.T + self.diffusion())
        elapsed += dt
        ice = self.T < -2.0
        share = ice.mean(axis=1)
        log.debug("ice cover between %.3f and %.3f", share.min(), share.max())
        if share.max() > 0.9:
            self.events["snowball"].append(t)
        return share


def run(steps):
    planet = Planet()
    cover = []
    dt = YEAR / 180
    for k in range(steps):
        cover.append(planet.step(k * dt, dt))
    return {"T": planet.T, "cover": np.array(cover), "elapsed": np.float64(elapsed)}
