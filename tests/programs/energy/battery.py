"""A lithium cell: two spherical diffusions, Butler-Volmer, open-circuit curves, a pack in parallel, a charger's states."""

from enum import Enum, auto

import numpy as np
from scipy.interpolate import CubicSpline, PchipInterpolator


class Mode(Enum):
    CC = auto()
    CV = auto()
    REST = auto()
    DISCHARGE = auto()


SOC = np.linspace(0, 1, 12)
OCV_N = CubicSpline(SOC, 0.8 * np.exp(-6 * SOC) + 0.12 - 0.05 * SOC)
OCV_P = PchipInterpolator(SOC, 4.4 - 0.9 * SOC - 0.25 * SOC**6)


class Electrode:
    def __init__(self, cells, shells, D, radius, start, sign):
        self.n = shells
        self.r = np.linspace(0, radius, shells + 1)
        self.area = 4 * np.pi * self.r**2
        self.vol = 4 / 3 * np.pi * np.diff(self.r**3)
        self.D, self.dr, self.sign = D, radius / shells, sign
        self.c = np.full((cells, shells), start)

    def step(self, flux, temperature, dt):
        D = self.D * np.exp(1000 * (1 / 298 - 1 / temperature))[:, None]
        N = -D * np.diff(self.c, axis=1) / self.dr * self.area[1:-1]
        F = np.zeros((self.c.shape[0], self.n + 1))
        F[:, 1:-1] = N
        F[:, -1] = self.sign * flux * self.area[-1]
        self.c -= dt * np.diff(F, axis=1) / self.vol

    @property
    def surface(self):
        return np.clip(1.5 * self.c[:, -1] - 0.5 * self.c[:, -2], 0.01, 0.99)

    @property
    def mean(self):
        return self.c @ self.vol / self.vol.sum()


class Pack:
    def __init__(self, cells=200, seed=0):
        rng = np.random.default_rng(seed)
        self.neg = Electrode(cells, 20, 4e-4, 1.0, 0.8, +1)
        self.pos = Electrode(cells, 20, 6e-4, 1.0, 0.3, -1)
        self.R = 0.02 * (1 + 0.1 * rng.standard_normal(cells))
        self.T = np.full(cells, 298.0)
        self.q = 60 * (1 + 0.02 * rng.standard_normal(cells))
        self.aged = np.zeros(cells)

    def potential(self):
        return OCV_P(self.pos.surface) - OCV_N(self.neg.surface)

    def share(self, total, rounds=8):
        """Currents of cells in parallel: one voltage for all."""
        i = np.full(self.R.size, total / self.R.size)
        e = self.potential()
        for _ in range(rounds):
            eta = 0.05 * np.arcsinh(i / 2)
            v = e - i * self.R - eta
            g = 1 / (self.R + 0.05 / np.sqrt(4 + i**2))
            common = (np.sum(g * v) + 0.0) / g.sum()
            i = i + g * (v - common)
            i += (total - i.sum()) / i.size
        return i, common

    def step(self, total, dt):
        i, v = self.share(total)
        self.neg.step(i / self.q / 20, self.T, dt)
        self.pos.step(i / self.q / 20, self.T, dt)
        heat = i**2 * self.R + 0.05 * np.abs(i)
        neighbours = np.convolve(np.pad(self.T, 1, mode="edge"), [0.5, 0, 0.5], mode="valid")
        self.T += dt * (heat * 0.05 - 0.01 * (self.T - 298) + 0.02 * (neighbours - self.T))
        self.aged += dt * np.abs(i) * np.exp((self.T - 298) / 15) * 1e-6
        return v


class Charger:
    def __init__(self, pack):
        self.pack, self.mode, self.current = pack, Mode.DISCHARGE, 150.0
        self.log = {"v": [], "i": [], "mode": [], "soc": []}
        self.waited = 0

    def control(self, v):
        soc = self.pack.neg.mean.mean()
        match self.mode:
            case Mode.DISCHARGE if v < 3.0 or soc < 0.3:
                self.mode, self.waited = Mode.REST, 0
            case Mode.REST:
                self.waited += 1
                if self.waited > 5:
                    self.mode = Mode.CC if soc < 0.5 else Mode.DISCHARGE
            case Mode.CC if v > 4.1 or soc > 0.85:
                self.mode = Mode.CV
            case Mode.CV:
                self.current *= 0.9
                if abs(self.current) < 20:
                    self.mode, self.waited = Mode.REST, 0
        if self.mode is not Mode.CV:
            self.current = {Mode.CC: -180.0, Mode.REST: 0.0, Mode.DISCHARGE: 150.0}[self.mode]
        self.log["v"].append(v)
        self.log["i"].append(self.current)
        self.log["mode"].append(self.mode.name)
        self.log["soc"].append(soc)


def run(steps):
    pack = Pack()
    charger = Charger(pack)
    for k in range(steps * 4):
        v = pack.step(charger.current, 0.5)
        charger.control(v)
    log = charger.log
    return {
        "v": log["v"],
        "i": log["i"],
        "soc": log["soc"],
        "modes": "".join(m[0] for m in log["mode"]),
        "T": pack.T,
        "aged": pack.aged,
    }
