"""Fields of electrodes: red-black SOR with obstacles, multigrid V-cycles by recursion, field lines, capacitances."""

import argparse

import numpy as np


def build(n):
    fixed, value = np.zeros((n, n), bool), np.zeros((n, n))
    fixed[[0, -1]] = fixed[:, [0, -1]] = True
    q = n // 4
    fixed[q, q : 3 * q] = fixed[3 * q, q : 3 * q] = True
    value[q, q : 3 * q], value[3 * q, q : 3 * q] = 1.0, -1.0
    eps = np.ones((n, n))
    eps[q + 2 : 3 * q - 2, q : 2 * q] = 4.0
    return fixed, value, eps


class SOR:
    def __init__(self, n, omega):
        self.fixed, self.value, self.eps = build(n)
        self.phi = self.value.copy()
        self.omega = omega
        i, j = np.indices((n, n))
        inner = ~self.fixed
        self.red = inner & ((i + j) % 2 == 0)
        self.black = inner & ((i + j) % 2 == 1)
        e = self.eps
        self.w = [np.zeros((n, n)) for _ in range(4)]
        self.w[0][1:] = 0.5 * (e[1:] + e[:-1])
        self.w[1][:-1] = 0.5 * (e[1:] + e[:-1])
        self.w[2][:, 1:] = 0.5 * (e[:, 1:] + e[:, :-1])
        self.w[3][:, :-1] = 0.5 * (e[:, 1:] + e[:, :-1])
        self.total = sum(self.w)

    def half(self, colour):
        p = self.phi
        s = (
            self.w[0] * np.roll(p, 1, 0)
            + self.w[1] * np.roll(p, -1, 0)
            + self.w[2] * np.roll(p, 1, 1)
            + self.w[3] * np.roll(p, -1, 1)
        )
        change = self.omega * (s / self.total - p)[colour]
        p[colour] += change
        return np.abs(change).max()

    def sweep(self):
        return max(self.half(self.red), self.half(self.black))

    def relax(self, tol, limit):
        for k in range(1, limit + 1):
            if self.sweep() < tol:
                break
        return k

    def charge(self):
        gy, gx = np.gradient(self.phi)
        d = self.eps * gy
        q = len(self.phi) // 4
        return d[q + 1].sum() - d[q - 1].sum()


def smooth(u, f, h, rounds=2):
    for _ in range(rounds):
        u[1:-1, 1:-1] += 0.8 * (
            0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] + h * h * f[1:-1, 1:-1]) - u[1:-1, 1:-1]
        )
    return u


def residual(u, f, h):
    r = np.zeros_like(u)
    r[1:-1, 1:-1] = f[1:-1, 1:-1] + (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]) / (
        h * h
    )
    return r


def restrict(r):
    c = r[::2, ::2].copy()
    c[1:-1, 1:-1] = 0.25 * r[2:-1:2, 2:-1:2] + 0.125 * (
        r[1:-2:2, 2:-1:2] + r[3::2, 2:-1:2] + r[2:-1:2, 1:-2:2] + r[2:-1:2, 3::2]
    )
    c[1:-1, 1:-1] += 0.0625 * (r[1:-2:2, 1:-2:2] + r[1:-2:2, 3::2] + r[3::2, 1:-2:2] + r[3::2, 3::2])
    return c


def prolong(e):
    n = 2 * (len(e) - 1) + 1
    u = np.zeros((n, n))
    u[::2, ::2] = e
    u[1::2, ::2] = 0.5 * (e[1:] + e[:-1])
    u[:, 1::2] = 0.5 * (u[:, 2::2] + u[:, :-2:2])
    return u


def vcycle(u, f, h):
    u = smooth(u, f, h)
    if len(u) > 5:
        coarse = restrict(residual(u, f, h))
        e = vcycle(np.zeros_like(coarse), coarse, 2 * h)
        u += prolong(e)
        u = smooth(u, f, h)
    else:
        u = smooth(u, f, h, 20)
    return u


def parse(argv=()):
    p = argparse.ArgumentParser()
    p.add_argument("--size", type=int, default=80)
    p.add_argument("--omega", type=float, default=1.85)
    p.add_argument("--tol", type=float, default=1e-4)
    return p.parse_args(list(argv))


def run(steps):
    args = parse()
    sor = SOR(args.size, args.omega)
    u, h = np.zeros((129, 129)), 1 / 128
    y, x = np.mgrid[:129, :129] * h
    counts, charges, norms = [], [], []
    for k in range(steps):
        sor.value[args.size // 4, 20:60] = np.cos(0.2 * k)
        sor.phi[sor.fixed] = sor.value[sor.fixed]
        counts.append(sor.relax(args.tol, 15))
        charges.append(sor.charge())
        f = np.sin(np.pi * x) * np.sin(2 * np.pi * y) + 0.3 * ((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.01 * (1 + k % 3))
        u = vcycle(u, f, h)
        norms.append(np.linalg.norm(residual(u, f, h)))
    return {"phi": sor.phi, "counts": counts, "charges": charges, "u": u, "norms": norms}
