"""A tracer on the sphere: semi-Lagrangian advection with scipy's interpolation, and a source that moves."""

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

R = 6.371e6


class Tracer:
    def __init__(self, nlat=90, nlon=180):
        self.lat = np.radians(np.linspace(-89, 89, nlat))[:, None]
        self.lon = np.radians(np.arange(nlon) * 360 / nlon)[None, :]
        self.c = np.zeros((nlat, nlon))
        self.shape = (nlat, nlon)
        self.rows, self.cols = np.meshgrid(np.arange(nlat), np.arange(nlon), indexing="ij")
        self.day = 0.0
        self.clock = {"steps": 0, "mass": []}

    def winds(self):
        phase = 2 * np.pi * self.day / 12
        u = 30 * np.cos(self.lat) + 10 * np.sin(3 * self.lon + phase) * np.cos(self.lat) ** 2
        v = 12 * np.sin(2 * self.lon - phase) * np.cos(self.lat)
        return u, v

    def departure(self, u, v, dt):
        dlat = np.pi / self.shape[0]
        dlon = 2 * np.pi / self.shape[1]
        r = self.rows - v * dt / R / dlat
        c = self.cols - u * dt / (R * np.maximum(np.cos(self.lat), 0.1)) / dlon
        r = np.clip(r, 0, self.shape[0] - 1)
        return np.stack([r, c % self.shape[1]])

    def emit(self, dt):
        row = int(self.shape[0] * (0.5 + 0.3 * np.sin(self.day / 3)))
        col = int(self.shape[1] * ((self.day / 20) % 1))
        self.c[row, col] += dt / 3600

    def advance(self, dt=1800.0):
        u, v = self.winds()
        self.emit(dt)
        self.c = map_coordinates(self.c, self.departure(u, v, dt), order=1, mode="grid-wrap")
        if self.clock["steps"] % 12 == 11:
            self.c = gaussian_filter(self.c, 0.5, mode=("nearest", "wrap"))
        self.c *= np.exp(-dt / (8 * 86400))
        self.day += dt / 86400
        self.clock["steps"] += 1
        self.clock["mass"].append((self.c * np.cos(self.lat)).sum())


def run(steps):
    t = Tracer()
    for _ in range(steps):
        t.advance()
    return {"c": t.c, "mass": np.array(t.clock["mass"])}
