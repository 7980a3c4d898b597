"""Lid-driven cavity: Chorin's projection; the pressure by Jacobi sweeps until the residual is small."""

import numpy as np


def laplacian(a, dx):
    out = np.zeros_like(a)
    out[1:-1, 1:-1] = (a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4 * a[1:-1, 1:-1]) / dx**2
    return out


def advection(a, u, v, dx):
    out = np.zeros_like(a)
    c = a[1:-1, 1:-1]
    uc, vc = u[1:-1, 1:-1], v[1:-1, 1:-1]
    out[1:-1, 1:-1] = (
        np.where(uc > 0, uc * (c - a[1:-1, :-2]), uc * (a[1:-1, 2:] - c)) / dx
        + np.where(vc > 0, vc * (c - a[:-2, 1:-1]), vc * (a[2:, 1:-1] - c)) / dx
    )
    return out


def solve_pressure(p, rhs, dx, tol=1e-3, most=500):
    """Returns the pressure and how many sweeps it took."""
    sweeps = 0
    change = 1.0
    while change > tol and sweeps < most:
        new = p.copy()
        new[1:-1, 1:-1] = 0.25 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - dx**2 * rhs[1:-1, 1:-1])
        new[:, 0], new[:, -1] = new[:, 1], new[:, -2]
        new[0, :], new[-1, :] = new[1, :], 0.0
        change = np.abs(new - p).max() / (np.abs(new).max() + 1e-12)
        p = new
        sweeps += 1
    return p, sweeps


def walls(u, v, lid=1.0):
    for a in (u, v):
        a[0, :] = a[:, 0] = a[:, -1] = 0.0
    u[-1, :] = lid
    v[-1, :] = 0.0


def project(u, v, p, dx, dt):
    div = np.zeros_like(u)
    div[1:-1, 1:-1] = (u[1:-1, 2:] - u[1:-1, :-2] + v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dx)
    p, sweeps = solve_pressure(p, div / dt, dx)
    u[1:-1, 1:-1] -= dt * (p[1:-1, 2:] - p[1:-1, :-2]) / (2 * dx)
    v[1:-1, 1:-1] -= dt * (p[2:, 1:-1] - p[:-2, 1:-1]) / (2 * dx)
    return p, sweeps


def run(steps, n=96, nu=0.01):
    dx = 1.0 / (n - 1)
    dt = 0.2 * min(dx, dx**2 / nu)
    u, v, p = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    walls(u, v)
    counts = []
    for _ in range(steps):
        un = u + dt * (nu * laplacian(u, dx) - advection(u, u, v, dx))
        vn = v + dt * (nu * laplacian(v, dx) - advection(v, u, v, dx))
        walls(un, vn)
        p, sweeps = project(un, vn, p, dx, dt)
        walls(un, vn)
        u, v = un, vn
        counts.append(sweeps)
    return {"u": u, "v": v, "p": p, "sweeps": np.array(counts)}
