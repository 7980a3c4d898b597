"""Flow around a cylinder by the lattice Boltzmann method (D2Q9, BGK), after the textbook recipe."""

import numpy as np

V = np.array([[1, 1], [1, 0], [1, -1], [0, 1], [0, 0], [0, -1], [-1, 1], [-1, 0], [-1, -1]])
W = np.array([1 / 36, 1 / 9, 1 / 36, 1 / 9, 4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36])
LEFT, MIDDLE, RIGHT = np.arange(0, 3), np.arange(3, 6), np.arange(6, 9)


def macroscopic(fin):
    rho = np.sum(fin, axis=0)
    u = np.zeros((2, *fin.shape[1:]))
    for i in range(9):
        u[0] += V[i, 0] * fin[i]
        u[1] += V[i, 1] * fin[i]
    u /= rho
    return rho, u


def equilibrium(rho, u):
    usqr = 1.5 * (u[0] ** 2 + u[1] ** 2)
    feq = np.zeros((9, *rho.shape))
    for i in range(9):
        cu = 3.0 * (V[i, 0] * u[0] + V[i, 1] * u[1])
        feq[i] = rho * W[i] * (1.0 + cu + 0.5 * cu**2 - usqr)
    return feq


def inflow(u0, ny):
    y = np.arange(ny)
    return u0 * (1 + 1e-4 * np.sin(y / (ny - 1) * 2 * np.pi))


class Cylinder:
    def __init__(self, nx=160, ny=64, reynolds=120.0, u0=0.04):
        x, y = np.meshgrid(np.arange(nx), np.arange(ny), indexing="ij")
        self.solid = (x - nx // 4) ** 2 + (y - ny // 2) ** 2 < (ny // 9) ** 2
        self.omega = 1.0 / (3.0 * u0 * (ny // 9) / reynolds + 0.5)
        self.vel = np.zeros((2, nx, ny))
        self.vel[0] = inflow(u0, ny)
        self.fin = equilibrium(np.ones((nx, ny)), self.vel)
        self.u = self.vel

    def step(self):
        fin = self.fin
        fin[RIGHT, -1, :] = fin[RIGHT, -2, :]  # outflow
        rho, u = macroscopic(fin)
        u[:, 0, :] = self.vel[:, 0, :]
        rho[0] = (np.sum(fin[MIDDLE, 0, :], axis=0) + 2 * np.sum(fin[RIGHT, 0, :], axis=0)) / (1 - u[0, 0, :])
        feq = equilibrium(rho, u)
        fin[LEFT, 0, :] = feq[LEFT, 0, :] + fin[RIGHT[::-1], 0, :] - feq[RIGHT[::-1], 0, :]
        fout = fin - self.omega * (fin - feq)
        for i in range(9):
            fout[i, self.solid] = fin[8 - i, self.solid]
        for i in range(9):
            fin[i] = np.roll(np.roll(fout[i], V[i, 0], axis=0), V[i, 1], axis=1)
        self.u = u


def drag(model):
    speed = np.sqrt(model.u[0] ** 2 + model.u[1] ** 2)
    speed[model.solid] = 0.0
    return speed


def run(steps):
    model = Cylinder()
    for _ in range(steps):
        model.step()
    return {"fin": model.fin, "u": model.u, "speed": drag(model)}
