"""Lattice Boltzmann flow past a plate, D2Q9, with an enumeration of cell kinds."""

import os
from enum import IntEnum

import numpy as np

steps = int(os.environ.get("STEPS", "450"))


class Cell(IntEnum):
    FLUID = 0
    WALL = 1
    INLET = 2
    OUTLET = 3


nx, ny = 260, 90
c = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
w = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
opposite = [0, 3, 4, 1, 2, 7, 8, 5, 6]
kind = np.full((nx, ny), Cell.FLUID)
kind[:, 0] = kind[:, -1] = Cell.WALL
kind[60:63, 30:60] = Cell.WALL
kind[0, 1:-1] = Cell.INLET
kind[-1, 1:-1] = Cell.OUTLET
omega = 1.7


def equilibrium(rho, u):
    cu = np.einsum("qd,dxy->qxy", c, u)
    usq = (u**2).sum(axis=0)
    return w[:, None, None] * rho * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * usq)


def collide(f):
    rho = f.sum(axis=0)
    u = np.einsum("qd,qxy->dxy", c, f) / rho
    u[0][kind == Cell.INLET] = 0.08
    u[1][kind == Cell.INLET] = 0.0
    rho[kind == Cell.INLET] = 1.0
    feq = equilibrium(rho, u)
    out = f - omega * (f - feq)
    out[:, kind == Cell.INLET] = feq[:, kind == Cell.INLET]
    wall = kind == Cell.WALL
    out[:, wall] = f[opposite][:, wall]
    return out, rho, u


def stream(f):
    g = np.empty_like(f)
    for q in range(9):
        g[q] = np.roll(f[q], shift=tuple(c[q]), axis=(0, 1))
    g[[3, 6, 7], -1, :] = g[[3, 6, 7], -2, :]
    return g


u0 = np.zeros((2, nx, ny))
u0[0] = 0.08
f = equilibrium(np.ones((nx, ny)), u0)
for step in range(steps):
    f, rho, u = collide(f)
    f = stream(f)
    if step % 75 == 0:
        curl = np.gradient(u[1], axis=0) - np.gradient(u[0], axis=1)
        print(
            f"{step:5d} mass {rho.sum():.8f} drag {f[1, 59, 30:60].sum() - f[3, 63, 30:60].sum():.9f} curl {np.abs(curl).max():.9f}"
        )
print(f"{np.abs(u).sum():.10f}")
