"""Flow past a cylinder: D2Q9, single relaxation time, drag by momentum exchange."""

import os

import numpy as np

steps = int(os.environ.get("STEPS", "1000"))

nx, ny = 240, 80
re, u_in = 150.0, 0.06
radius = ny // 9
nu = u_in * radius / re
omega = 1 / (3 * nu + 0.5)

c = np.array([(x, y) for x in (0, 1, -1) for y in (0, 1, -1)])
w = np.ones(9) / 36
norm = np.abs(c).sum(axis=1)
w[norm == 0] = 4 / 9
w[norm == 1] = 1 / 9
opposite = [int(np.where((c == -each).all(axis=1))[0][0]) for each in c]
i_left = np.arange(9)[c[:, 0] < 0]
i_mid = np.arange(9)[c[:, 0] == 0]
i_right = np.arange(9)[c[:, 0] > 0]

obstacle = np.fromfunction(lambda x, y: (x - nx / 4) ** 2 + (y - ny / 2) ** 2 < radius**2, (nx, ny))
velocity = np.fromfunction(lambda d, x, y: (1 - d) * u_in * (1 + 1e-3 * np.sin(y / (ny - 1) * 2 * np.pi)), (2, nx, ny))


def equilibrium(rho, u):
    cu = 3 * np.einsum("qd,dxy->qxy", c, u)
    usq = 1.5 * (u[0] ** 2 + u[1] ** 2)
    feq = np.zeros((9, nx, ny))
    for q in range(9):
        feq[q] = rho * w[q] * (1 + cu[q] + 0.5 * cu[q] ** 2 - usq)
    return feq


def main(steps):
    fin = equilibrium(1.0, velocity)
    drags = []
    for t in range(steps):
        fin[i_left, -1, :] = fin[i_left, -2, :]
        rho = fin.sum(axis=0)
        u = np.einsum("qd,qxy->dxy", c.astype(float), fin) / rho
        u[:, 0, :] = velocity[:, 0, :]
        rho[0, :] = 1 / (1 - u[0, 0, :]) * (fin[i_mid, 0, :].sum(axis=0) + 2 * fin[i_left, 0, :].sum(axis=0))
        feq = equilibrium(rho, u)
        fin[i_right, 0, :] = feq[i_right, 0, :]
        fout = fin - omega * (fin - feq)
        for q in range(9):
            fout[q, obstacle] = fin[opposite[q], obstacle]
        if t % 20 == 0:
            drags.append(float(sum(2 * c[q, 0] * fout[q, obstacle].sum() for q in range(9))))
        for q in range(9):
            fin[q] = np.roll(np.roll(fout[q], c[q, 0], axis=0), c[q, 1], axis=1)
        if t % 200 == 0:
            print(f"{t}: mass {rho.sum():.8f}, fastest {np.sqrt(u[0] ** 2 + u[1] ** 2).max():.8f}")
    return u, rho, drags


u, rho, drags = main(steps)
print(f"{np.mean(drags):.8f} {rho.std():.10f}")
