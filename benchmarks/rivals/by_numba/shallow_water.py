"""A drop falls into a basin: the shallow water equations, forward in time, on a periodic grid."""

import os

import numba
import numpy as np

nx, ny = 256, 192
steps = int(os.environ.get("STEPS", "3000"))
g = 9.81  # m/s2
f = 1e-4  # 1/s
depth = 100.0  # m
dx = dy = 1000.0  # m
dt = 0.2 * dx / np.sqrt(g * depth)  # s

x = np.arange(nx) * dx
y = np.arange(ny) * dy
X, Y = np.meshgrid(x, y)
h = np.exp(-((X - x.mean()) ** 2 + (Y - y.mean()) ** 2) / (20 * dx) ** 2)  # m
u = np.zeros((ny, nx))  # m/s
v = np.zeros((ny, nx))


@numba.njit(cache=True)
def step(u, v, h, dt, dx, dy, g, f, depth):
    ny, nx = u.shape
    u_new, v_new, h_new = np.empty_like(u), np.empty_like(u), np.empty_like(u)
    for j in range(ny):
        s, n = (j - 1) % ny, (j + 1) % ny
        for i in range(nx):
            w, e = (i - 1) % nx, (i + 1) % nx
            slope = g * ((h[j, e] - h[j, w]) / (2 * dx))
            along = u[j, i] * ((u[j, e] - u[j, w]) / (2 * dx))
            across = v[j, i] * ((u[n, i] - u[s, i]) / (2 * dy))
            u_new[j, i] = u[j, i] + dt * (f * v[j, i] - slope - along - across)
    for j in range(ny):
        s, n = (j - 1) % ny, (j + 1) % ny
        for i in range(nx):
            w, e = (i - 1) % nx, (i + 1) % nx
            slope = g * ((h[n, i] - h[s, i]) / (2 * dy))
            along = u_new[j, i] * ((v[j, e] - v[j, w]) / (2 * dx))
            across = v[j, i] * ((v[n, i] - v[s, i]) / (2 * dy))
            v_new[j, i] = v[j, i] + dt * (-f * u_new[j, i] - slope - along - across)
    for j in range(ny):
        s, n = (j - 1) % ny, (j + 1) % ny
        for i in range(nx):
            w, e = (i - 1) % nx, (i + 1) % nx
            east = ((depth + h[j, e]) * u_new[j, e] - (depth + h[j, w]) * u_new[j, w]) / (2 * dx)
            north = ((depth + h[n, i]) * v_new[n, i] - (depth + h[s, i]) * v_new[s, i]) / (2 * dy)
            h_new[j, i] = h[j, i] - dt * (east + north)
    return smooth(u_new), smooth(v_new), smooth(h_new)


@numba.njit(cache=True)
def smooth(a):
    ny, nx = a.shape
    made = np.empty_like(a)
    for j in range(ny):
        s, n = (j - 1) % ny, (j + 1) % ny
        for i in range(nx):
            around = a[s, i] + a[n, i] + a[j, i - 1] + a[j, (i + 1) % nx]
            made[j, i] = a[j, i] + 0.01 * (around - 4 * a[j, i])
    return made


for n in range(steps):
    u, v, h = step(u, v, h, dt, dx, dy, g, f, depth)
    if n % 500 == 0:
        print(f"step {n}: height {h.min():.4f} to {h.max():.4f} m, energy {0.5 * np.sum(u**2 + v**2 + g * h**2):.5e}")

print("end", f"{h.mean():.6e} {np.abs(u).max():.6e} {np.abs(v).max():.6e}")
