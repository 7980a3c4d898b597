"""Shallow water on a beta plane: the model is a generator of states, and a loop takes what it wants of them."""

import os

import numpy as np

steps = int(os.environ.get("STEPS", "4000"))

nx, ny, dx, dt = 200, 100, 5e3, 20.0
depth, gravity, f0, beta = 100.0, 9.81, 1e-4, 2e-11
y = (np.arange(ny) - ny / 2) * dx
coriolis = (f0 + beta * y)[:, None]


def initial():
    yy, xx = np.meshgrid(np.arange(ny), np.arange(nx), indexing="ij")
    h = depth + np.exp(-((xx - nx / 2) ** 2 + (yy - ny / 2) ** 2) / 64.0)
    return h, np.zeros((ny, nx)), np.zeros((ny, nx))


def edges(a, sign=1):
    a[0, :] = sign * a[1, :]
    a[-1, :] = sign * a[-2, :]
    a[:, 0] = a[:, -2]
    a[:, -1] = a[:, 1]


def model(steps, viscosity=100.0):
    h, u, v = initial()
    for step in range(steps):
        hx = (h[1:-1, 2:] - h[1:-1, :-2]) / (2 * dx)
        hy = (h[2:, 1:-1] - h[:-2, 1:-1]) / (2 * dx)
        un, vn, hn = u.copy(), v.copy(), h.copy()
        lu = (u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1] - 4 * u[1:-1, 1:-1]) / dx**2
        lv = (v[1:-1, 2:] + v[1:-1, :-2] + v[2:, 1:-1] + v[:-2, 1:-1] - 4 * v[1:-1, 1:-1]) / dx**2
        un[1:-1, 1:-1] += dt * (coriolis[1:-1] * v[1:-1, 1:-1] - gravity * hx + viscosity * lu)
        vn[1:-1, 1:-1] += dt * (-coriolis[1:-1] * u[1:-1, 1:-1] - gravity * hy + viscosity * lv)
        edges(un)
        edges(vn, -1)
        fx, fy = h * un, h * vn
        hn[1:-1, 1:-1] -= dt * ((fx[1:-1, 2:] - fx[1:-1, :-2]) / (2 * dx) + (fy[2:, 1:-1] - fy[:-2, 1:-1]) / (2 * dx))
        edges(hn)
        h, u, v = hn, un, vn
        yield step, h, u, v


for step, h, u, v in model(steps):
    if step % 500 == 0:
        print(f"{step:5d} height {h.min():.8f} to {h.max():.8f}, fastest {np.hypot(u, v).max():.8f}")
