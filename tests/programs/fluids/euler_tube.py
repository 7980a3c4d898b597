"""Sod's shock tube and a strong blast: finite volumes, MUSCL with van Leer's limiter, HLLC fluxes, a CFL time step."""

from dataclasses import dataclass

import numpy as np

GAMMA = 1.4


@dataclass
class State:
    rho: np.ndarray
    mom: np.ndarray
    ene: np.ndarray
    t: float = 0.0

    def primitive(self):
        u = self.mom / self.rho
        p = (GAMMA - 1) * (self.ene - 0.5 * self.rho * u**2)
        return self.rho, u, np.maximum(p, 1e-10)


def sod(n=2000):
    x = (np.arange(n) + 0.5) / n
    left = x < 0.5
    rho = np.where(left, 1.0, 0.125)
    p = np.where(left, 1.0, 0.1)
    return State(rho, np.zeros(n), p / (GAMMA - 1))


def limited(a):
    """Left and right values at the faces, by van Leer's slopes."""
    d = np.diff(a)
    num = d[1:] * d[:-1]
    den = d[1:] + d[:-1]
    slope = np.zeros_like(a)
    ok = num > 0
    slope[1:-1][ok] = 2 * num[ok] / den[ok]
    return a + 0.5 * slope, a - 0.5 * slope


def hllc(left, right):
    rl, ul, pl = left
    rr, ur, pr = right
    cl, cr = np.sqrt(GAMMA * pl / rl), np.sqrt(GAMMA * pr / rr)
    sl = np.minimum(ul - cl, ur - cr)
    sr = np.maximum(ul + cl, ur + cr)
    sm = (pr - pl + rl * ul * (sl - ul) - rr * ur * (sr - ur)) / (rl * (sl - ul) - rr * (sr - ur))
    el = pl / (GAMMA - 1) + 0.5 * rl * ul**2
    er = pr / (GAMMA - 1) + 0.5 * rr * ur**2
    fl = np.stack([rl * ul, rl * ul**2 + pl, ul * (el + pl)])
    fr = np.stack([rr * ur, rr * ur**2 + pr, ur * (er + pr)])
    ql, qr = np.stack([rl, rl * ul, el]), np.stack([rr, rr * ur, er])
    al, ar = rl * (sl - ul) / (sl - sm), rr * (sr - ur) / (sr - sm)
    starl = al * np.stack([np.ones_like(sm), sm, el / rl + (sm - ul) * (sm + pl / (rl * (sl - ul)))])
    starr = ar * np.stack([np.ones_like(sm), sm, er / rr + (sm - ur) * (sm + pr / (rr * (sr - ur)))])
    return np.where(
        sl >= 0, fl, np.where(sm >= 0, fl + sl * (starl - ql), np.where(sr >= 0, fr + sr * (starr - qr), fr))
    )


def step(state, dx, cfl=0.4):
    rho, u, p = state.primitive()
    dt = cfl * dx / np.max(np.abs(u) + np.sqrt(GAMMA * p / rho))
    faces = [limited(a) for a in (rho, u, p)]
    left = [f[0][:-1] for f in faces]
    right = [f[1][1:] for f in faces]
    flux = hllc(left, right)
    change = np.zeros((3, rho.size))
    change[:, 1:-1] = -(flux[:, 1:] - flux[:, :-1]) * (dt / dx)
    return State(state.rho + change[0], state.mom + change[1], state.ene + change[2], state.t + float(dt))


def run(steps):
    state = sod()
    times = []
    for _ in range(steps):
        state = step(state, 1.0 / state.rho.size)
        times.append(state.t)
    return {"rho": state.rho, "mom": state.mom, "ene": state.ene, "times": np.array(times)}
