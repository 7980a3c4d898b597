"""Self-consistent field: a model of a chain of atoms, PPP Hamiltonian, DIIS, einsum of two-electron integrals."""

import numpy as np
from scipy import linalg


class SCF:
    def __init__(self, n=24, u=2.0, beta=-1.0):
        self.n = n
        r = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        self.gamma = u / np.sqrt(1 + r**2)
        self.h = np.zeros((n, n))
        i = np.arange(n - 1)
        self.h[i, i + 1] = self.h[i + 1, i] = beta * (1 + 0.1 * (-1.0) ** i)
        self.P = np.diag(np.ones(n))
        self.P[0, 0] = 1.5
        self.energies = []
        self.focks, self.errors = [], []
        rng = np.random.default_rng(5)
        B = rng.normal(size=(8, n, n)) * 0.05
        B = B + B.transpose(0, 2, 1)
        self.eri = np.einsum("Lij,Lkl->ijkl", B, B)

    def fock(self):
        P = self.P
        J = np.einsum("ijkl,kl->ij", self.eri, P)
        K = np.einsum("ikjl,kl->ij", self.eri, P)
        G = np.diag(self.gamma @ np.diag(P)) - 0.5 * P * self.gamma
        return self.h + G + J - 0.5 * K

    def energy(self, F):
        return 0.5 * np.sum(self.P * (self.h + F))

    def density(self, F):
        e, C = np.linalg.eigh(F)
        occ = C[:, : self.n // 2]
        return 2 * occ @ occ.T, e

    def diis(self, F):
        err = F @ self.P - self.P @ F
        self.focks.append(F)
        self.errors.append(err)
        if len(self.focks) > 6:
            self.focks.pop(0)
            self.errors.pop(0)
        m = len(self.focks)
        if m < 2:
            return F, np.abs(err).max()
        B = -np.ones((m + 1, m + 1))
        B[m, m] = 0
        for i in range(m):
            for j in range(m):
                B[i, j] = np.vdot(self.errors[i], self.errors[j])
        rhs = np.zeros(m + 1)
        rhs[m] = -1
        try:
            c = np.linalg.solve(B, rhs)[:m]
        except np.linalg.LinAlgError:
            c = np.zeros(m)
            c[-1] = 1
        return sum(ci * Fi for ci, Fi in zip(c, self.focks)), np.abs(err).max()

    def iterate(self):
        F = self.fock()
        E = self.energy(F)
        F, err = self.diis(F)
        P, self.eps = self.density(F)
        self.P = 0.7 * P + 0.3 * self.P
        self.energies.append(E)
        return err


def dipole(P, n):
    x = np.arange(n) - (n - 1) / 2
    return float(np.dot(np.diag(P) - 1, x))


def run(steps):
    scf = SCF()
    for k in range(steps):
        err = scf.iterate()
        if k < 12:
            print("%3d  E = %14.8f" % (k, scf.energies[-1]))
        if err < 1e-6 and k > 20:
            break
    return {"P": scf.P, "e": np.array(scf.energies[:15]), "eps": scf.eps, "dip": dipole(scf.P, 24)}
