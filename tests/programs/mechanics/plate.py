"""Plane-stress finite elements (Q4) of a cantilever plate under a moving load, explicit central differences with damping."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Material:
    E: float = 70e9
    nu: float = 0.33
    rho: float = 2700.0
    yield_stress: float = 2.0e5

    @property
    def D(self):
        f = self.E / (1 - self.nu**2)
        return f * np.array([[1, self.nu, 0], [self.nu, 1, 0], [0, 0, (1 - self.nu) / 2]])


def rectangle_mesh(nx, ny, lx, ly):
    x, y = np.meshgrid(np.linspace(0, lx, nx + 1), np.linspace(0, ly, ny + 1), indexing="ij")
    nodes = np.column_stack([x.ravel(), y.ravel()])
    ids = np.arange((nx + 1) * (ny + 1)).reshape(nx + 1, ny + 1)
    conn = np.stack([ids[:-1, :-1], ids[1:, :-1], ids[1:, 1:], ids[:-1, 1:]], axis=-1).reshape(-1, 4)
    return nodes, conn


def shape_gradients(xi, eta):
    return 0.25 * np.array([[-(1 - eta), 1 - eta, 1 + eta, -(1 + eta)], [-(1 - xi), -(1 + xi), 1 + xi, 1 - xi]])


class Plate:
    GAUSS = (-1 / np.sqrt(3), 1 / np.sqrt(3))

    def __init__(self, nx, ny, material):
        self.material = material
        self.nodes, self.conn = rectangle_mesh(nx, ny, 1.0, 0.2)
        ndof = 2 * len(self.nodes)
        self.dofs = np.stack([2 * self.conn, 2 * self.conn + 1], axis=-1).reshape(len(self.conn), 8)
        self.B, self.w = self._quadrature()
        self.mass = np.zeros(ndof)
        m = material.rho * self.w.sum(axis=1) / 4
        np.add.at(self.mass, self.dofs, np.repeat(m[:, None], 8, axis=1))
        self.fixed = np.flatnonzero(np.repeat(self.nodes[:, 0] == 0, 2))
        self.top = np.flatnonzero(np.isclose(self.nodes[:, 1], 0.2))
        self.u = np.zeros(ndof)
        self.v = np.zeros(ndof)
        self.plastic = np.zeros((len(self.conn), 4), dtype=bool)
        self.energy = []

    def _quadrature(self):
        ne = len(self.conn)
        B = np.zeros((ne, 4, 3, 8))
        w = np.zeros((ne, 4))
        X = self.nodes[self.conn]
        q = 0
        for xi in self.GAUSS:
            for eta in self.GAUSS:
                dN = shape_gradients(xi, eta)
                J = np.einsum("ij,ejk->eik", dN, X)
                w[:, q] = np.linalg.det(J)
                g = np.linalg.solve(J, np.broadcast_to(dN, (ne, 2, 4)))
                B[:, q, 0, 0::2] = g[:, 0]
                B[:, q, 1, 1::2] = g[:, 1]
                B[:, q, 2, 0::2] = g[:, 1]
                B[:, q, 2, 1::2] = g[:, 0]
                q += 1
        return B, w

    def stresses(self, u):
        ue = u[self.dofs]
        strain = np.einsum("eqij,ej->eqi", self.B, ue)
        return strain, strain @ self.material.D.T

    def internal_force(self):
        strain, s = self.stresses(self.u)
        mises = np.sqrt(s[..., 0] ** 2 - s[..., 0] * s[..., 1] + s[..., 1] ** 2 + 3 * s[..., 2] ** 2)
        over = mises > self.material.yield_stress
        if over.any():
            self.plastic |= over
            s[over] *= (self.material.yield_stress / mises[over])[:, None]
        fe = np.einsum("eqij,eqi,eq->ej", self.B, s, self.w)
        f = np.bincount(self.dofs.ravel(), weights=fe.ravel(), minlength=self.u.size)
        return f, 0.5 * np.einsum("eqi,eqi,eq->", strain, s, self.w)

    def load(self, t):
        f = np.zeros_like(self.u)
        x = self.nodes[self.top, 0]
        where = (0.3 * t / 1e-3) % 1.0
        f[2 * self.top + 1] = -4.0e3 * np.exp(-(((x - where) / 0.05) ** 2))
        return f

    def step(self, t, dt, alpha=50.0):
        fint, stored = self.internal_force()
        a = (self.load(t) - fint) / self.mass - alpha * self.v
        self.v += dt * a
        self.v[self.fixed] = 0.0
        self.u += dt * self.v
        kinetic = 0.5 * (self.mass * self.v**2).sum()
        self.energy.append((stored, kinetic))


def run(steps):
    plate = Plate(40, 8, Material())
    c = np.sqrt(plate.material.E / plate.material.rho)
    dt = 0.4 * (1.0 / 40) / c
    for n in range(steps * 5):
        plate.step(n * dt, dt)
    return {"u": plate.u, "v": plate.v, "plastic": plate.plastic, "energy": np.array(plate.energy)}
